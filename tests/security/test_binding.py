"""Who can reach the server at all, and settings that would open it by mistake."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox_agent.errors import ConfigError
from sandbox_agent.settings import load_settings
from support.raw import ask, request
from support.served import BEARER, TOKEN, client, served


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "127.0.0.1.example.com", ""])
@pytest.mark.promise("P-security-2")
def test_binding_beyond_loopback_without_a_token_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="--no-token"):
        load_settings({}, None, {"host": host})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert load_settings({}, None, {"host": host}).token is None


@pytest.mark.parametrize("flags", [{"token": "t"}, {"no_token": True}])
def test_a_token_or_saying_so_lets_it_bind_anywhere(flags: dict[str, object]) -> None:
    assert load_settings({}, None, {"host": "0.0.0.0", **flags}).host == "0.0.0.0"


def test_the_token_may_come_from_the_environment() -> None:
    assert load_settings({"SANDBOX_AGENT_TOKEN": "t"}, None, {"host": "0.0.0.0"}).token == "t"


def test_an_empty_variable_is_no_token() -> None:
    with pytest.raises(ConfigError, match="--no-token"):
        load_settings({"SANDBOX_AGENT_TOKEN": ""}, None, {"host": "0.0.0.0"})


@pytest.mark.parametrize("token", ["", " ", "a b", "a\n", "\x00", "é"])
def test_a_token_that_no_header_can_carry_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="token"):
        load_settings({}, None, {"token": token})


def test_token_and_no_token_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="exclude"):
        load_settings({}, None, {"token": "t", "no_token": True})


def test_no_token_wins_over_the_environment() -> None:
    assert load_settings({"SANDBOX_AGENT_TOKEN": "t"}, None, {"no_token": True}).token is None


def test_the_command_says_why_it_does_not_start(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sandbox_agent", "server", "--host", "0.0.0.0", "--port", "0"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert "--no-token" in ended.stderr
    assert "listening" not in ended.stdout


def test_beyond_loopback_a_token_replaces_the_check_of_names(tmp_path: Path) -> None:
    with served(tmp_path, "--host", "0.0.0.0", "--token", TOKEN) as server:
        good = request("GET", "/v1/health", ("Authorization", f"Bearer {TOKEN}"), host="2468-abc.example.dev")
        assert ask(server.port, good).status == 200
        assert ask(server.port, request("GET", "/v1/health", host="2468-abc.example.dev")).status == 401
        strange = request("GET", "/v1/health", ("Authorization", f"Bearer {TOKEN}"), host="a b")
        assert ask(server.port, strange).status in {400, 403}


def test_beyond_loopback_without_a_token_only_numbers_and_listed_names_are_ours(tmp_path: Path) -> None:
    with served(tmp_path, "--host", "0.0.0.0", "--no-token", "--allow-host", "Box.example") as server:
        statuses = {
            host: ask(server.port, request("GET", "/v1/health", host=host)).status
            for host in ("10.1.2.3:2468", "box.example:2468", "localhost", "evil.com", "box.example.evil.com")
        }
    assert statuses == {
        "10.1.2.3:2468": 200,
        "box.example:2468": 200,
        "localhost": 200,
        "evil.com": 403,
        "box.example.evil.com": 403,
    }


def test_a_listed_name_is_served_on_loopback(tmp_path: Path) -> None:
    with served(tmp_path, "--allow-host", "my.proxy.example") as server:
        assert ask(server.port, request("GET", "/v1/health", host="my.proxy.example")).status == 200
        assert ask(server.port, request("GET", "/v1/health", host="evil.com")).status == 403


@pytest.mark.promise("P-security-1")
def test_only_loopback_answers_by_default(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        addresses = [line.split()[1] for line in listening.splitlines() if f":{server.port:04X} " in line]
    assert addresses
    assert all(address.startswith("0100007F:") for address in addresses)


async def test_a_root_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    await asyncio.to_thread((tmp_path / "file").write_text, "x")
    with pytest.raises(ConfigError, match="fs_root"):
        load_settings({}, None, {"fs_root": (str(tmp_path / "file"),)})


def test_the_token_comes_from_the_environment_of_the_command(tmp_path: Path) -> None:
    with served(tmp_path, env={"SANDBOX_AGENT_TOKEN": TOKEN}) as server, client(server) as http:
        assert http.get("/v1/health").status_code == 401
        assert http.get("/v1/health", headers=BEARER).status_code == 200
