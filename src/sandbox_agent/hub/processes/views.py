"""What is asked of processes, and what is told of them: the words of `/v1/processes` and `_sandboxagent/process/*`."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal

import msgspec

from sandbox_agent.errors import InvalidParams

Owner = Literal["user", "agent", "desktop", "system"]
Status = Literal["running", "exited"]
LogStream = Literal["stdout", "stderr", "combined", "pty"]

_Positive = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Size = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class ProcessConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The limits of processes. They start as the settings say; a change lasts until the server stops."""

    max_concurrent_processes: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    default_run_timeout_ms: _Positive
    max_run_timeout_ms: _Positive
    max_output_bytes: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]
    """Of a command that `run` waits for: of each of its two streams."""
    max_log_bytes_per_process: Annotated[int, msgspec.Meta(ge=1, le=1 << 34)]
    """For processes that are started from now on."""
    max_input_bytes_per_request: Annotated[int, msgspec.Meta(ge=1, le=1 << 26)]


class _Command(msgspec.Struct, kw_only=True, rename="camel"):
    command: str
    args: list[str] = []
    cwd: str | None = None
    """Relative paths start at the working directory of the session, if given, or of the server."""
    env: dict[str, str] = {}
    session_id: str | None = None


class RunProcess(_Command, kw_only=True, rename="camel"):
    timeout_ms: _Positive | None = None
    max_output_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None


class StartProcess(_Command, kw_only=True, rename="camel"):
    tty: bool = False
    interactive: bool = False
    """Whether it has an input that can be written to; with a terminal it always has."""
    cols: Size = 80
    rows: Size = 24
    hold: bool = False
    """Let it wait, rather than drop output, until somebody follows its log with `hold`; for 30 seconds at most."""


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`exitCode` is null if it was ended by a signal, which `signal` names, or by the time limit."""

    exit_code: int | None
    signal: str | None
    timed_out: bool
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    duration_ms: int


class ProcessInfo(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A process that has exited has either `exitCode` or `signal`. Commands of agents have `owner` `agent`."""

    id: str
    command: str
    args: list[str]
    tty: bool
    interactive: bool
    owner: Owner
    status: Status
    created_at_ms: int
    cwd: str | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    exited_at_ms: int | None = None
    agent: str | None = None
    session_id: str | None = None
    """The session that it was started for, or whose agent started it."""
    lost: bool = False
    """It ran when the server was killed, and was ended with it: how it would have exited is not known."""


class ProcessList(msgspec.Struct, frozen=True):
    processes: list[ProcessInfo]


class ProcessInput(msgspec.Struct, kw_only=True, rename="camel"):
    """`eof` closes the input afterwards; on a terminal, send Ctrl-D (`\u0004`) instead."""

    data: str
    encoding: Literal["base64", "utf8", "text"] | None = None
    eof: bool = False

    def content(self) -> bytes:
        """Raises InvalidParams."""
        return decoded(self.data, self.encoding or "base64")


class InputTaken(msgspec.Struct, frozen=True, rename="camel"):
    """Fewer bytes than were sent if the process did not read them in time."""

    bytes_written: int


class TerminalSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cols: Size
    rows: Size


def decoded(data: str, encoding: str) -> bytes:
    """Raises InvalidParams."""
    try:
        return base64.b64decode(data, validate=True) if encoding == "base64" else data.encode()
    except (binascii.Error, ValueError):
        wanted = "base64" if encoding == "base64" else "valid Unicode"
        raise InvalidParams(f"data is not {wanted}", field="data") from None
