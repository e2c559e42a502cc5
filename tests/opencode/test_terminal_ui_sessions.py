"""What a person does with sessions in OpenCode's terminal UI: commands of the agent, rename, fork, undo, delete."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support import commanding_agent
from support.opencode_program import opencode_environment
from support.served import served
from support.server import Server
from support.terminal_ui import TerminalUi, terminal_ui
from support.tmux import needs_tmux

CONFIG = f"[agents.able]\nname = 'Able'\ncommand = {[sys.executable, commanding_agent.__file__, 'compact', 'undo']!r}\n"
pytestmark = needs_tmux


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("tui"), "--no-token", config=CONFIG) as running:
        yield running


@contextmanager
def opened(program: Path, server: Server, home: Path, agent: str) -> Iterator[TerminalUi]:
    work = home / "work"
    work.mkdir(parents=True)
    command = [str(program), "attach", f"{server.url}/opencode/agents/{agent}", "--dir", str(work)]
    with terminal_ui(command, opencode_environment(home), work) as screen:
        screen.wait_for("Ask anything")
        yield screen


def titles(server: Server, home: Path) -> list[str]:
    """Of the sessions that everybody sees in the directory."""
    listed = httpx.get(f"{server.url}/v1/sessions", trust_env=False).json()["sessions"]
    return sorted(one["title"] for one in listed if one["cwd"] == str(home / "work"))


def test_commands_of_the_agent_rename_fork_and_delete(program: Path, server: Server, tmp_path: Path) -> None:
    with opened(program, server, tmp_path, "mock") as screen:
        screen.say("first words")
        screen.until(lambda shown: shown.count("first words") >= 2, "the echo")
        screen.type("/pla")  # the server had no session when the UI asked for commands
        screen.wait_for("sends a plan of three entries")
        screen.press_until("Enter", lambda shown: "sends a plan" not in shown)
        screen.press_until("Enter", lambda shown: shown.count("/plan") >= 2)

        screen.command("Rename session")
        screen.wait_for("Rename Session")
        screen.keys("C-u")
        screen.type("Renamed")
        screen.wait_for("Renamed")
        screen.press_until("Enter", lambda shown: "Rename Session" not in shown)
        assert titles(server, tmp_path) == ["Renamed"]

        screen.command("Fork session")
        screen.wait_for("Full session")
        screen.press_until("Enter", lambda shown: "Full session" not in shown)
        screen.until(lambda shown: shown.count("first words") >= 2, "the conversation of the fork")
        assert titles(server, tmp_path) == ["Renamed", "Renamed (fork)"]

        screen.command("Switch session")
        screen.wait_for("Renamed (fork)")
        screen.type("(fork)")
        screen.until(lambda shown: shown.count("Renamed") == shown.count("Renamed (fork)") > 0, "the fork alone")
        screen.press_until("C-d", lambda shown: titles(server, tmp_path) == ["Renamed"])


def test_undo_is_sent_to_an_agent_that_has_the_command(program: Path, server: Server, tmp_path: Path) -> None:
    with opened(program, server, tmp_path, "able") as screen:
        screen.say("one")
        screen.wait_for("remembered: one")
        screen.say("two")
        screen.wait_for("remembered: one two")
        screen.command("Undo previous message")
        screen.until(lambda shown: "/undo" in shown and shown.rstrip().count("remembered: one") == 3, "the undo")
