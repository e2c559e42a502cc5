"""`sandbox-agent daemon`: a server in the background that other commands find."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import Shell

pytestmark = pytest.mark.timeout(180)  # several processes, one after the other


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.run("daemon", "stop")


def test_it_starts_once_is_found_by_other_commands_and_stops(shell: Shell) -> None:
    assert shell.run("daemon", "status").returncode == 3
    started = shell.json("daemon", "start", "--port", "0", "--json")
    again = shell.json("daemon", "start", "--json")
    assert again["pid"] == started["pid"]
    assert shell.json("daemon", "status", "--json")["health"]["status"] == "ok"
    session = shell.lines("run", "--agent", "mock", "hello", "--json")[0]["sessionId"]
    assert "1. hello" in shell.text("run", "--agent", "mock", "--resume", session, "recall")
    assert shell.text("daemon", "stop") == "stopped\n"
    assert shell.text("daemon", "stop") == "not running\n"
    assert not _is_running(started["pid"])


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""  # empty when only its parent has not looked yet
    except FileNotFoundError:
        return False


def test_its_record_holds_the_token_and_is_for_its_owner_only(shell: Shell) -> None:
    shell.text("daemon", "start", "--port", "0")
    record = shell.home / "data" / "daemon.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert json.loads(record.read_bytes())["token"]


def test_upgrade_restarts_a_server_of_another_version(shell: Shell) -> None:
    first = shell.json("daemon", "start", "--port", "0", "--json")
    record = shell.home / "data" / "daemon.json"
    state = json.loads(record.read_bytes())
    record.write_text(json.dumps({**state, "version": "0.0.1"}))
    assert "--upgrade" in shell.text("daemon", "start")
    second = shell.json("daemon", "start", "--port", "0", "--upgrade", "--json")
    assert second["pid"] != first["pid"]
    assert shell.json("daemon", "start", "--upgrade", "--json")["pid"] == second["pid"]


def test_a_record_of_a_process_that_is_gone_or_another_is_not_believed(shell: Shell) -> None:
    record = shell.home / "data" / "daemon.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"pid": os.getppid(), "url": "http://127.0.0.1:9", "version": "0"}))
    done = shell.run("daemon", "status")
    assert (done.returncode, done.stdout) == (3, b"not running\n")


def test_what_the_server_says_when_it_does_not_start_is_shown(shell: Shell) -> None:
    done = shell.run("daemon", "start", "--host", "256.0.0.1")
    assert done.returncode == 2
    assert "cannot listen on 256.0.0.1" in done.stderr.decode()
