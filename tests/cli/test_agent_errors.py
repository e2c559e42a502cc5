"""What an agent refuses, with its reason and what to do: shown by `run`, by `run --json`, and in `str(error)`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.errors import RequestFailed
from support.command import Shell, serving

pytestmark = pytest.mark.timeout(120)
AGENT = Path(__file__).resolve().parents[1] / "support" / "refusing_agent.py"
AS_ROOT = {
    "code": -32603,
    "message": "Internal error",
    "data": {"details": "cannot be used as root", "hint": "run it as another user, or set IS_SANDBOX=1 in a sandbox"},
}
CLAUDE_AS_ROOT = {
    "code": -32603,
    "message": "Internal error",
    "data": {"details": "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"},
}
WANTS_KEY = {"code": -32000, "message": "Authentication required"}
CONFIG = f"""
[agents.rooted]
command = ["{sys.executable}", "{AGENT}", {json.dumps(json.dumps(AS_ROOT))}]
[agents.claude]
command = ["{sys.executable}", "{AGENT}", {json.dumps(json.dumps(CLAUDE_AS_ROOT))}]
[agents.keyless]
command = ["{sys.executable}", "{AGENT}", {json.dumps(json.dumps(WANTS_KEY))}]
env_passthrough = ["KEYLESS_API_KEY"]
login = ["{sys.executable}", "-c", "print('logged in'); raise SystemExit(7)"]
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with serving(tmp_path_factory.mktemp("refused"), config=CONFIG) as shell:
        yield shell


def test_run_shows_the_reason_and_what_to_do(shell: Shell) -> None:
    done = shell.run("run", "--agent", "rooted", "hello")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "error: Internal error: cannot be used as root",
        "       run it as another user, or set IS_SANDBOX=1 in a sandbox",
    ]


def test_what_claude_says_as_root_is_told_with_what_helps(shell: Shell) -> None:
    done = shell.run("run", "--agent", "claude", "hello")
    assert done.returncode == 1
    reason, advice = done.stderr.decode().splitlines()
    assert reason.startswith("error: Internal error: --dangerously-skip-permissions cannot be used with root")
    assert "as another user, without IS_SANDBOX or, if this machine is a sandbox, with IS_SANDBOX=1" in advice


def test_json_has_them_too(shell: Shell) -> None:
    done = shell.run("run", "--agent", "rooted", "hello", "--json")
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["detail"], said["hint"]) == ("Internal error: cannot be used as root", AS_ROOT["data"]["hint"])  # type: ignore[index]
    assert said["data"]["error"] == AS_ROOT


async def test_the_sdk_has_them_in_the_text_of_the_error(shell: Shell) -> None:
    async with SandboxAgent.connect(shell.env["SANDBOX_AGENT_ENDPOINT"]) as sandbox:
        with pytest.raises(RequestFailed) as failed:
            await sandbox.create_session(agent="rooted", cwd="/tmp")
    assert str(failed.value) == f"Internal error: cannot be used as root; {AS_ROOT['data']['hint']}"  # type: ignore[index]


def test_a_key_that_was_exported_after_the_server_started_is_said_with_what_to_do(shell: Shell) -> None:
    assert "set KEYLESS_API_KEY in the environment of the server and restart it" in _said(shell)
    exported = Shell(shell.home, shell.env["SANDBOX_AGENT_ENDPOINT"], KEYLESS_API_KEY="k")
    said = _said(exported)
    assert "KEYLESS_API_KEY is set here, but agents get it from the server" in said
    assert "sandbox-agent daemon stop" in said


def test_login_runs_the_agents_own_login_and_ends_as_it_does(shell: Shell) -> None:
    done = shell.run("login", "keyless", "--config", str(shell.home / "config.toml"))
    assert (done.returncode, done.stdout) == (7, b"logged in\n")


@pytest.mark.parametrize(
    ("agent", "code", "said"),
    [
        ("rooted", 1, "has no login command"),
        ("codex", 1, "run `sandbox-agent install-agent codex` first"),
        ("no-such", 5, "unknown agent 'no-such'"),
    ],
)
def test_login_says_what_to_do_where_there_is_none(shell: Shell, agent: str, code: int, said: str) -> None:
    done = shell.run("login", agent, "--config", str(shell.home / "config.toml"))
    assert done.returncode == code
    assert said in done.stderr.decode()


def _said(shell: Shell) -> str:
    done = shell.run("run", "--agent", "keyless", "hello")
    assert done.returncode == 1
    return done.stderr.decode()
