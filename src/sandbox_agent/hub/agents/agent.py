"""One agent: its shared process, the relay that decides for it, and the handshake that the server made."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId, ConnectionId, SessionId
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.lifecycle import Change, Lifecycle, State
from sandbox_agent.core.lines import DEFAULT_LINE_CAP
from sandbox_agent.core.permission_policy import ASK, PermissionPolicy
from sandbox_agent.core.relay import Relay
from sandbox_agent.core.route import Client
from sandbox_agent.errors import AgentExited, AgentStartFailed, AgentTimeout, SandboxAgentError, ShuttingDown
from sandbox_agent.hub.agents.authentication import AUTH_REQUIRED, with_advice
from sandbox_agent.hub.agents.delivery import Delivery, Watcher
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import RemoteError, Request
from sandbox_agent.process import AgentProcess, ExitStatus, StderrSummary, child_environment
from sandbox_agent.process.agent_process import Lines
from sandbox_agent.store.base import Store
from sandbox_agent.version import __version__

_log = logging.getLogger(__name__)

_PATIENCE = 2.0
"""A back-off no longer than this is waited out; a longer one is an error that says when to come back."""
_BACKLOG_HIGH, _BACKLOG_LOW = 64 << 20, 16 << 20
"""Bytes waiting for the store at which agents are made to wait, and at which they go on."""

CLIENT_CAPABILITIES: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
}


class Initialized(msgspec.Struct):
    """The parts of an agent's `initialize` answer that decide what we may ask of it."""

    protocol_version: int = msgspec.field(name="protocolVersion", default=1)
    capabilities: dict[str, Any] = msgspec.field(name="agentCapabilities", default_factory=dict)

    def can(self, method: str) -> bool:
        """Whether it declares `load`, `resume`, `list`, `fork`, `close` or `delete`."""
        if method == "load":
            return bool(self.capabilities.get("loadSession"))
        offered = self.capabilities.get("sessionCapabilities")
        return isinstance(offered, dict) and offered.get(method) not in (None, False)


@dataclass(frozen=True, slots=True)
class AgentOptions:
    start_timeout: float = 60.0
    stop_grace: float = 1.0
    queued_prompts: int = 16
    policy: PermissionPolicy = ASK
    """Who answers permissions in sessions that do not say."""
    line_bytes: int = DEFAULT_LINE_CAP
    clean_stderr: Callable[[str, int], str] = lambda text, limit: text[:limit]


