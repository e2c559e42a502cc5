"""A terminal of 80 columns in which a program runs, driven by keys and read as the screen shows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

DEADLINE = 40.0

needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None and os.environ.get("REQUIRE_ALL") != "1", reason="tmux is not installed"
)


class Terminal:
    def __init__(self, socket: str, env: Mapping[str, str]) -> None:
        self._command = ["tmux", "-L", socket, "-f", os.devnull]
        self._env = dict(env)

    def start(self, cwd: Path) -> None:
        self._tmux("new-session", "-d", "-x", "80", "-y", "40", "-c", str(cwd), "PS1='> ' exec sh")
        self.wait_for(">")

    def type(self, text: str) -> None:
        """A line, with Enter."""
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    def screen(self) -> str:
        shown = self._tmux("capture-pane", "-p", "-S", "-200")
        return "\n".join(line.rstrip() for line in shown.splitlines()).rstrip()

    def wait_for(self, text: str) -> str:
        """The screen once `text` is on it."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if text in (screen := self.screen()):
                return screen
            time.sleep(0.05)
        pytest.fail(f"{text!r} did not appear on:\n{self.screen()}")

    def kill(self) -> None:
        subprocess.run([*self._command, "kill-server"], env=self._env, capture_output=True)

    def _tmux(self, *args: str) -> str:
        done = subprocess.run([*self._command, *args], env=self._env, capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def terminal(env: Mapping[str, str], cwd: Path) -> Iterator[Terminal]:
    made = Terminal(f"test-{uuid.uuid4().hex[:12]}", {**env, "TERM": "xterm-256color"})
    try:
        made.start(cwd)
        yield made
    finally:
        made.kill()
