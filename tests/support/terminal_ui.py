"""OpenCode's terminal UI in tmux, driven by keys and read from the screen."""

from __future__ import annotations

import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.tmux import Terminal

PATIENCE = 90.0


class TerminalUi(Terminal):
    def start_program(self, command: list[str], cwd: Path, *, rows: int) -> None:
        words, size = shlex.join(command), ("-x", "120", "-y", str(rows))
        self._tmux("new-session", "-d", *size, "-c", str(cwd), f"{words}; echo ended $?; sleep 600")

    def screen(self) -> str:
        shown = self._tmux("capture-pane", "-p")
        return "\n".join(line.rstrip() for line in shown.splitlines()).rstrip()

    def wait_for(self, text: str) -> str:
        return self.until(lambda screen: text in screen, text)

    def until(self, found: Callable[[str], bool], what: str = "", *, patience: float = PATIENCE) -> str:
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if found(screen := self.screen()):
                return screen
            time.sleep(0.1)
        pytest.fail(f"{what or 'it'} did not appear on:\n{self.screen()}")

    def type(self, words: str) -> None:
        self._tmux("send-keys", "-l", words)

    def say(self, words: str) -> None:
        """Type a prompt and send it, once the UI has taken it in."""
        self._tmux("send-keys", "-l", words)
        self.wait_for(words)
        self.press("Enter")

    def keys(self, *names: str) -> None:
        for name in names:
            self.press(name)
            time.sleep(0.2)  # two keys in one read are one key to it

    def press_until(self, key: str, found: Callable[[str], bool]) -> None:
        """Press a key, and again after a while: one that comes while the UI draws may be passed over."""
        end = time.monotonic() + PATIENCE
        while not found(shown := self.screen()):
            assert time.monotonic() < end, shown
            self.press(key)
            time.sleep(1.0)

    def interrupt(self) -> None:
        """Escape twice: the first time it asks whether that is meant, for a few seconds."""
        self.press_until("Escape", lambda shown: "interrupted" in shown)

    def choose(self, words: str, others: str) -> None:
        """Choose from a list by its words, once `others` have gone from it."""
        self._tmux("send-keys", "-l", words)
        self.until(lambda shown: others not in shown, f"the list without {others}")
        time.sleep(0.3)

    def command(self, words: str) -> None:
        """Run a command of the palette."""
        self.keys("C-p")
        self.wait_for("Commands")
        self._tmux("send-keys", "-l", words)
        self.wait_for(words)
        time.sleep(0.3)
        self.press("Enter")


@contextmanager
def terminal_ui(command: list[str], env: Mapping[str, str], cwd: Path, *, rows: int = 45) -> Iterator[TerminalUi]:
    made = TerminalUi(f"ui-{uuid.uuid4().hex[:12]}", {**env, "TERM": "xterm-256color"})
    try:
        made.start_program(command, cwd, rows=rows)
        yield made
    finally:
        made.kill()
