"""Commands where the server runs: to their end, or in the background with output, input and a terminal."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sandbox_agent.client.api import Api
from sandbox_agent.client.rpc.sse import EventParser
from sandbox_agent.errors import ConnectionLost, ShuttingDown

if TYPE_CHECKING:
    from sandbox_agent.client.terminal import TerminalConnection

_SILENCE = 45.0
"""The server sends a heartbeat every 15 s: a log that is silent for longer is dead."""
_RETRY_FOR = 60.0
_PIECE = 48 << 10

Stream = Literal["stdout", "stderr", "pty"]


class ProcessInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One that has exited has either `exit_code` or `signal`. Commands of agents have the owner `agent`."""

    id: str
    command: str
    args: list[str]
    tty: bool
    interactive: bool
    owner: str
    status: Literal["running", "exited"]
    created_at_ms: int
    cwd: str | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    exited_at_ms: int | None = None
    agent: str | None = None
    session_id: str | None = None
    lost: bool = False

    @property
    def is_running(self) -> bool:
        return self.status == "running"


class ProcessResult(msgspec.Struct, frozen=True, rename="camel"):
    """`exit_code` is None if a signal or the time limit ended it."""

    exit_code: int | None
    signal: str | None
    timed_out: bool
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    duration_ms: int


class Output(msgspec.Struct, frozen=True):
    """A piece of output. `missed` is how many pieces before it the server no longer had."""

    sequence: int
    stream: Stream
    data: bytes
    missed: int = 0

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")


class Process:
    """Iterate over it for its output, from the beginning; afterwards `info` says how it exited."""

    def __init__(self, api: Api, info: ProcessInfo, *, is_held: bool = False) -> None:
        self._api = api
        self._is_held = is_held
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    def __aiter__(self) -> AsyncIterator[Output]:
        return self.output()

    async def output(self, *, after: int = 0) -> AsyncIterator[Output]:
        """What it prints, until it exits. A connection that is lost is opened again where it was."""
        position, patience = after, _Patience()
        while True:
            try:
                async for kind, number, value in self._events(position):
                    patience.reset()
                    if kind == "exit":
                        self.info = msgspec.convert(value, ProcessInfo)
                        return
                    if kind == "log":
                        content = base64.b64decode(value["data"])
                        yield Output(number, value["stream"], content, max(0, number - position - 1))
                        position = number
            except (ConnectionLost, ShuttingDown) as error:
                await patience.wait(error)

    async def wait(self) -> ProcessInfo:
        """How it exited, once it has."""
        async for _ in self.output(after=1 << 53):
            pass
        return self.info

    async def write(self, data: bytes | str) -> None:
        """Write all of it to the input, at the pace at which the process reads. Raises Conflict."""
        content = data.encode() if isinstance(data, str) else data
        while content:
            body = {"data": base64.b64encode(content[:_PIECE]).decode(), "encoding": "base64"}
            taken = (await self._post("input", body=body))["bytesWritten"]
            content = content[taken:]

    async def close_input(self) -> None:
        await self._post("input", body={"data": "", "eof": True})

    async def resize(self, cols: int, rows: int) -> None:
        await self._post("terminal/resize", body={"cols": cols, "rows": rows})

    async def stop(self, *, wait: float = 0.0, signal: str = "TERM") -> ProcessInfo:
        """Signal the whole process group; wait up to so many seconds for the exit."""
        return await self._signal("stop", wait, signal=signal)

    async def kill(self, *, wait: float = 0.0) -> ProcessInfo:
        return await self._signal("kill", wait)

    async def delete(self) -> None:
        """Forget it and its log. Raises Conflict while it runs."""
        await self._api.request("DELETE", f"/v1/processes/{self.id}")

    def terminal(self, *, after: int | None = None) -> TerminalConnection:
        """Its terminal, for `async with`: keys in, screen out."""
        from sandbox_agent.client.terminal import TerminalConnection  # noqa: PLC0415 - websockets takes long to import

        return TerminalConnection(self._api, self.id, after=after)

    async def _signal(self, verb: str, wait: float, **query: Any) -> ProcessInfo:
        answer = await self._post(verb, waitMs=round(wait * 1000), timeout=wait + 60.0, **query)
        self.info = msgspec.convert(answer, ProcessInfo)
        return self.info

    async def _post(self, verb: str, **call: Any) -> Any:
        return await self._api.post(f"/v1/processes/{self.id}/{verb}", **call)

    async def _events(self, after: int) -> AsyncIterator[tuple[str, int, Any]]:
        query = {"follow": True, "hold": self._is_held or None}
        headers = {"Last-Event-ID": str(after), "Accept": "text/event-stream"}
        parser = EventParser()
        path = f"/v1/processes/{self.id}/logs"
        async with self._api.stream(path, query=query, headers=headers, timeout=_SILENCE) as response:
            async for chunk in response.aiter_raw():
                for event in parser.feed(chunk):
                    yield event.kind, event.id or 0, msgspec.json.decode(event.data)
        raise ConnectionLost("the log ended before the process")


