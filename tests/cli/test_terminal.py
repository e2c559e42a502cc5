"""`sandbox-agent run` and `sessions attach` at a terminal of 80 columns."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from support.command import Shell, serving
from support.noting import noting_config
from support.tmux import needs_tmux, terminal

pytestmark = [needs_tmux, pytest.mark.timeout(180)]


def test_a_permission_is_asked_and_answered_at_the_keyboard(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with terminal(shell.env, tmp_path) as screen:
        screen.type("sandbox-agent run --agent mock 'tool ls; edit a.txt'; echo code $?")
        shown = screen.wait_for("y/a/n/r?")
        assert "? Allow Run ls" in shown
        assert "[y] Allow once" in shown
        screen.type("y")
        shown = screen.wait_for("? Allow Edit")
        assert "● Run ls  completed" in shown
        assert "-hello" in shown
        assert "+hello, world" in shown
        screen.type("n")
        shown = screen.wait_for("code 0")
    assert "✗ Edit" in shown
    assert "stopped: end_turn" in shown


def test_a_wrong_key_is_asked_again(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with terminal(shell.env, tmp_path) as screen:
        screen.type("sandbox-agent run --agent mock 'tool ls'; echo code $?")
        screen.wait_for("y/a/n/r?")
        screen.type("perhaps")
        screen.wait_for("y/a/n/r? perhaps\n  y/a/n/r?")
        screen.type("y")
        assert "● Run ls  completed" in screen.wait_for("code 0")


def test_ctrl_c_cancels_the_turn_and_prints_the_stop_reason(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with terminal(shell.env, tmp_path) as screen:
        screen.type("sandbox-agent run --agent mock 'slow 100000'; echo code $?")
        screen.wait_for("tick 20 ")
        screen.press("C-c")
        shown = screen.wait_for("code 130")
    assert "cancelling; Ctrl-C again to leave" in shown
    assert "stopped: cancelled" in shown
    said = " ".join(re.findall(r"tick \d+", shown))
    assert said == " ".join(f"tick {n}" for n in range(1, len(said.split()) // 2 + 1)), "nothing is drawn twice"


def test_a_question_without_options_takes_any_text(tmp_path: Path) -> None:
    config = noting_config(tmp_path / "notes")
    with serving(tmp_path, config=config) as shell, terminal(shell.env, tmp_path) as screen:
        screen.type("""sandbox-agent run --agent noting 'ask {"prompt":"Name?"}'; echo code $?""")
        screen.wait_for("your answer, or Enter to decline")
        screen.type("Rosebud the sledge")
        shown = screen.wait_for("code 0")
    assert '[["Rosebud the sledge"]]' in shown.replace("\n", "")


def test_ctrl_c_at_a_question_cancels_the_turn(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with terminal(shell.env, tmp_path) as screen:
        screen.type("sandbox-agent run --agent mock 'tool ls'; echo code $?")
        screen.wait_for("y/a/n/r?")
        screen.press("C-c")
        assert "stopped: cancelled" in screen.wait_for("code 130")


def test_a_second_ctrl_c_leaves_an_agent_that_does_not_listen(tmp_path: Path) -> None:
    agent = Path(__file__).parents[1] / "support" / "stubborn_agent.py"
    config = f'[agents.stubborn]\ncommand = ["{sys.executable}", "{agent}"]\n'
    with serving(tmp_path, config=config) as shell, terminal(shell.env, tmp_path) as screen:
        screen.type("sandbox-agent run --agent stubborn hello; echo code $?")
        screen.wait_for("No.")
        screen.press("C-c")
        screen.wait_for("cancelling")
        screen.press("C-c")
        screen.wait_for("code 130")


def test_markdown_is_drawn(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    text = "# A title\n\nSome *text*:\n\n- one\n- two\n\n```\ncode\n\nmore code\n```\n\nThe end.\n"
    (tmp_path / "prompt.md").write_text(text)
    with terminal(shell.env, tmp_path) as screen:
        screen.type("sandbox-agent run --agent mock - < prompt.md; echo code $?")
        shown = screen.wait_for("code 0")
    assert "                                    A title" in shown
    assert " • one\n • two" in shown
    assert "```" not in shown
    assert shown.index("more code") < shown.index("The end.")


def test_a_second_terminal_watches_and_answers(tmp_path: Path) -> None:
    with serving(tmp_path) as shell, terminal(shell.env, tmp_path) as first, terminal(shell.env, tmp_path) as second:
        first.type("sandbox-agent run --agent mock 'thought Hmm; tool ls' ; echo code $?")
        first.wait_for("y/a/n/r?")
        session = shell.json("sessions", "list", "--json")[0]["sessionId"]
        second.type(f"sandbox-agent sessions attach {session}")
        shown = second.wait_for("y/a/n/r?")
        assert "Hmm" in shown
        second.type("y")
        assert "● Run ls  completed" in first.wait_for("code 0")
        second.wait_for("The tool ran.")
        second.press("C-c")
        second.wait_for("\n>")
