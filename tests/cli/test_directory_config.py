"""`sandbox-agent mcp` and `skills`, and what `doctor` says of the servers of a directory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.command import Shell, serving

pytestmark = pytest.mark.timeout(180)

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "tiny", "version": "1.2"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_servers_are_added_listed_tried_by_doctor_and_removed(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as shell:
        work = shell.home
        (work / "tiny.py").write_text(SERVER)
        shell.text("mcp", "add", "tiny", "-e", "A=${HOME}", "--", sys.executable, str(work / "tiny.py"))
        shell.text("mcp", "add", "dead", "--", sys.executable, "-c", "raise SystemExit('cannot go on')")
        shell.text("mcp", "add", "far", "--url", "http://127.0.0.1:9/mcp", "--header", "X-Key=${HOME}")
        listed = {entry["name"]: entry for entry in shell.json("mcp", "list", "--json")}
        assert listed["tiny"]["config"]["env"] == {"A": "${HOME}"}
        assert listed["far"]["config"]["headers"] == {"X-Key": "${HOME}"}
        assert "enabled" in shell.text("mcp", "list")
        assert shell.run("mcp", "add", "nothing").returncode == 2
        assert shell.run("mcp", "add", "wrong", "-e", "x", "--", "true").returncode == 2
        findings = {each["check"]: each for each in json.loads(shell.run("doctor", "--json").stdout)}
        assert (findings["mcp tiny"]["verdict"], findings["mcp tiny"]["detail"]) == ("ok", "starts: tiny 1.2")
        assert findings["mcp dead"]["verdict"] == "fail"
        assert "cannot go on" in findings["mcp dead"]["detail"]
        assert "cannot be reached" in findings["mcp far"]["detail"]
        shell.text("mcp", "remove", "dead")
        assert "dead" not in shell.text("mcp", "list")
        answer = shell.lines("run", "--agent", "mock", "hello", "--json")
        assert answer[-1]


def test_skills_are_added_listed_and_removed(tmp_path: Path) -> None:
    skill = tmp_path / "home" / "library" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: review\ndescription: reviews\n---\n")
    with serving(tmp_path / "home") as shell:
        shell.text("skills", "add", "team", "./library", "--skill", "review")
        (entry,) = shell.json("skills", "list", "--json")
        assert entry["config"] == {"sources": [{"type": "local", "source": "./library", "skills": ["review"]}]}
        shell.text("skills", "add", "remote", "owner/name", "--ref", "main", "--subpath", "skills")
        assert "owner/name" in shell.text("skills", "list")
        for name in ("team", "remote"):
            shell.text("skills", "remove", name)
        assert shell.json("skills", "list", "--json") == []


def test_directories_can_be_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    (tmp_path / "elsewhere").mkdir()
    shell.text("mcp", "add", "one", "-C", str(tmp_path / "elsewhere"), "--", "true")
    (entry,) = shell.json("mcp", "list", "-C", str(tmp_path / "elsewhere" / "below"), "--json")
    assert (entry["name"], entry["directory"]) == ("one", str(tmp_path / "elsewhere"))