class Processes:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def run(
        self,
        command: str,
        *args: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
        session_id: str | None = None,
    ) -> ProcessResult:
        """Run a command to its end. `timeout` is in seconds. Raises InvalidParams for one that cannot be started."""
        body = {
            **_body(command, args, cwd, env, session_id),
            **({} if timeout is None else {"timeoutMs": round(timeout * 1000)}),
            **({} if max_output_bytes is None else {"maxOutputBytes": max_output_bytes}),
        }
        return msgspec.convert(await self._api.post("/v1/processes/run", body=body, timeout=None), ProcessResult)

    async def start(
        self,
        command: str,
        *args: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        tty: bool = False,
        interactive: bool = False,
        size: tuple[int, int] | None = None,
        hold: bool = False,
        session_id: str | None = None,
    ) -> Process:
        """Start a process. `interactive` gives it an input, `tty` a terminal of `size` (columns, rows).

        With `hold` it waits for whoever iterates over it, so that no output is dropped, however much there is."""
        body = {**_body(command, args, cwd, env, session_id), "tty": tty, "interactive": interactive, "hold": hold}
        if size is not None:
            body["cols"], body["rows"] = size
        info = msgspec.convert(await self._api.post("/v1/processes", body=body), ProcessInfo)
        return Process(self._api, info, is_held=hold)

    async def list(self, *, owner: str | None = None) -> list[ProcessInfo]:
        return msgspec.convert((await self._api.get("/v1/processes", owner=owner))["processes"], list[ProcessInfo])

    async def get(self, process_id: str) -> Process:
        """Raises NotFound."""
        return Process(self._api, msgspec.convert(await self._api.get(f"/v1/processes/{process_id}"), ProcessInfo))

    async def config(self) -> dict[str, int]:
        """The limits, by their names in HTTP."""
        limits: dict[str, int] = await self._api.get("/v1/processes/config")
        return limits

    async def set_config(self, **limits: int) -> dict[str, int]:
        """Change some of the limits until the server stops."""
        body = {**await self.config(), **limits}
        changed: dict[str, int] = await self._api.post("/v1/processes/config", body=body)
        return changed


class _Patience:
    """Waits longer each time, and gives up when a server stays away."""

    def __init__(self) -> None:
        self._waited = 0.0
        self._next = 0.1

    def reset(self) -> None:
        self._waited, self._next = 0.0, 0.1

    async def wait(self, error: Exception) -> None:
        if self._waited >= _RETRY_FOR:
            raise error
        pause = self._next * random.uniform(0.5, 1.0)
        await asyncio.sleep(pause)
        self._waited += pause
        self._next = min(self._next * 2, 5.0)


def _body(
    command: str, args: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, session_id: str | None
) -> dict[str, Any]:
    given = {"cwd": cwd, "env": None if env is None else dict(env), "sessionId": session_id}
    return {
        "command": command,
        "args": list(args),
        **{name: value for name, value in given.items() if value is not None},
    }
