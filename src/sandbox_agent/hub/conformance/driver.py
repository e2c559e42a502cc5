"""One agent process driven by hand, without relay and history: what it says is seen as it says it.

Whoever drives speaks version 1 of ACP; to an agent of version 2 it is said in its words, as the server does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from sandbox_agent.core import frames, versions
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.methods import PERMISSION, PROMPT, SESSION_CANCEL
from sandbox_agent.core.versions import HeldPrompt, UpdateTranslator, Version
from sandbox_agent.errors import AgentError, AgentExited, AgentTimeout, RemoteError, SandboxAgentError
from sandbox_agent.hub.agents.handshake import Initialized, shake_hands
from sandbox_agent.hub.agents.host import Host
from sandbox_agent.hub.processes.process import Session
from sandbox_agent.process import AgentProcess, ExitStatus
from sandbox_agent.process.agent_process import Lines

Json = dict[str, Any]
Answer = Callable[[Json], Json | None]
"""The outcome for a permission request, or None to leave it open."""

_LINE_CAP = 64 << 20
_GRACE = 1.0
_SERVED = ("fs/", "terminal/")


class Driver:
    """Create with `driving`. What came is kept: updates by session, permission requests in order."""

    def __init__(self, host: Host, cwd: str) -> None:
        self.initialized = Initialized(Version.V1, {})
        self.agent_info: Json = {}
        self.updates: dict[str, list[Json]] = {}
        self.permissions: list[Json] = []
        self.answer: Answer = allow
        self._host = host
        self._cwd = cwd
        self._process: AgentProcess | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._held: dict[str, tuple[HeldPrompt, asyncio.Future[Any]]] = {}
        """Prompts that an agent of version 2 has yet to tell the end of, by session."""
        self._translators: dict[str, UpdateTranslator] = {}
        self._open: list[Json] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._last_id = 0

    async def start(self, launch: LaunchSpec, env: Mapping[str, str], *, timeout: float) -> None:
        """Raises AgentError."""
        self._process = await AgentProcess.start(
            launch, dict(env), on_lines=self._take, on_exit=self._exited, line_cap=_LINE_CAP
        )
        self.initialized, answer = await shake_hands(
            lambda params: self._ask("initialize", params, timeout=timeout), pinned=launch.protocol_version
        )
        described = versions.initialize_result(answer, from_=self.initialized.version, to=Version.V1)
        self.agent_info = as_object(described.get("agentInfo"))

    async def stop(self) -> None:
        for task in self._serving:
            task.cancel()
        if self._process is not None:
            await self._process.stop(grace=_GRACE)

    async def kill(self) -> None:
        """As a crash would: no clean-up of any kind."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    async def request(self, method: str, params: Json, *, timeout: float) -> Any:
        """Its result. Raises RemoteError, AgentExited, AgentTimeout."""
        spoken = self.initialized.version
        asked, said = versions.request(method, params, from_=Version.V1, to=spoken)
        if method == PROMPT and spoken is Version.V2:
            return await self._prompt_2(params["sessionId"], said, timeout=timeout)
        result = await self._ask(asked, said, timeout=timeout)
        return versions.result(method, result, from_=spoken, to=Version.V1, asked=params)

    async def _prompt_2(self, session: str, params: Json, *, timeout: float) -> Any:
        """Version 2 takes a prompt up with its answer, and tells the turn's end as an update."""
        held, end = HeldPrompt(), asyncio.get_running_loop().create_future()
        self._held[session] = held, end
        try:
            self._end(end, held.acknowledged(await self._ask(PROMPT, params, timeout=timeout)))
            async with asyncio.timeout(timeout):
                return await end
        except TimeoutError:
            raise AgentTimeout(f"it did not end the turn within {timeout:g} s") from None
        finally:
            del self._held[session]

    async def _ask(self, method: str, params: Json, *, timeout: float) -> Any:
        if self._process is None or not self._process.is_running:
            raise AgentExited("the agent is not running")
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._process.write(frames.request(b"%d" % number, method, params))
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            raise AgentTimeout(f"it did not answer {method} within {timeout:g} s") from None
        finally:
            self._waiting.pop(number, None)

    async def new_session(self, *, timeout: float) -> str:
        result = await self.request("session/new", {"cwd": self._cwd, "mcpServers": []}, timeout=timeout)
        session = result.get("sessionId") if isinstance(result, dict) else None
        if not isinstance(session, str):
            raise AgentError("it made a session and did not name it")
        return session

    async def prompt(self, session: str, text: str, *, timeout: float) -> str:
        """The turn's stop reason."""
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        result = await self.request("session/prompt", params, timeout=timeout)
        return str(result.get("stopReason")) if isinstance(result, dict) else "none"

    def cancel(self, session: str) -> None:
        """Cancel the turn; open permissions are answered as cancelled, as the protocol wants it."""
        if self._process is not None:
            self._process.write(frames.notification(SESSION_CANCEL, {"sessionId": session}))
        for request in self._open:
            self._permit(request, {"outcome": "cancelled"})
        self._open.clear()

    async def until(self, seen: Callable[[Driver], object], *, timeout: float) -> bool:
        """Whether `seen` came true in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not seen(self):
                    self._changed.clear()
                    await self._changed.wait()
        return bool(seen(self))

    def kinds(self, session: str) -> list[str]:
        return [str(update.get("sessionUpdate")) for update in self.updates.get(session, ())]

    def said(self, session: str, kind: str | None = None) -> str:
        """Everything that was told of the session, as text."""
        found = [u for u in self.updates.get(session, ()) if kind is None or u.get("sessionUpdate") == kind]
        return "".join(_text(update) for update in found)

    def _take(self, lines: Lines) -> None:
        for line in lines:
            if not isinstance(line, bytes):
                continue
            with contextlib.suppress(msgspec.DecodeError):
                message = msgspec.json.decode(line)
                if isinstance(message, dict):
                    self._took(message)
        self._changed.set()

    def _took(self, message: Json) -> None:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if "method" not in message:
            self._answered(message)
        elif "id" in message:
            self._asked(message, params)
        elif isinstance(params.get("update"), dict):
            self._updated(str(params.get("sessionId")), params)

    def _updated(self, session: str, params: Json) -> None:
        if session in self._held:
            held, end = self._held[session]
            self._end(end, held.update(params["update"]))
        if session not in self._translators:
            spoken = self.initialized.version
            self._translators[session] = UpdateTranslator(session, from_=spoken, to=Version.V1)
        told = [as_object(said).get("update") for said in self._translators[session].update(params)]
        self.updates.setdefault(session, []).extend(update for update in told if isinstance(update, dict))

    def _end(self, waiting: asyncio.Future[Any], outcome: Json | None) -> None:
        """Settle what waits for an answer, if this is one."""
        if outcome is None or waiting.done():
            return
        error = outcome.get("error")
        if error is None:
            waiting.set_result(outcome.get("result"))
        else:
            waiting.set_exception(RemoteError(error if isinstance(error, dict) else {"message": str(error)}))

    def _answered(self, message: Json) -> None:
        number = message.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is not None:
            self._end(waiting, message)

    def _asked(self, message: Json, params: Json) -> None:
        method = str(message["method"])
        if method == PERMISSION:
            params = as_object(versions.ask(method, params, from_=self.initialized.version, to=Version.V1)[1])
            self.permissions.append(params)
            outcome = self.answer(params)
            if outcome is None:
                self._open.append(message)
            else:
                self._permit(message, outcome)
        elif method.startswith(_SERVED):
            task = asyncio.get_running_loop().create_task(self._serve(message, method, params))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        else:
            self._reply(message, {"error": {"code": -32601, "message": f"{method} is not offered here"}})

    async def _serve(self, message: Json, method: str, params: Json) -> None:
        try:
            result = await self._host.serve(method, frames.to_json(params), Session("", "", self._cwd))
        except SandboxAgentError as error:
            self._reply(message, {"error": {"code": error.code, "message": error.detail}})
        else:
            self._reply(message, {"result": result})

    def _permit(self, message: Json, outcome: Json) -> None:
        said = versions.ask_result(PERMISSION, {"outcome": outcome}, from_=Version.V1, to=self.initialized.version)
        self._reply(message, {"result": said})

    def _reply(self, message: Json, member: Json) -> None:
        if self._process is not None:
            self._process.write(frames.to_json({"jsonrpc": "2.0", "id": message["id"], **member}))

    def _exited(self, status: ExitStatus) -> None:
        stderr = self._process.stderr.summary() if self._process is not None else None
        for waiting in [*self._waiting.values(), *(end for _, end in self._held.values())]:
            if not waiting.done():
                waiting.set_exception(AgentExited(f"it {status.words}", exitCode=status.code, stderr=stderr))
        self._changed.set()


@asynccontextmanager
async def driving(
    launch: LaunchSpec, env: Mapping[str, str], host: Host, cwd: str, *, timeout: float
) -> AsyncIterator[Driver]:
    """A process that has answered `initialize`; nothing of its group outlives the block. Raises AgentError."""
    driver = Driver(host, cwd)
    try:
        await driver.start(launch, env, timeout=timeout)
        yield driver
    finally:
        await driver.stop()


def allow(params: Json) -> Json | None:
    return chosen(params, "allow")


def reject(params: Json) -> Json | None:
    return chosen(params, "reject")


def leave_open(params: Json) -> Json | None:
    return None


def chosen(params: Json, wanted: str) -> Json:
    """The outcome that selects the option of this kind for once, or at least of this kind."""
    options = [option for option in params.get("options", ()) if isinstance(option, dict)]
    fitting = [option for option in options if str(option.get("kind", "")).startswith(wanted)]
    fitting.sort(key=lambda option: not str(option["kind"]).endswith("_once"))
    if not fitting:
        return {"outcome": "cancelled"}
    return {"outcome": "selected", "optionId": fitting[0].get("optionId")}


def _text(update: Json) -> str:
    content = update.get("content")
    text = content.get("text") if isinstance(content, dict) else None
    return text if isinstance(text, str) else frames.to_json(update).decode()
