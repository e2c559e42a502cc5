"""`/pty`: terminals of OpenCode's clients. They are processes with a terminal, the same that `/v1/processes` has."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.core.users import User
from sandbox_agent.errors import InvalidParams, NotFound
from sandbox_agent.history.opencode import Told
from sandbox_agent.http.asgi.exchange import header
from sandbox_agent.http.asgi.messages import Response
from sandbox_agent.http.doors.opencode import bodies
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.errors import OpenCodeError, not_found
from sandbox_agent.http.doors.opencode.followers import Followers
from sandbox_agent.http.doors.opencode.terminal_socket import TerminalSocket
from sandbox_agent.http.doors.opencode.terminal_text import TerminalText
from sandbox_agent.hub.feed import Change
from sandbox_agent.hub.processes.process import Process
from sandbox_agent.hub.processes.processes import Processes
from sandbox_agent.hub.processes.views import ProcessInfo, StartProcess

_PREFIX, _PROCESS = "pty_", "proc_"
_TITLE_CHARS = 200
_KILLED_SECONDS = 5.0
_ASKS_FOR_TICKET = (b"x-opencode-ticket", b"1")
"""A header that a page of another origin cannot send unasked."""
_SHELLS = Path("/etc/shells")
_USUAL = ("/bin/bash", "/bin/sh")


class _Change(msgspec.Struct, rename="camel"):
    process: ProcessInfo | None = None
    process_id: str | None = None


@dataclass(slots=True)
class _Shown:
    """What OpenCode knows of a terminal besides its process."""

    title: str
    directory: str
    text: TerminalText


class Terminals:
    """`issue_ticket` gives a name with which a WebSocket may be opened once, within `ticket_seconds`."""

    def __init__(
        self,
        processes: Processes,
        followers: Followers,
        directory: str,
        issue_ticket: Callable[[User], str],
        ticket_seconds: float,
    ) -> None:
        self._processes = processes
        self._followers = followers
        self._directory = directory
        self._issue_ticket = issue_ticket
        self._ticket_seconds = int(ticket_seconds)
        self._shown: dict[str, _Shown] = {}
        """By process, of those that run."""

    async def shells(self, call: Call) -> list[dict[str, Any]]:
        return [{"path": path, "name": Path(path).name, "acceptable": True} for path in self._shells()]

    async def listed(self, call: Call) -> list[dict[str, Any]]:
        """Those that run, of the client's directory if it names one."""
        self._processes.require_allowed()
        wanted = call.directory
        running = [info for info in self._processes.listed() if info.tty and info.status == "running"]
        shown = [(info, self._show(info.id)) for info in running]
        return [_view(info, known) for info, known in shown if wanted in (None, known.directory)]

    async def create(self, call: Call) -> dict[str, Any]:
        wanted = await call.body(bodies.NewTerminal)
        directory = call.directory or self._directory
        command = wanted.command or self._shells()[0]
        is_shell = command in self._shells() and not wanted.args
        info = await self._processes.start(
            StartProcess(
                command=command,
                args=["-l"] if is_shell else wanted.args,
                cwd=str(Path(directory) / (wanted.cwd or "")),
                env=wanted.env,
                tty=True,
            )
        )
        known = self._show(info.id)
        known.directory = directory
        known.title = (wanted.title or f"Terminal {info.id[-4:]}")[:_TITLE_CHARS]
        self._tell("pty.created", known, info=_view(info, known))
        return _view(info, known)

    async def show(self, call: Call) -> dict[str, Any]:
        process = self._of(call)
        return _view(process.info, self._show(process.info.id))

    async def change(self, call: Call) -> dict[str, Any]:
        process, wanted = self._of(call), await call.body(bodies.TerminalChange)
        known = self._show(process.info.id)
        if wanted.size is not None:
            process.resize(wanted.size)
        if wanted.title is not None:
            known.title = wanted.title[:_TITLE_CHARS]
        told = _view(process.info, known)
        self._tell("pty.updated", known, info=told)
        return told

    async def delete(self, call: Call) -> bool:
        """End it with all that it runs. Its clients are told of the deletion, and not of the exit."""
        info = self._of(call).info
        known = self._show(info.id)
        del self._shown[info.id]
        self._tell("pty.deleted", known, id=_id_of(info.id))
        await self._processes.kill(info.id, wait=_KILLED_SECONDS)
        return True

    async def ticket(self, call: Call) -> dict[str, Any]:
        if header(call.scope, _ASKS_FOR_TICKET[0]) != _ASKS_FOR_TICKET[1].decode():
            raise OpenCodeError(403, {"_tag": _forbidden(call), "message": "Invalid PTY connect token request"})
        self._of(call)
        return {"ticket": self._issue_ticket(call.user), "expires_in": self._ticket_seconds}

    async def connect(self, call: Call) -> Response | None:
        process = self._of(call)
        if call.scope["type"] != "websocket":
            raise InvalidParams("this endpoint is a WebSocket; send an upgrade")
        text = self._show(process.info.id).text
        await TerminalSocket(call, process, text, limit=self._processes.limits.max_input_bytes_per_request).run()
        return None

    def heard(self, change: Change) -> None:
        """A process was started or has ended, wherever that was asked for."""
        told = msgspec.json.decode(change.body, type=_Change)
        info = told.process
        if info is None or not info.tty:
            return
        if change.kind == "process.started":  # not at once: `create` tells of its own, with their titles
            asyncio.get_running_loop().call_soon(self._tell_started, info)
        elif change.kind == "process.exited" and (gone := self._shown.pop(info.id, None)) is not None:
            self._tell("pty.exited", gone, id=_id_of(info.id), exitCode=_exit_code(info))

    def _tell_started(self, info: ProcessInfo) -> None:
        if info.id not in self._shown and info.status == "running":
            known = self._show(info.id)
            self._tell("pty.created", known, info=_view(info, known))

    def _of(self, call: Call) -> Process:
        self._processes.require_allowed()
        given = call.path["ptyID"]
        if not given.startswith(_PREFIX.rstrip("_")):
            raise InvalidParams(f"ptyID must begin with 'pty', not {given[:80]!r}")
        try:
            process = self._processes.get(_PROCESS + given.removeprefix(_PREFIX))
        except NotFound:
            process = None
        if process is None or not process.info.tty or not process.is_running or _id_of(process.info.id) != given:
            raise not_found("PtyNotFoundError", "ptyID", given[:80], "PTY session")
        return process

    def _show(self, process_id: str) -> _Shown:
        known = self._shown.get(process_id)
        if known is None:
            self._forget_ended()
            process = self._processes.get(process_id)
            info = process.info
            title = " ".join([info.command, *info.args])[:_TITLE_CHARS]
            known = _Shown(title, info.cwd or self._directory, TerminalText(process.log))
            self._shown[process_id] = known
        return known

    def _shells(self) -> list[str]:
        """The user's own first, then those that the system lists."""
        try:
            listed = [line.strip() for line in _SHELLS.read_text().splitlines() if line.startswith("/")]
        except (OSError, UnicodeDecodeError):
            listed = []
        wanted = [self._processes.environ.get("SHELL", ""), *_USUAL, *listed]
        found = [path for path in wanted if path and os.access(path, os.X_OK) and Path(path).is_file()]
        return list(dict.fromkeys(found)) or [_USUAL[-1]]

    def _forget_ended(self) -> None:
        """Nobody follows the changes all the time."""
        running = {info.id for info in self._processes.listed() if info.status == "running"}
        self._shown = {id_: known for id_, known in self._shown.items() if id_ in running}

    def _tell(self, type_: str, known: _Shown, **properties: Any) -> None:
        self._followers.tell(known.directory, [Told(type_, properties)])


def _id_of(process_id: str) -> str:
    return _PREFIX + process_id.removeprefix(_PROCESS)


def _view(info: ProcessInfo, known: _Shown) -> dict[str, Any]:
    """OpenCode's Pty."""
    return {
        "id": _id_of(info.id),
        "title": known.title,
        "command": info.command,
        "args": info.args,
        "cwd": info.cwd or known.directory,
        "status": info.status,
        "pid": info.pid or 0,
    }


def _exit_code(info: ProcessInfo) -> int:
    """As a shell tells it: 128 and the number of the signal that ended it."""
    if info.exit_code is not None:
        return info.exit_code
    named = signal.Signals.__members__.get(info.signal or "", signal.SIGKILL)
    return 128 + named


def _forbidden(call: Call) -> str:
    return "ForbiddenError" if "/api/pty/" in call.scope["path"] else "PtyForbiddenError"
