"""`/v1/processes`: commands in the sandbox over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from signal import Signals
from typing import Annotated, Literal

import msgspec

from sandbox_agent.core.ids import SessionName
from sandbox_agent.errors import (
    ClientGone,
    Conflict,
    Forbidden,
    InvalidParams,
    NotFound,
    TooLarge,
    TooMany,
    UnknownSession,
    UnsupportedMediaType,
)
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import Response
from sandbox_agent.http.asgi.routes import Operation
from sandbox_agent.http.asgi.sse import peer_left
from sandbox_agent.hub.hub import Hub
from sandbox_agent.hub.processes.process import Session
from sandbox_agent.hub.processes.views import (
    InputTaken,
    Owner,
    ProcessConfig,
    ProcessInfo,
    ProcessInput,
    ProcessList,
    ProcessResult,
    RunProcess,
    StartProcess,
    TerminalSize,
)


class ProcessesQuery(msgspec.Struct):
    owner: Owner | None = None


class SignalQuery(msgspec.Struct, rename="camel"):
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=300_000)] = 0


class StopQuery(SignalQuery, rename="camel"):
    signal: Literal["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"] = "TERM"


_TAG = "processes"
_BODY = (InvalidParams, UnsupportedMediaType, TooLarge)
_LAUNCH = (*_BODY, Forbidden, UnknownSession, Conflict, TooMany)
_LAUNCHING = (
    "The process runs in a process group of its own, with the environment that agents get and `env` on top. Its "
    "working directory must lie within `fs_root`. A program that cannot be found is a 400 that names it."
)
RUN_PROCESS = Operation(
    "runProcess",
    "Run a command and wait for it",
    _TAG,
    "The whole process group ends with the command, with the time limit, or when the client closes the connection. "
    + _LAUNCHING,
    body=RunProcess,
    returns=ProcessResult,
    errors=_LAUNCH,
)
START_PROCESS = Operation(
    "startProcess",
    "Start a process",
    _TAG,
    "It runs until it exits or is stopped, or the server stops; with `tty`, in a terminal. " + _LAUNCHING,
    body=StartProcess,
    returns=ProcessInfo,
    errors=_LAUNCH,
)
LIST_PROCESSES = Operation(
    "listProcesses",
    "List processes",
    _TAG,
    "Oldest first: those that run, also the commands of agents (`owner` `agent`), and the newest that have exited.",
    query=ProcessesQuery,
    returns=ProcessList,
    errors=(InvalidParams, Forbidden),
)
SHOW_PROCESS = Operation("showProcess", "Get a process", _TAG, returns=ProcessInfo, errors=(NotFound, Forbidden))
STOP_PROCESS = Operation(
    "stopProcess",
    "Stop a process (SIGTERM)",
    _TAG,
    "Signals the whole process group, with `signal` if given; SIGTERM also hangs up a terminal. Waits up to `waitMs` "
    "for the exit.",
    query=StopQuery,
    returns=ProcessInfo,
    errors=(InvalidParams, NotFound, Forbidden, UnsupportedMediaType),
)
KILL_PROCESS = Operation(
    "killProcess",
    "Kill a process (SIGKILL)",
    _TAG,
    "Kills the whole process group. Waits up to `waitMs` for the exit.",
    query=SignalQuery,
    returns=ProcessInfo,
    errors=(InvalidParams, NotFound, Forbidden, UnsupportedMediaType),
)
DELETE_PROCESS = Operation(
    "deleteProcess",
    "Delete a process that has exited",
    _TAG,
    "With its log. 409 while it runs.",
    status=204,
    errors=(NotFound, Conflict, Forbidden),
)
WRITE_INPUT = Operation(
    "writeProcessInput",
    "Write to a process's input",
    _TAG,
    "`data` is base64 unless `encoding` says `utf8`. Waits up to 10 seconds for the process to read it.",
    body=ProcessInput,
    returns=InputTaken,
    errors=(*_BODY, NotFound, Conflict, Forbidden),
)
RESIZE_TERMINAL = Operation(
    "resizeProcessTerminal",
    "Resize a process's terminal",
    _TAG,
    body=TerminalSize,
    returns=TerminalSize,
    errors=(*_BODY, NotFound, Conflict, Forbidden),
)
SHOW_CONFIG = Operation(
    "showProcessConfig", "Get the limits of processes", _TAG, returns=ProcessConfig, errors=(Forbidden,)
)
CHANGE_CONFIG = Operation(
    "changeProcessConfig",
    "Change the limits of processes",
    _TAG,
    "Until the server stops; the settings have the limits that it starts with.",
    body=ProcessConfig,
    returns=ProcessConfig,
    errors=(*_BODY, Forbidden),
)


@asynccontextmanager
async def _while_connected(exchange: Exchange) -> AsyncIterator[None]:
    """Cancel the block when the peer leaves, and raise ClientGone. It runs in this task: others would cost time."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - there is one wherever something can be awaited
    is_over = is_gone = False

    def left(_: asyncio.Future[None]) -> None:
        nonlocal is_gone
        if not is_over:
            is_gone = True
            task.cancel()

    leaving = asyncio.ensure_future(peer_left(exchange.receive))
    leaving.add_done_callback(left)
    try:
        yield
    except asyncio.CancelledError:
        if is_gone and task.uncancel() == 0:
            raise ClientGone from None
        raise
    finally:
        is_over = True
        leaving.cancel()


