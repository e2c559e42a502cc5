"""OpenCode's terminal UI on our server: what a person sees and presses."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from support.opencode_program import opencode_environment
from support.real_world import real_cache
from support.served import served
from support.server import Server
from support.terminal_ui import TerminalUi, terminal_ui
from support.tmux import needs_tmux

TOKEN = "sesame"
pytestmark = needs_tmux


@contextmanager
def opened(program: Path, server: Server, home: Path, *more: str, agent: str = "mock") -> Iterator[TerminalUi]:
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    address = f"{server.url}/opencode/agents/{agent}"
    command = [str(program), "attach", address, "-p", TOKEN, "--dir", str(work), *more]
    with terminal_ui(command, opencode_environment(home), work) as screen:
        yield screen


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("tui"), "--token", TOKEN) as running:
        yield running


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_session_from_its_first_prompt_to_its_list(program: Path, server: Server, tmp_path: Path) -> None:
    with opened(program, server, tmp_path) as screen:
        shown = screen.wait_for("Mock agent default")
        assert "Build" in shown

        screen.say("slow 5000")  # its first words are there long before its last
        screen.wait_for("tick 5 ")
        screen.interrupt()

        screen.say("tool ls -la")
        screen.until(lambda shown: "Permission required" in shown and "$ ls -la" in shown, "the permission")
        screen.keys("Enter")
        screen.until(lambda shown: "The tool ran." in shown and "(the output of ls -la)" in shown, "the output")

        screen.say("edit notes.txt")
        screen.until(lambda shown: "Allow once" in shown and "+ hello, world" in shown, "the diff")
        screen.keys("Right", "Right", "Enter")
        screen.wait_for("The permission was rejected.")

        screen.say("question")
        screen.wait_for("2. Green")
        screen.keys("Down", "Enter")
        screen.until(lambda shown: '"green"' in shown, "the answer")

        screen.command("Switch model")
        screen.wait_for("Mock Large")
        screen.choose("Mock Large", others="Mock Small")
        screen.press_until("Enter", lambda shown: "Select model" not in shown and "Mock Large" in shown)
        screen.say("good day to you")
        screen.until(lambda shown: shown.count("good day to you") >= 2, "the echo")

        screen.command("Switch session")
        screen.until(lambda shown: "Sessions" in shown and "slow 5000" in shown, "the list")
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False) as http:
        (session,) = [
            one for one in http.get("/v1/sessions").json()["sessions"] if one["cwd"] == str(tmp_path / "work")
        ]
        assert session["model"] == "mock-large"


def test_the_terminal_ui_goes_on_after_a_restart_of_the_server(program: Path, tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as running, ExitStack() as screens:
        server = running.enter_context(served(tmp_path / "server", "--token", TOKEN, port=port))
        screen = screens.enter_context(opened(program, server, tmp_path / "ui"))
        screen.wait_for("Mock agent default")
        screen.say("before the restart")
        screen.until(lambda shown: shown.count("before the restart") >= 2, "the echo")
        running.pop_all().close()
        server = running.enter_context(served(tmp_path / "server", "--token", TOKEN, port=port))
        screen.say("after the restart")
        shown = screen.until(lambda shown: shown.count("after the restart") >= 2, "the echo")
        assert shown.count("before the restart") >= 2
        with opened(program, server, tmp_path / "ui", "--continue") as second:
            second_shown = second.until(lambda shown: shown.count("after the restart") >= 2, "the session")
            assert second_shown.count("before the restart") >= 2


def test_what_is_said_elsewhere_streams_into_an_open_terminal_ui(program: Path, server: Server, tmp_path: Path) -> None:
    auth = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=server.url, headers=auth, timeout=60, trust_env=False) as http:
        made = http.post("/opencode/session", json={"title": "Shared"}, params={"directory": str(tmp_path)}).json()
        http.post(f"/opencode/session/{made['id']}/message", json=_said("from the start"))
        with opened(program, server, tmp_path, "--session", made["id"]) as screen:
            screen.until(lambda shown: shown.count("from the start") >= 2, "the history")
            http.post(f"/opencode/session/{made['id']}/message", json=_said("from somebody else"))
            screen.until(lambda shown: shown.count("from somebody else") >= 2, "the turn of another client")
            http.post(f"/opencode/session/{made['id']}/prompt_async", json=_said("tool make"))
            screen.wait_for("Permission required")
            (asked,) = http.get("/opencode/permission").json()
            http.post(f"/opencode/permission/{asked['id']}/reply", json={"reply": "once"})
            screen.until(lambda shown: "Permission required" not in shown and "The tool ran." in shown, "its end")


@pytest.mark.timeout(1200)
def test_the_command_opens_the_terminal_ui_of_an_installed_agent_on_a_server_of_its_own(
    program: Path, tmp_path: Path
) -> None:
    """`opencode` is not on the path. With FULL=1 it is not installed either, and downloaded here."""
    home = tmp_path / "home"
    env = opencode_environment(home)
    places = env["PATH"].split(":")
    env["PATH"] = ":".join(place for place in places if not (Path(place) / "opencode").exists())
    env["SANDBOX_AGENT_MOCK_STATE"] = str(home / "mock")
    env["SANDBOX_AGENT_DATA_DIR"] = str(tmp_path / "data")
    if os.environ.get("FULL"):
        home.mkdir(exist_ok=True)
        if (Path.home() / ".npmrc").exists():  # which registry, and which certificates, are for the machine to say
            shutil.copy(Path.home() / ".npmrc", home)
        env |= {name: os.environ[name] for name in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE") if name in os.environ}
    else:
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "agents").symlink_to(real_cache() / "agents")
    work = tmp_path / "work"
    work.mkdir()
    command = [sys.executable, "-m", "sandbox_agent", "opencode", "--agent", "mock"]
    with terminal_ui(command, env, work) as screen:
        begun = screen.until(lambda shown: "Mock agent default" in shown or "ended" in shown, "a page", patience=1000)
        assert "Mock agent default" in begun, begun
        screen.say("good day")
        screen.until(lambda shown: shown.count("good day") >= 2, "the echo")
        screen.say("exit")
        screen.wait_for("ended 0")


def _said(words: str) -> dict[str, object]:
    return {"parts": [{"type": "text", "text": words}]}
