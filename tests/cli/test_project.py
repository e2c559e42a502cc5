"""`sandbox-agent.toml`: found upwards, used by `run`, and not able to run anything by itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sandbox_agent.cli.doctor import check_project
from sandbox_agent.cli.project import NAME, find_project
from sandbox_agent.errors import ConfigError
from support.command import Shell

pytestmark = pytest.mark.timeout(180)  # several processes, one after the other

GOOD = '[run]\nagent = "mock"\nmode = "code"\napprove = "reject"\ntimeout = 600\n'


def test_the_nearest_file_above_counts(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / NAME).write_text(GOOD)
    found = find_project(below)
    assert found is not None
    assert found.path == tmp_path / NAME
    assert found.run.given == {"agent": "mock", "mode": "code", "approve": "reject", "timeout": 600.0}
    (tmp_path / "a" / NAME).write_text('[run]\nagent = "other"\n')
    nearer = find_project(below)
    assert nearer is not None
    assert nearer.run.given == {"agent": "other"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[run]\ncommand = ['sh']\nenv = {A = 'b'}\n", "unknown in [run]: command, env;"),
        ("[runs]\nagent = 'mock'\n", "may only have the table [run]; it has: runs"),
        ("[run]\nagent = 'mock'\n[agents.x]\ncommand = ['sh']\n", "it has: agents"),
        ("[run]\nmcp_servers = []\n", "unknown in [run]: mcp_servers"),
        ("[run]\napprove = 'allow'\n", "use --approve allow"),
        ("[run]\napprove = 'alow'\n", "approve"),
        ("[run]\nmode = 'bypassPermissions'\n", "use --mode bypassPermissions"),
        ("[run]\nmode = 'YOLO'\n", "without asking"),
        ("[run]\nagent = 3\n", "agent"),
        ("[run]\ntimeout = -1\n", "timeout"),
        ("run = 1\n", "[run]"),
        ("[run\n", "not valid TOML"),
        ("x = " + "[" * 5000, "not valid TOML"),
        ("# " + "x" * 70_000, "larger than"),
    ],
)
def test_what_a_project_may_not_say_is_an_error_that_names_it(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / NAME).write_text(content)
    with pytest.raises(ConfigError) as refused:
        find_project(tmp_path)
    assert said in refused.value.detail
    assert str(tmp_path / NAME) in refused.value.detail


def test_a_servers_config_of_the_same_name_is_passed_over(tmp_path: Path) -> None:
    below = tmp_path / "project"
    below.mkdir()
    (tmp_path / NAME).write_text(GOOD)
    (below / NAME).write_text('port = 2468\n[agents.mine]\ncommand = ["python3", "mine.py"]\n')
    found = find_project(below)
    assert found is not None
    assert found.path == tmp_path / NAME


def test_what_is_no_file_of_ours_is_passed_over_without_waiting(tmp_path: Path) -> None:
    below = tmp_path / "project"
    below.mkdir()
    os.mkfifo(below / NAME)
    (tmp_path / NAME).mkdir()
    assert find_project(below) is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(GOOD)
    os.chown(tmp_path / NAME, 12345, 12345)
    assert find_project(tmp_path) is None


def test_doctor_names_the_file_that_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).write_text(GOOD)
    found = check_project()
    assert found.verdict == "ok"
    assert found.detail == f"{tmp_path / NAME}: agent = mock, mode = code, approve = reject, timeout = 600.0"
    (tmp_path / NAME).write_text("[run]\nmoode = 'code'\n")
    assert (check_project().verdict, "moode" in check_project().detail) == ("fail", True)


def test_run_uses_it_where_no_option_is_given(tmp_path: Path) -> None:
    shell, project = Shell(tmp_path / "home"), tmp_path / "project"
    project.mkdir()
    (project / NAME).write_text(GOOD)
    lines = shell.lines("run", "tool ls", "--json", "--cwd", str(project))
    assert lines[0]["agent"] == "mock"
    assert "reject" in json.dumps(lines)
    (project / NAME).write_text('[run]\nagent = "mock"\nmoode = "plan"\n')
    refused = shell.run("run", "hello", "--cwd", str(project))
    assert refused.returncode != 0
    assert b"unknown in [run]: moode" in refused.stderr