class ProcessesApi:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._processes = hub.processes

    async def run(self, exchange: Exchange) -> ProcessResult:
        self._processes.require_allowed()
        wanted = await exchange.json(RunProcess)
        session = await self._session(wanted.session_id)
        async with _while_connected(exchange):
            return await self._processes.run(wanted, session)

    async def start(self, exchange: Exchange) -> ProcessInfo:
        self._processes.require_allowed()
        wanted = await exchange.json(StartProcess)
        return await self._processes.start(wanted, await self._session(wanted.session_id))

    async def list(self, exchange: Exchange) -> ProcessList:
        self._processes.require_allowed()
        return ProcessList(self._processes.listed(exchange.query(ProcessesQuery).owner))

    async def show(self, exchange: Exchange) -> ProcessInfo:
        self._processes.require_allowed()
        return self._processes.get(exchange.path("id")).info

    async def stop(self, exchange: Exchange) -> ProcessInfo:
        process, wait = self._signalled(exchange, StopQuery)
        number = Signals[f"SIG{exchange.query(StopQuery).signal}"]
        return await self._processes.stop(process, wait=wait, number=number)

    async def kill(self, exchange: Exchange) -> ProcessInfo:
        process, wait = self._signalled(exchange, SignalQuery)
        return await self._processes.kill(process, wait=wait)

    async def delete(self, exchange: Exchange) -> Response:
        self._processes.require_allowed()
        await self._processes.delete(exchange.path("id"))
        return Response(204)

    async def write(self, exchange: Exchange) -> InputTaken:
        self._processes.require_allowed()
        self._processes.get(exchange.path("id"))
        wanted = await exchange.json(ProcessInput)
        return InputTaken(await self._processes.write(exchange.path("id"), wanted.content(), is_last=wanted.eof))

    async def resize(self, exchange: Exchange) -> TerminalSize:
        self._processes.require_allowed()
        return self._processes.resize(exchange.path("id"), await exchange.json(TerminalSize))

    async def show_config(self, exchange: Exchange) -> ProcessConfig:
        self._processes.require_allowed()
        return self._processes.limits

    async def change_config(self, exchange: Exchange) -> ProcessConfig:
        self._processes.require_allowed()
        return self._processes.configure(await exchange.json(ProcessConfig))

    def _signalled(self, exchange: Exchange, query: type[SignalQuery]) -> tuple[str, float]:
        self._processes.require_allowed()
        exchange.refuse_forms()
        return exchange.path("id"), exchange.query(query).wait_ms / 1000

    async def _session(self, session_id: str | None) -> Session | None:
        if session_id is None:
            return None
        record = await self._hub.sessions.look_up(SessionName(session_id))
        return Session(record.session_id, record.agent, record.cwd)
