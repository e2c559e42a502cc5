"""`sandbox-agent daemon`: a server in the background that other commands find."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from collections.abc import Iterator
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import httpx
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


def test_it_works_in_the_folder_of_its_config_and_its_agents_are_listed(shell: Shell, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "agent.py").write_text("from sandbox_agent.mock_agent.__main__ import main\nmain()\n")
    (project / "agents.toml").write_text(f'[agents.near]\ncommand = ["{sys.executable}", "agent.py"]\n')
    shell.text("daemon", "start", "--port", "0", "--config", "project/agents.toml")
    assert "near" in {agent["id"] for agent in shell.json("agents", "list", "--json")}
    assert shell.json("agents", "show", "near", "--json")["source"] == "custom"
    assert "hello" in shell.text("run", "--agent", "near", "hello")


def test_another_port_than_that_of_the_running_one_is_an_error(shell: Shell) -> None:
    shell.text("daemon", "start", "--port", "0")
    done = shell.run("daemon", "start", "--port", "1")
    assert done.returncode == 2
    assert "already running at" in done.stderr.decode()
    assert "daemon stop" in done.stderr.decode()


def test_the_inspector_is_opened_with_a_link_that_signs_the_browser_in_once(shell: Shell) -> None:
    url = shell.json("daemon", "start", "--port", "0", "--json")["url"]
    assert shell.text("ui").startswith(f"{url}/ui/?ticket=")
    recorder = shell.home / "browser"
    recorder.write_text(f'#!/bin/sh\necho "$1" > {shell.home}/opened\n')
    recorder.chmod(0o755)
    browsing = Shell(shell.home, BROWSER=f"{recorder} %s")
    assert browsing.text("ui") == ""
    assert (shell.home / "opened").read_text().startswith(f"{url}/ui/?ticket=")
    assert browsing.text("ui", "--print").startswith(f"{url}/ui/?ticket=")
    link = shell.text("ui").strip()
    with httpx.Client(trust_env=False) as http:
        assert http.get(link).status_code in {200, 302, 303, 307}
        assert "sandbox-agent" in "".join(http.cookies)
        assert http.get(f"{url}/ui/").status_code == 200
        led = http.get(f"{url}/")
        assert (led.status_code, led.headers["location"]) == (308, "ui/")
    assert httpx.get(link, trust_env=False).status_code == 401


def test_doctor_does_not_take_another_program_for_a_server(shell: Shell) -> None:
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        done = shell.run("doctor", "--json", "--endpoint", f"http://127.0.0.1:{other.server_port}")
        other.shutdown()
    (finding,) = [one for one in json.loads(done.stdout) if one["check"] == "server"]
    assert finding["verdict"] == "fail"
    assert "no sandbox-agent server answers" in finding["detail"]


def test_its_log_can_be_truncated_while_it_runs_as_logrotate_does(shell: Shell, tmp_path: Path) -> None:
    config = tmp_path / "logging.toml"
    config.write_text("access_log = true\n")
    shell.text("daemon", "start", "--port", "0", "--config", str(config))
    try:
        state = shell.json("daemon", "status", "--json")
        log = Path(state["log"])
        shell.text("api", "v1", "agents", "list")
        assert log.stat().st_size
        os.truncate(log, 0)
        shell.text("api", "v1", "agents", "list")
        assert log.read_bytes()[:1] not in {b"", b"\0"}, "it goes on at the new end, not where it was"
    finally:
        shell.run("daemon", "stop")
