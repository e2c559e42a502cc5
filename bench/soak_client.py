"""A client of `/v1/rpc` on asyncio streams that checks every event it gets."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import count
from typing import Any

from bench.servers import TOKEN

DEADLINE = 60.0
_MARK = re.compile(rb'"text":"#(\d+)/(\d+) ')


class Wrong(Exception):
    """An event was lost, came twice, or an answer did not come."""


class Ledger:
    """What one session's agents have said: every number once and in order, per agent process."""

    def __init__(self) -> None:
        self.next: dict[bytes, int] = {}
        self.events = 0

    def take(self, line: bytes) -> None:
        mark = _MARK.search(line)
        if mark is None:
            return
        sequence, process = int(mark[1]), mark[2]
        expected = self.next.get(process, 0)
        if sequence != expected:
            raise Wrong(f"update {sequence} of process {process!r} came where {expected} was due")
        self.next[process] = sequence + 1
        self.events += 1


class Connection:
    """One connection to the server: requests on sockets of their own, and a stream that can be left and taken up."""

    def __init__(self, port: int, ledger: Ledger) -> None:
        self._port = port
        self._ledger = ledger
        self._id = ""
        self._keys = count(1)
        self._reading: asyncio.Task[None] | None = None
        self._came = asyncio.Event()
        self.last_id = 0
        self.permission: dict[str, Any] | None = None

    async def open(self) -> None:
        meta = {"sandboxagent.dev": {"agent": "stub"}}
        _, headers = await self.request("initialize", {"protocolVersion": 1, "_meta": meta})
        self._id = headers["x-acp-connection-id"]

    async def request(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        message = {"jsonrpc": "2.0", "id": next(self._keys), "method": method, "params": params}
        status, headers, body = await self._exchange("POST", json.dumps(message).encode())
        if status != 200:
            raise Wrong(f"{method}: {status} {body[:300]!r}")
        return json.loads(body), headers

    async def tell(self, message: dict[str, Any]) -> None:
        status, _, body = await self._exchange("POST", json.dumps({"jsonrpc": "2.0", **message}).encode())
        if status != 202:
            raise Wrong(f"{message}: {status} {body[:300]!r}")

    async def close(self) -> None:
        await self.leave()
        await self._exchange("DELETE", b"")

    def listen(self) -> None:
        self._reading = asyncio.create_task(self._read())

    async def leave(self) -> None:
        """Drop the stream; `listen` takes it up after the last event that came."""
        if self._reading is not None:
            reading, self._reading = self._reading, None
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def reached(self, event_id: int) -> None:
        """Wait until the stream has brought this event."""
        await self._until(lambda: self.last_id >= event_id, f"event {event_id}, at {self.last_id}")

    async def asked(self) -> dict[str, Any]:
        await self._until(lambda: self.permission is not None, "a permission request")
        found, self.permission = self.permission, None
        if found is None:
            raise Wrong("no permission request")
        return found

    async def _until(self, is_so: Any, what: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE):
                while not is_so():
                    self._came.clear()
                    if self._reading is not None and self._reading.done():
                        self._reading.result()
                        self.listen()
                    waiting = asyncio.create_task(self._came.wait())
                    try:
                        both = {waiting, *([self._reading] if self._reading else [])}
                        await asyncio.wait(both, return_when="FIRST_COMPLETED")
                    finally:
                        waiting.cancel()
        except TimeoutError:
            raise Wrong(f"{what} did not come within {DEADLINE:g} s") from None

    def _head(self, verb: str, *lines: str) -> bytes:
        every = [f"{verb} /v1/rpc HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {TOKEN}", *lines]
        every += [f"x-acp-connection-id: {self._id}"] if self._id else []
        return ("\r\n".join(every) + "\r\n\r\n").encode()

    async def _exchange(self, verb: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            lines = ("content-type: application/json", f"content-length: {len(body)}", "connection: close")
            writer.write(self._head(verb, *lines) + body)
            async with asyncio.timeout(DEADLINE):
                answer = await reader.read()
            head, _, rest = answer.partition(b"\r\n\r\n")
            status, *pairs = head.decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (pair.partition(": ") for pair in pairs)}
            return int(status.split()[1]), headers, rest
        except TimeoutError:
            raise Wrong(f"no answer within {DEADLINE:g} s to {body[:200]!r}") from None
        finally:
            writer.close()

    async def _read(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        try:
            writer.write(self._head("GET", "accept: text/event-stream", f"last-event-id: {self.last_id}"))
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n", 1)[0]:
                raise Wrong(f"stream: {head!r}")
            text = b""
            while size := int(await reader.readuntil(b"\r\n"), 16):
                text += (await reader.readexactly(size + 2))[:-2]
                *blocks, text = text.split(b"\n\n")
                for block in blocks:
                    if not block.startswith(b":"):
                        self._take(block)
                self._came.set()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    def _take(self, block: bytes) -> None:
        _, event_id, data = block.split(b"\n", 2)
        number = int(event_id.removeprefix(b"id: "))
        if number != self.last_id + 1:
            raise Wrong(f"event {number} came after event {self.last_id}")
        self.last_id = number
        self._ledger.take(data)
        if b'"session/request_permission"' in data:
            message = json.loads(data.removeprefix(b"data: "))
            if "id" in message:  # a notice may name the method too
                self.permission = message
