"""The command `sandbox-agent` as a user runs it: a process of its own, in a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("sandbox-agent")
DEADLINE = 100.0


class Shell:
    """Runs commands with `home` as HOME, at the server `url` if there is one."""

    def __init__(self, home: Path, url: str | None = None, **env: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.env = {
            "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "SANDBOX_AGENT_DATA_DIR": str(home / "data"),
            "SANDBOX_AGENT_MOCK_STATE": str(home / "mock-state"),
            **({"SANDBOX_AGENT_ENDPOINT": url} if url is not None else {}),
            **env,
        }

    def run(self, *args: str, given: str | bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        stdin = given.encode() if isinstance(given, str) else given
        return subprocess.run(
            [COMMAND, *args],
            input=stdin,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            env=self.env,
            cwd=self.home,
            timeout=DEADLINE,
        )

    def text(self, *args: str, given: str | bytes | None = None) -> str:
        """What a command that must succeed prints."""
        done = self.run(*args, given=given)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        return done.stdout.decode()

    def json(self, *args: str, given: str | bytes | None = None) -> Any:
        return json.loads(self.text(*args, given=given))

    def lines(self, *args: str) -> list[Any]:
        return [json.loads(line) for line in self.text(*args).splitlines()]


@contextmanager
def serving(home: Path, *flags: str, config: str | None = None) -> Iterator[Shell]:
    """A shell whose commands go to a server that runs for as long as the block lasts."""
    shell = Shell(home)
    args = ["server", "--port", "0", *flags]
    if config is not None:
        (home / "config.toml").write_text(config)
        args += ["--config", str(home / "config.toml")]
    with (home / "server.log").open("ab") as log:
        process = subprocess.Popen([COMMAND, *args], stdout=subprocess.PIPE, stderr=log, env=shell.env, cwd=home)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode().strip()
        assert line.startswith("listening on "), f"{line}\n{(home / 'server.log').read_text()}"
        yield Shell(home, line.removeprefix("listening on "))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=15)
        if process.stdout is not None:
            process.stdout.close()
