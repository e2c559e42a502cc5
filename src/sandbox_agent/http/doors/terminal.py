"""`/v1/processes/{id}/terminal/ws`: a process's terminal over a WebSocket, for any number of people at once.

Output is one binary frame for each entry of the log; `ready` says after which number they begin, so that one who lost
the socket can count, and go on with `after`. All else is JSON in text frames.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from sandbox_agent.errors import ClientError, Conflict, InvalidParams, TooLarge
from sandbox_agent.http.asgi.exchange import query_values
from sandbox_agent.http.asgi.messages import Receive, Scope, Send
from sandbox_agent.http.asgi.websocket import Close, accept, close, gone, payload, send_within
from sandbox_agent.http.doors.operations import TerminalQuery
from sandbox_agent.hub.processes.process import Process
from sandbox_agent.hub.processes.processes import Processes
from sandbox_agent.hub.processes.views import Size, TerminalSize, decoded

_TICK = 15.0
_REPLAY = 1 << 18
"""Bytes of earlier output, at most, for one who comes later."""


class _Input(msgspec.Struct, tag="input"):
    data: str
    encoding: Literal["base64", "utf8", "text"] | None = None


class _Resize(msgspec.Struct, tag="resize"):
    cols: Size
    rows: Size


class _Eof(msgspec.Struct, tag="eof"):
    pass


class _Close(msgspec.Struct, tag="close"):
    pass


_decoder = msgspec.json.Decoder(_Input | _Resize | _Eof | _Close)


class TerminalDoor:
    """Raw ASGI. Whoever typed last decides about the size."""

    def __init__(self, processes: Processes, elsewhere: Callable[[Scope, Receive, Send], Awaitable[bool]]) -> None:
        """`elsewhere` serves who wants a terminal of another node, and says whether it was one."""
        self._processes = processes
        self._elsewhere = elsewhere
        self._typing: dict[str, _Viewer] = {}
        """By process: who typed last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and await self._elsewhere(scope, receive, send):
            return
        self._processes.require_allowed()
        if scope["type"] != "websocket":
            raise InvalidParams("this endpoint is a WebSocket; send an upgrade")
        process = self._processes.get(scope["path_params"]["id"])
        if not process.info.tty:
            raise Conflict(f"process {process.info.id!r} has no terminal; read its logs, and write to its input")
        wanted = _read_query(scope)
        await receive()  # websocket.connect
        await accept(send, scope, [])
        viewer = _Viewer(self._processes, process, self._typing, send)
        await viewer.run(scope, receive, wanted)


class _Viewer:
    def __init__(self, processes: Processes, process: Process, typing: dict[str, _Viewer], send: Send) -> None:
        self._processes = processes
        self._process = process
        self._typing = typing
        self._send = send
        self._size: TerminalSize | None = None
        self._resized = asyncio.Event()

    async def run(self, scope: Scope, receive: Receive, wanted: TerminalQuery) -> None:
        reading = asyncio.create_task(self._read(receive))
        writing = asyncio.create_task(self._write(wanted.after))
        leaving = asyncio.create_task(gone(scope))
        tasks = {reading, writing, leaving}
        if wanted.resizes:
            self._process.on_resize.add(self._resized.set)
            tasks.add(asyncio.create_task(self._tell_resizes()))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if writing.done():
                await close(self._send, Close.NORMAL, "process has exited")
        finally:
            self._process.on_resize.discard(self._resized.set)
            if self._typing.get(self._process.info.id) is self:
                del self._typing[self._process.info.id]
            for task in tasks:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, receive: Receive) -> None:
        """Until the peer leaves. What cannot be taken is told, and does not end the socket."""
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            try:
                raw = payload(message, self._processes.limits.max_input_bytes_per_request * 2)
                asked = _decoder.decode(raw)
                if isinstance(asked, _Close):
                    await close(self._send, Close.NORMAL, "closed by the client")
                    return
                await self._obey(asked)
            except msgspec.MsgspecError as error:
                await self._tell(type="error", message=f"invalid message: {error}")
            except ClientError as error:
                await self._tell(type="error", message=error.detail)

    async def _obey(self, asked: _Input | _Resize | _Eof) -> None:
        process, typing = self._process, self._typing
        match asked:
            case _Input():
                content = decoded(asked.data, asked.encoding or "utf8")
                most = self._processes.limits.max_input_bytes_per_request
                if len(content) > most:
                    raise TooLarge(f"an input of {len(content)} bytes is over the limit of {most}; send it in parts")
                if typing.get(process.info.id) is not self:
                    typing[process.info.id] = self
                    self._take_size()
                    self._process.tell_size()
                await process.write(content)
            case _Resize():
                self._size = TerminalSize(asked.cols, asked.rows)
                if typing.setdefault(process.info.id, self) is self:
                    self._take_size()
                self._resized.set()
            case _Eof():
                process.close_input()

    def _take_size(self) -> None:
        if self._size is not None and self._size != self._process.size and self._process.is_running:
            self._process.resize(self._size)

    async def _tell_resizes(self) -> None:
        """Of several at once, the last."""
        while True:
            await self._resized.wait()
            self._resized.clear()
            is_own = self._typing.get(self._process.info.id) is self
            await self._tell(type="resize", **_sized(self._process), yours=is_own)

    async def _write(self, after: int | None) -> None:
        """What is printed, from where the reader left or from what is kept of late; then how it exited."""
        process = self._process
        reader = process.log.read_from(process.log.late(_REPLAY) if after is None else after)
        place = {"after": reader.position, "last": process.log.last}
        await self._tell(type="ready", processId=process.info.id, **place, **_sized(process))
        while not reader.is_over:
            piece = await reader.take(wait=_TICK)
            if piece.cut is not None:
                cut = {"fromSequence": piece.cut[0], "toSequence": piece.cut[1]}
                await self._tell(type="error", message="some output is not kept any more", cut=cut)
            for entry in piece.entries:
                await send_within(self._send, {"type": "websocket.send", "bytes": entry.content})
        await process.exited.wait()
        exited = {"exitCode": process.info.exit_code, "signal": process.info.signal}
        await self._tell(type="exit", **exited)

    async def _tell(self, **frame: Any) -> None:
        """A peer that takes nothing for long loses the socket; it can come back to where it was."""
        await send_within(self._send, {"type": "websocket.send", "text": msgspec.json.encode(frame).decode()})


def _sized(process: Process) -> dict[str, int]:
    return {} if process.size is None else {"cols": process.size.cols, "rows": process.size.rows}


def _read_query(scope: Scope) -> TerminalQuery:
    given = query_values(scope["query_string"])
    values = {name: value for name, value in given.items() if name in TerminalQuery.__struct_fields__}
    try:
        return msgspec.convert(values, TerminalQuery, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"query: {error}") from None
