"""One agent: its shared process, the relay that decides for it, and the handshake that the server made."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.budget import Budget
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import AgentId, ConnectionId, SessionId, SessionKey
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.lifecycle import Change, Lifecycle, State
from sandbox_agent.core.methods import SESSION_CANCEL
from sandbox_agent.core.permission_policy import PermissionPolicy
from sandbox_agent.core.relay import Relay
from sandbox_agent.core.session import Client, Phase, Session
from sandbox_agent.errors import (
    AgentExited,
    AgentStartFailed,
    AgentTimeout,
    RemoteError,
    SandboxAgentError,
    ShuttingDown,
)
from sandbox_agent.hub.agents.authentication import AUTH_REQUIRED, with_advice
from sandbox_agent.hub.agents.delivery import Delivery, Watcher
from sandbox_agent.hub.agents.handshake import Initialized, initialize_params
from sandbox_agent.hub.agents.intake import Intake
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.process import AgentProcess, ExitStatus, StderrSummary, child_environment
from sandbox_agent.process.agent_process import Lines
from sandbox_agent.store.base import Store

_log = logging.getLogger(__name__)

_PATIENCE = 2.0
"""A back-off no longer than this is waited out; a longer one is an error that says when to come back."""
_CONTROL_BYTES = 16 << 20
"""What may wait for an agent that does not read: beyond its share, cancels and answers wait as everything else does."""
_LARGE_ANSWERS = 2
"""Answers with a file in them that are made for one agent at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    start_timeout: float
    stop_grace: float
    budget: Budget
    policy: PermissionPolicy
    """Who answers permissions in sessions that do not say."""
    line_bytes: int
    clean_stderr: Callable[[str, int], str]
    """Takes secrets out of a line that the agent wrote to stderr, and cuts it."""


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
        on_change: Callable[[Agent], None],
        find_spec: Callable[[AgentId], Awaitable[LaunchSpec]],
        environ: Mapping[str, str],
        ask_ids: Iterator[int],
        options: AgentOptions,
    ) -> None:
        self.id = agent_id
        self._relay = Relay(ask_ids, budget=options.budget, policy=options.policy)
        self.sessions: Mapping[SessionId, Session] = self._relay.sessions
        """What is under way in each session that it knows; to be looked at only."""
        self.default_policy = options.policy
        self.lifecycle = Lifecycle()
        self.initialized: Initialized | None = None
        self.handshake: bytes = b"{}"
        self.process: AgentProcess | None = None
        self.last_error: str | None = None
        self.last_stderr: StderrSummary | None = None
        self._store = store
        self._on_exit = on_exit
        self._on_change = on_change
        self._find_spec = find_spec
        self._spec: LaunchSpec | None = None
        self._environ = environ
        self._options = options
        self._starting: asyncio.Task[None] | None = None
        self._failed_at = 0.0
        self._own_calls: dict[int, asyncio.Future[bytes]] = {}
        self._is_stopping = False
        self._can_revive = False
        self._intake = Intake(self._handle, store)
        self.large_answers = asyncio.Semaphore(_LARGE_ANSWERS)
        self._delivery = Delivery(
            agent_id,
            store=store,
            connections=connections,
            watcher=watcher,
            send=self._write,
            resolve=self._resolve,
        )
        self._apply = self._delivery.apply

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

    @property
    def has_room_for_control(self) -> bool:
        """Whether a small message may be queued although the agent does not read."""
        return self.process is None or self.process.unread_bytes < _CONTROL_BYTES

    async def room(self, *, timeout: float) -> None:
        """Return when the agent can take more on its stdin. Raises AgentTimeout."""
        if self.process is None:
            return
        try:
            async with asyncio.timeout(timeout):
                await self.process.drained()
        except TimeoutError:
            raise AgentTimeout(f"agent {self.id!r} has not read its input for {timeout:g} s") from None

    def can(self, verb: str) -> bool:
        """Whether the running process declares `load`, `resume`, `list`, `fork`, `close` or `delete`."""
        return self.initialized is not None and self.initialized.can(verb)

    def key(self, session: SessionId) -> SessionKey:
        return SessionKey(self.id, session)

    async def turn_over(self, session: SessionId, *, patience: float) -> None:
        """Return when no turn of the session runs any more, or after `patience` seconds."""
        running = self._relay.sessions[session].running if session in self._relay.sessions else None
        if running is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._delivery.turn_ended(session)

    @property
    def waiting(self) -> int:
        """Requests that it has not answered."""
        return self._relay.waiting

    @property
    def open_asks(self) -> int:
        """Its own requests that nobody has answered."""
        return len(self._relay.asks)

    def open(self, session: SessionId, phase: Phase = Phase.DORMANT, policy: PermissionPolicy | None = None) -> Session:
        """The session, made in this phase if it is not under way here."""
        return self._relay.open(session, phase, policy)

    def attach(self, client: Client, session: SessionId) -> None:
        self._apply(self._relay.attach(client, session))

    def detach(self, connection: ConnectionId, session: SessionId) -> None:
        self._apply(self._relay.detach(connection, session))

    def connection_closed(self, connection: ConnectionId) -> None:
        self._apply(self._relay.connection_closed(connection))

    def prompt(self, request: Request, turn_id: str | None) -> None:
        """Run a prompt now, or after those before it; its session is open."""
        effects = self._relay.prompt(
            request.connection.client, request.ticket, request.frame, request.raw, turn_id=turn_id
        )
        self._apply(effects)

    def notify(self, frame: Frame, raw: bytes) -> None:
        """Pass a client's notification on."""
        self._apply(self._relay.notify(frame, raw))

    def cancel(self, session: SessionId) -> None:
        """Cancel the turn that runs and those that wait."""
        line = frames.notification(SESSION_CANCEL, {"sessionId": session})
        self.notify(frames.parse(line), line)

    def cancel_request(self, connection: ConnectionId, raw: bytes) -> None:
        self._apply(self._relay.cancel_request(connection, raw))

    def answer(self, connection: ConnectionId, frame: Frame, raw: bytes) -> bool:
        """Take a client's answer; False if this agent did not ask."""
        if not self._relay.asks.has(frame.key):
            return False
        self._apply(self._relay.answer(connection, frame, raw))
        return True

    def served(self, ask: int, member: bytes) -> None:
        """Pass on what the host answered: a `result` or `error` member as JSON text."""
        self._apply(self._relay.served(ask, member))

    def expire(self, ask: int) -> None:
        self._apply(self._relay.expire(ask))

    def publish(self, session: SessionId, line: bytes) -> None:
        """A notice of the server's own, to everybody attached and to the history."""
        self._apply(self._relay.publish(session, line))

    def wake(self, session: SessionId, policy: PermissionPolicy) -> None:
        self._relay.wake(session, policy)

    def woken(self, session: SessionId) -> None:
        self._apply(self._relay.woken(session))

    def wake_failed(self, session: SessionId, error: SandboxAgentError) -> None:
        self._apply(self._relay.wake_failed(session, error))

    def release(self, session: SessionId, error: SandboxAgentError) -> None:
        self._apply(self._relay.release(session, error))

    def end(self, session: SessionId, error: SandboxAgentError) -> None:
        self._apply(self._relay.end(session, error))

    def forget(self, session: SessionId, error: SandboxAgentError) -> None:
        self._apply(self._relay.forget(session, error))

    def call(self, request: Request) -> None:
        """Pass a client's request on; the process is running, and a session that it names is open."""
        effects = self._relay.call(request.connection.client, request.ticket, request.frame, request.raw)
        self._apply(effects, flush=False)

    async def request(
        self,
        method: str,
        params: Any,
        *,
        session: SessionId | None = None,
        on_behalf: tuple[Client, bytes] | None = None,
        policy: PermissionPolicy | None = None,
        timeout: float | None,
    ) -> Any:
        """A request of the server's own; gives its result. Raises RemoteError, AgentExited, AgentTimeout.

        `policy` is for the session that the request makes, from its first question on."""
        call, effects = self._relay.call_own(method, params, session, on_behalf=on_behalf, policy=policy)
        waiter: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._own_calls[call] = waiter
        try:
            self._apply(effects)
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
                self._move(Change.STOP)
            await self.process.stop(grace=self._options.stop_grace)

    async def _start(self) -> None:
        if self._is_stopping:
            raise ShuttingDown("the server is shutting down")
        await self._wait_out_backoff()
        spec = self._spec = await self._find_spec(self.id)
        self._move(Change.START)
        self.initialized = None
        env = child_environment(self._environ, extra=spec.env, passthrough=spec.env_passthrough)
        try:
            self.process = await AgentProcess.start(
                spec,
                env,
                on_lines=self._intake.take,
                on_exit=self._exited,
                after_write=self._store.flush,
                line_cap=self._options.line_bytes,
                clean=self._options.clean_stderr,
            )
        except AgentStartFailed as error:
            self._start_failed(str(error))
            raise
        self._intake.process = self.process
        await self._shake_hands(self.process)
        self._move(Change.READY)
        _log.info("agent started agent=%s pid=%d", self.id, self.process.pid)

    async def _shake_hands(self, process: AgentProcess) -> None:
        try:
            result = await self.request("initialize", initialize_params(), timeout=self._options.start_timeout)
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

    def _move(self, change: Change) -> None:
        self.lifecycle.apply(change)
        self._on_change(self)

    def _start_failed(self, problem: str) -> None:
        self.last_error = problem
        self._failed_at = time.monotonic()
        self._move(Change.EXIT)
        _log.warning("agent did not start agent=%s problem=%s", self.id, problem)

    def _start_done(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # whoever awaits ready() has got it; nobody else needs to

    def _handle(self, lines: Lines) -> None:
        self._apply(self._relay.from_agent(lines))

    def _exited(self, status: ExitStatus) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        self._intake.finish()
        stderr = self.last_stderr = process.stderr.summary()
        if self._is_stopping:
            self._move(Change.EXIT)
            return
        if process.uptime > self.lifecycle.delay + 10.0:
            self.lifecycle.worked()
        error = AgentExited(f"agent {self.id!r} {status.words}", exitCode=status.code, stderr=stderr, agent=self.id)
        if self.last_error is None or self.initialized is not None:
            self.last_error = str(error)
        self._failed_at = time.monotonic()
        self.initialized = None
        self._move(Change.EXIT)
        _log.warning(
            "agent exited agent=%s pid=%d code=%d stderr=%r", self.id, process.pid, status.code, stderr.tail[-1:]
        )
        sessions = [session.id for session in self._relay.sessions.values() if session.is_live]
        self._answer_all(error)
        self._on_exit(self, error, sessions)

    def _answer_all(self, error: SandboxAgentError) -> None:
        for waiter in self._own_calls.values():
            if not waiter.done():
                waiter.set_exception(error)
        self._apply(self._relay.exited(error))

    def _write(self, line: bytes) -> None:
        if self.process is not None:
            self.process.write(line)

    def _resolve(self, call: int, line: bytes) -> None:
        waiter = self._own_calls.get(call)
        if waiter is not None and not waiter.done():
            waiter.set_result(line)
