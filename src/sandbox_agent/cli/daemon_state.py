"""What is known of the server in the background: a file that only its owner can read."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from sandbox_agent.settings import load_settings


class DaemonState(msgspec.Struct, frozen=True, rename="camel"):
    pid: int
    url: str
    version: str
    token: str | None = None
    log: str = ""

    def is_alive(self) -> bool:
        """Whether that process still is what we started: its number may have gone to another program."""
        try:
            command = Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except FileNotFoundError:
            return not Path("/proc/self").exists() and _exists(self.pid)
        except OSError:
            return False
        return b"sandbox_agent" in command or b"sandbox-agent" in command


def state_path(data_dir: str | None = None) -> Path:
    settings = load_settings(os.environ, None, {"data_dir": data_dir})
    return settings.data_path / "daemon.json"


def read_state(data_dir: str | None = None) -> DaemonState | None:
    try:
        return msgspec.json.decode(state_path(data_dir).read_bytes(), type=DaemonState)
    except (OSError, msgspec.MsgspecError):
        return None


def write_state(state: DaemonState, data_dir: str | None = None) -> None:
    path = state_path(data_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(state))
    partial.replace(path)


def forget_state(data_dir: str | None = None) -> None:
    state_path(data_dir).unlink(missing_ok=True)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