class Agent:
    """Starts its process on first use; every connection shares it."""

    def __init__(
        self,
        agent_id: AgentId,
        *,
        store: Store,
        connections: Mapping[ConnectionId, Connection],
        watcher: Watcher,
        on_exit: Callable[[Agent, AgentExited, list[SessionId]], None],
        find_spec: Callable[[AgentId], Awaitable[LaunchSpec]],
        environ: Mapping[str, str],
        ask_ids: Iterator[int],
        options: AgentOptions,
    ) -> None:
        self.id = agent_id
        self.relay = Relay(ask_ids, queue_limit=options.queued_prompts, policy=options.policy)
        self.default_policy = options.policy
        self.lifecycle = Lifecycle()
        self.initialized: Initialized | None = None
        self.handshake: bytes = b"{}"
        self.process: AgentProcess | None = None
        self.last_error: str | None = None
        self.last_stderr: StderrSummary | None = None
        self._store = store
        self._on_exit = on_exit
        self._find_spec = find_spec
        self._spec: LaunchSpec | None = None
        self._environ = environ
        self._options = options
        self._starting: asyncio.Task[None] | None = None
        self._failed_at = 0.0
        self._own_calls: dict[int, asyncio.Future[bytes]] = {}
        self._is_stopping = False
        self._can_revive = False
        self._draining: asyncio.Task[None] | None = None
        self._delivery = Delivery(
            agent_id,
            store=store,
            connections=connections,
            watcher=watcher,
            send=self._write,
            resolve=self._resolve,
            busy_sessions=lambda: [r.session for r in self.relay.routes.values() if r.turn is not None],
        )
        self.apply = self._delivery.apply

    @property
    def is_ready(self) -> bool:
        return self.lifecycle.state is State.RUNNING

    @property
    def can_revive(self) -> bool:
        """Whether its sessions can be taken up again by a new process, as far as it has told us."""
        return self._can_revive

    @property
    def traffic(self) -> tuple[int, int]:
        """Events that came from the agent, and how often they were delivered to a connection."""
        return self._delivery.events_in, self._delivery.events_out

    async def ready(self) -> Initialized:
        """Start the process if it is not running, once for all who ask. Raises AgentStartFailed."""
        if self.is_ready and self.initialized is not None:
            return self.initialized
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start(), name=f"start-{self.id}")
            self._starting.add_done_callback(self._start_done)
        await asyncio.shield(self._starting)
        if self.initialized is None:
            raise AgentStartFailed(f"agent {self.id!r} did not start: {self.last_error}")
        return self.initialized

    @property
    def has_room(self) -> bool:
        return self.process is None or self.process.has_room

    async def room(self) -> None:
        """Return when the agent can take more on its stdin."""
        if self.process is not None:
            await self.process.drained()

    def call(self, request: Request) -> None:
        """Pass a client's request on; the process is running, and a session that it names has a route."""
        effects = self.relay.call(request.connection.client, request.ticket, request.frame, request.raw)
        self.apply(effects, flush=False)

    async def request(
        self,
        method: str,
        params: Any,
        *,
        session: SessionId | None = None,
        on_behalf: tuple[Client, bytes] | None = None,
        timeout: float | None,
    ) -> Any:
        """A request of the server's own; gives its result. Raises RemoteError, AgentExited, AgentTimeout."""
        call, effects = self.relay.call_own(method, params, session, on_behalf=on_behalf)
        waiter: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._own_calls[call] = waiter
        try:
            self.apply(effects)
            async with asyncio.timeout(timeout):
                line = await waiter
        except TimeoutError:
            raise AgentTimeout(f"agent {self.id!r} did not answer {method} within {timeout:g} s") from None
        finally:
            del self._own_calls[call]
        answer = frames.decode(line)
        if "error" in answer:
            raise RemoteError(self._explained(answer["error"] if isinstance(answer["error"], dict) else {}))
        return answer.get("result")

    def _explained(self, error: dict[str, Any]) -> dict[str, Any]:
        return with_advice(error, self._spec, self.handshake) if error.get("code") == AUTH_REQUIRED else error

    async def stop(self) -> None:
        """End the process within three times the grace. Whoever waits is told that the server is going down."""
        self._is_stopping = True
        if self._starting is not None:
            self._starting.cancel()
        self._answer_all(ShuttingDown("the server is shutting down"))
        if self.process is not None:
            if self.lifecycle.state in {State.STARTING, State.RUNNING}:
                self.lifecycle.apply(Change.STOP)
            await self.process.stop(grace=self._options.stop_grace)

    async def _start(self) -> None:
        if self._is_stopping:
            raise ShuttingDown("the server is shutting down")
        await self._wait_out_backoff()
        spec = self._spec = await self._find_spec(self.id)
        self.lifecycle.apply(Change.START)
        self.initialized = None
        env = child_environment(self._environ, extra=spec.env, passthrough=spec.env_passthrough)
        try:
            self.process = await AgentProcess.start(
                spec,
                env,
                on_lines=self._lines_came,
                on_exit=self._exited,
                after_write=self._store.flush,
                line_cap=self._options.line_bytes,
                clean=self._options.clean_stderr,
            )
        except AgentStartFailed as error:
            self._start_failed(str(error))
            raise
        await self._shake_hands(self.process)
        self.lifecycle.apply(Change.READY)
        _log.info("agent started agent=%s pid=%d", self.id, self.process.pid)

    async def _shake_hands(self, process: AgentProcess) -> None:
        params = {
            "protocolVersion": 1,
            "clientInfo": {"name": "sandbox-agent", "title": "Sandbox Agent", "version": __version__},
            "clientCapabilities": CLIENT_CAPABILITIES,
        }
        try:
            result = await self.request("initialize", params, timeout=self._options.start_timeout)
            self.handshake = frames.to_json(result)
            self.initialized = msgspec.convert(result, Initialized)
            self._can_revive = self.initialized.can("resume") or self.initialized.can("load")
        except (RemoteError, AgentTimeout, msgspec.ValidationError) as error:
            detail = f"agent {self.id!r} refused the handshake: {error}"
            self.last_error = detail
            await process.stop(grace=self._options.stop_grace)
            raise AgentStartFailed(detail, stderr=process.stderr.summary()) from None
        except AgentExited as error:
            detail = f"agent {self.id!r} ended during its handshake: {error}"
            raise AgentStartFailed(detail, **error.data) from None

    async def _wait_out_backoff(self) -> None:
        left = self._failed_at + self.lifecycle.delay - time.monotonic()
        if left <= 0:
            return
        if left > _PATIENCE or self.lifecycle.is_crash_loop:
            raise AgentStartFailed(
                f"agent {self.id!r} has failed {self.lifecycle.failures} times in a row, "
                f"last: {self.last_error}; it may be tried again in {left:.0f} s",
                retryAfterMs=int(left * 1000),
                failures=self.lifecycle.failures,
            )
        await asyncio.sleep(left)

    def _start_failed(self, problem: str) -> None:
        self.last_error = problem
        self._failed_at = time.monotonic()
        self.lifecycle.apply(Change.EXIT)
        _log.warning("agent did not start agent=%s problem=%s", self.id, problem)

    def _start_done(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # whoever awaits ready() has got it; nobody else needs to

    def _lines_came(self, lines: Lines) -> None:
        self.apply(self.relay.from_agent(lines))
        if self._draining is None and self._store.backlog() > _BACKLOG_HIGH and self.process is not None:
            self._draining = asyncio.get_running_loop().create_task(self._let_store_catch_up(self.process))

    async def _let_store_catch_up(self, process: AgentProcess) -> None:
        """The store is the only thing that may slow an agent down: memory stays bounded, and nothing is lost."""
        process.pause_reading()
        try:
            while self._store.backlog() > _BACKLOG_LOW and process.is_running:  # noqa: ASYNC110 - a thread empties it
                await asyncio.sleep(0.01)
        finally:
            self._draining = None
            process.resume_reading()

    def _exited(self, status: ExitStatus) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        stderr = self.last_stderr = process.stderr.summary()
        if self._is_stopping:
            self.lifecycle.apply(Change.EXIT)
            return
        if process.uptime > self.lifecycle.delay + 10.0:
            self.lifecycle.worked()
        error = AgentExited(f"agent {self.id!r} {status.words}", exitCode=status.code, stderr=stderr, agent=self.id)
        if self.last_error is None or self.initialized is not None:
            self.last_error = str(error)
        self._failed_at = time.monotonic()
        self.initialized = None
        self.lifecycle.apply(Change.EXIT)
        _log.warning(
            "agent exited agent=%s pid=%d code=%d stderr=%r", self.id, process.pid, status.code, stderr.tail[-1:]
        )
        sessions = [route.session for route in self.relay.routes.values() if route.is_live]
        self._answer_all(error)
        self._on_exit(self, error, sessions)

    def _answer_all(self, error: SandboxAgentError) -> None:
        for waiter in self._own_calls.values():
            if not waiter.done():
                waiter.set_exception(error)
        self.apply(self.relay.exited(error))

    def _write(self, line: bytes) -> None:
        if self.process is not None:
            self.process.write(line)

    def _resolve(self, call: int, line: bytes) -> None:
        waiter = self._own_calls.get(call)
        if waiter is not None and not waiter.done():
            waiter.set_result(line)
