"""`sandbox-agent agents check`: each way in which an agent can misbehave is found, and a good one passes."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from support.command import Shell

MOCK = [sys.executable, "-m", "sandbox_agent.mock_agent"]


def check(tmp_path: Path, *flags: str, timeout: int = 30) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the findings by name."""
    command = shlex.join([*MOCK, *flags])
    done = Shell(tmp_path).run("agents", "check", "--command", command, "--timeout", str(timeout), "--json")
    told = json.loads(done.stdout)
    return done.returncode, {finding["check"]: finding for finding in told["findings"]}


def test_a_good_agent_passes_every_check(tmp_path: Path) -> None:
    code, found = check(tmp_path)
    assert code == 0
    assert {finding["verdict"] for finding in found.values()} == {"ok"}
    assert set(found) == {
        "handshake",
        "turn",
        "sessions apart",
        "permission asked",
        "permission rejected",
        "cancel",
        "cancel while asking",
        "prompt not echoed",
        "resumes after a kill",
        "nothing left behind",
    }


@pytest.mark.parametrize("flags", [("--protocol", "2"), ("--protocol", "2", "--no-v1")], ids=["both", "2-only"])
def test_an_agent_of_version_2_passes_every_check_in_its_own_words(tmp_path: Path, flags: tuple[str, ...]) -> None:
    code, found = check(tmp_path, *flags)
    assert {name: finding["detail"] for name, finding in found.items() if finding["verdict"] != "ok"} == {}
    assert code == 0
    assert "protocol version 2" in found["handshake"]["detail"]


def test_each_misbehaviour_of_an_agent_of_version_2_is_found_by_name(tmp_path: Path) -> None:
    code, found = check(
        tmp_path, "--protocol", "2", "--leak", "--never-ask", "--fail-load", "--ignore-cancel", timeout=5
    )
    assert code == 1
    verdicts = {name: finding["verdict"] for name, finding in found.items()}
    assert verdicts["sessions apart"] == "fail"
    assert verdicts["permission asked"] == "note"
    assert verdicts["cancel"] == "fail"
    assert verdicts["resumes after a kill"] == "fail"


def test_each_misbehaviour_is_found_by_name(tmp_path: Path) -> None:
    code, found = check(
        tmp_path, "--leak", "--never-ask", "--echo-prompts", "--fail-load", "--ignore-cancel", timeout=5
    )
    assert code == 1
    told = {name: (finding["verdict"], finding["detail"]) for name, finding in found.items()}
    for name, verdict, says in (
        ("sessions apart", "fail", 'isolation = "session"'),
        ("permission asked", "note", "never asks"),
        ("permission rejected", "skipped", "did not ask"),
        ("cancel", "fail", "not answered"),
        ("prompt not echoed", "note", "user_message_chunk"),
        ("resumes after a kill", "fail", "cannot be loaded"),
    ):
        assert told[name][0] == verdict, told
        assert says in told[name][1], told


@pytest.mark.parametrize(
    ("flag", "broken", "verdict", "says"),
    [("--fail-initialize", "handshake", "fail", "refused"), ("--needs-auth", "turn", "skipped", "login")],
)
def test_an_agent_that_cannot_be_talked_to_is_asked_no_more(
    tmp_path: Path, flag: str, broken: str, verdict: str, says: str
) -> None:
    code, found = check(tmp_path, flag)
    assert found[broken]["verdict"] == verdict
    assert says in found[broken]["detail"]
    assert found["cancel"]["verdict"] == "skipped"
    assert code == (1 if verdict == "fail" else 0)


def test_an_agent_that_is_isolated_already_passes_although_it_leaks(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f"[agents.rude]\ncommand = {[*MOCK, '--leak']!r}\n")
    done = Shell(tmp_path).run("agents", "check", "rude", "--config", str(config))
    assert done.returncode == 0
    assert b"the server keeps them apart" in done.stdout


def test_a_program_that_does_not_start_fails_the_handshake_and_nothing_else_is_tried(tmp_path: Path) -> None:
    done = Shell(tmp_path).run("agents", "check", "--command", "/nonexistent/agent", "--json")
    verdicts = [finding["verdict"] for finding in json.loads(done.stdout)["findings"]]
    assert done.returncode == 1
    assert verdicts[0] == "fail"
    assert set(verdicts[1:-1]) == {"skipped"}


def test_neither_or_both_of_agent_and_command_is_a_usage_error(tmp_path: Path) -> None:
    assert Shell(tmp_path).run("agents", "check").returncode == 2
    assert Shell(tmp_path).run("agents", "check", "mock", "--command", "x").returncode == 2
