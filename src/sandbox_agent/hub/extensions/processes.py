"""`_sandboxagent/process/*`: processes for clients that speak ACP only. Each takes the body of its twin in HTTP."""

from __future__ import annotations

import base64
from typing import Annotated, Any

import msgspec

from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.extensions.extensions import Method
from sandbox_agent.hub.processes.logs import LogsWanted, read_log
from sandbox_agent.hub.processes.process import Session
from sandbox_agent.hub.processes.processes import Processes
from sandbox_agent.hub.processes.views import (
    InputTaken,
    Owner,
    ProcessConfig,
    ProcessInfo,
    ProcessInput,
    ProcessList,
    ProcessResult,
    RunProcess,
    Size,
    StartProcess,
    TerminalSize,
)
from sandbox_agent.hub.sessions.sessions import Sessions

_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=300_000)]


class _Listed(msgspec.Struct):
    owner: Owner | None = None


class _One(msgspec.Struct, rename="camel"):
    process_id: str
    wait_ms: _Milliseconds = 0


class _Logs(LogsWanted, rename="camel", kw_only=True):
    process_id: str
    wait_ms: _Milliseconds = 0
    """How long to wait for output when there is none after `since`."""


class _Written(ProcessInput, rename="camel", kw_only=True):
    process_id: str


class _Resized(msgspec.Struct, rename="camel"):
    process_id: str
    cols: Size
    rows: Size


class ProcessExtensions:
    def __init__(self, processes: Processes, sessions: Sessions) -> None:
        self._processes = processes
        self._sessions = sessions
        self.methods: dict[str, Method] = {
            f"_sandboxagent/process/{name}": self._allowed(method)
            for name, method in {
                "run": self._run,
                "start": self._start,
                "list": self._list,
                "get": self._get,
                "stop": self._stop,
                "kill": self._kill,
                "delete": self._delete,
                "logs": self._logs,
                "input": self._input,
                "resize": self._resize,
                "get_config": self._get_config,
                "set_config": self._set_config,
            }.items()
        }

    def _allowed(self, method: Method) -> Method:
        async def answer(request: Request) -> Any:
            self._processes.require_allowed()
            return await method(request)

        return answer

    async def _run(self, request: Request) -> ProcessResult:
        return await self._processes.run(request.read(RunProcess), await self._session(request))

    async def _start(self, request: Request) -> ProcessInfo:
        return await self._processes.start(request.read(StartProcess), await self._session(request))

    async def _list(self, request: Request) -> ProcessList:
        return ProcessList(self._processes.listed(request.read(_Listed).owner))

    async def _get(self, request: Request) -> ProcessInfo:
        return self._processes.get(request.read(_One).process_id).info

    async def _stop(self, request: Request) -> ProcessInfo:
        wanted = request.read(_One)
        return await self._processes.stop(wanted.process_id, wait=wanted.wait_ms / 1000)

    async def _kill(self, request: Request) -> ProcessInfo:
        wanted = request.read(_One)
        return await self._processes.kill(wanted.process_id, wait=wanted.wait_ms / 1000)

    async def _delete(self, request: Request) -> dict[str, Any]:
        await self._processes.delete(request.read(_One).process_id)
        return {}

    async def _logs(self, request: Request) -> dict[str, Any]:
        """One page, of about 256 KiB: ask again after its last number. Nobody is sent what they did not ask for."""
        wanted = request.read(_Logs)
        process = self._processes.get(wanted.process_id)
        page = await read_log(process, wanted, wait=wanted.wait_ms / 1000)
        entries = [
            {
                "sequence": entry.sequence,
                "stream": entry.stream,
                "timestampMs": entry.at_ms,
                "data": base64.b64encode(entry.content).decode(),
                "encoding": "base64",
            }
            for entry in page.entries
        ]
        told: dict[str, Any] = {"processId": process.info.id, "stream": page.stream, "entries": entries}
        told |= {"next": page.next, "ended": page.is_over}
        return told if page.cut is None else {**told, "cut": {"fromSequence": page.cut[0], "toSequence": page.cut[1]}}

    async def _input(self, request: Request) -> InputTaken:
        wanted = request.read(_Written)
        return InputTaken(await self._processes.write(wanted.process_id, wanted.content(), is_last=wanted.eof))

    async def _resize(self, request: Request) -> TerminalSize:
        wanted = request.read(_Resized)
        return self._processes.resize(wanted.process_id, TerminalSize(wanted.cols, wanted.rows))

    async def _get_config(self, request: Request) -> ProcessConfig:
        return self._processes.limits

    async def _set_config(self, request: Request) -> ProcessConfig:
        return self._processes.configure(request.read(ProcessConfig))

    async def _session(self, request: Request) -> Session | None:
        if request.frame.session is None:
            return None
        record = await self._sessions.look_up(request.target())
        return Session(record.session_id, record.agent, record.cwd)
