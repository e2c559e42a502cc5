"""`sandbox-agent demo` shows every part of a turn and where it ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import Shell

pytestmark = pytest.mark.timeout(180)  # several processes, one after the other


def test_the_demo_shows_a_whole_turn(tmp_path: Path) -> None:
    shown = Shell(tmp_path).text("demo")
    for part in (
        "server   http://127.0.0.1:",
        "session  mock-",
        "Hello! I am the built-in agent",
        "First I make a plan",
        "plan Look around in_progress",
        "tool Run ls pending",
        "permission asked → answered: Allow once",
        "stopped  end_turn",
        "start your own with:",
    ):
        assert part in shown
