"""One agent: its process, the relay that decides for it, and the hands that carry decisions out."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from sandbox_agent.core import frames, speaking
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import AgentId, ConnectionId, SessionId, SessionKey
from sandbox_agent.core.interpreter import Interpreter
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.lifecycle import Lifecycle, State
from sandbox_agent.core.methods import SESSION_CANCEL, UPDATE
from sandbox_agent.core.permission_policy import PermissionPolicy
from sandbox_agent.core.relay import Relay
from sandbox_agent.core.retelling import Retelling
from sandbox_agent.core.session import Client, Phase, Session
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import AgentExited, SandboxAgentError, StoreError
from sandbox_agent.hub.agents.delivery import Delivery, Watcher
from sandbox_agent.hub.agents.handshake import Initialized
from sandbox_agent.hub.agents.intake import Intake
from sandbox_agent.hub.agents.options import AgentOptions
from sandbox_agent.hub.agents.own_calls import OwnCalls
from sandbox_agent.hub.agents.running import Listener, Running
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.process import AgentProcess, StderrSummary
from sandbox_agent.process.agent_process import Lines
from sandbox_agent.store.base import Store

_LARGE_ANSWERS = 2
"""Answers with a file in them that are made for one agent at a time."""


class Agent:
    """Starts its process on first use. Which sessions it has, all of the agent or a single one, `Agents` decides."""

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
        self.own_session: SessionId | None = None
        """The session that has this process to itself; None where any number may share it."""
        self.last_used = time.monotonic()
        """When a line last went to the process, or came from it."""
        self.default_policy = options.policy
        self.large_answers = asyncio.Semaphore(_LARGE_ANSWERS)
        self._store = store
        self._connections = connections
        self._on_exit = on_exit
        self._can_revive = False
        self._start_timeout = options.start_timeout
        self._relay = Relay(
            agent_id, ask_ids, budget=options.budget, policy=options.policy, name_session=self._name_session
        )
        self.sessions: Mapping[SessionId, Session] = self._relay.sessions
        """What is under way in each session that it knows; to be looked at only."""
        self._interpreter = Interpreter(self._relay.sessions, self._relay.mixed)
        self._intake = Intake(self._handle, store)
        self._running = Running(
            agent_id,
            Listener(
                started=self._started,
                said=self._intake.take,
                introduced=self._introduced,
                ending=self._answer_all,
                exited=self._intake.finish,
                failed=self._failed,
                changed=partial(on_change, self),
            ),
            find_spec=find_spec,
            environ=environ,
            after_write=store.flush,
            initialize=self._initialize,
            options=options,
        )
        self._delivery = Delivery(
            self,
            store=store,
            connections=connections,
            watcher=watcher,
            interpreter=self._interpreter,
            mixed=self._relay.mixed,
            send=self._write,
            resolve=self._resolve,
        )
        self._apply = self._delivery.apply if store.is_immediate else self._delivery.apply_once_safe
        self._own_calls = OwnCalls(
            agent_id,
            relay=self._relay,
            running=self._running,
            apply=self._apply,
            login_timeout=options.start_timeout,
        )

    @property
    def process(self) -> AgentProcess | None:
        return self._running.process

    @property
    def lifecycle(self) -> Lifecycle:
        return self._running.lifecycle

    @property
    def handshake(self) -> bytes:
        """What its process answered to `initialize`, as JSON; `{}` if none ever did."""
        return self._running.handshake

    @property
    def last_error(self) -> str | None:
        return self._running.last_error

    @property
    def last_stderr(self) -> StderrSummary | None:
        return self._running.last_stderr

    @property
    def is_ready(self) -> bool:
        return self._running.lifecycle.state is State.RUNNING  # as it says itself, without another call

    @property
    def version(self) -> Version:
        """The version of ACP that its process speaks, or spoke last."""
        return self._relay.version

    @property
    def has_shaken_hands(self) -> bool:
        """Whether a process of it has ever told us what it speaks."""
        return self._running.has_shaken_hands

    @property
    def can_revive(self) -> bool:
        """Whether its sessions can be taken up again by a new process, as far as it has told us."""
        return self._can_revive

    @property
    def is_idle(self) -> bool:
        """Whether its process could end now, and be started again, without anybody losing anything."""
        is_quiet = not self._relay.is_at_work and not self._relay.asks and not self._own_calls
        return self.is_ready and is_quiet and (self._can_revive or not self._relay.sessions)

    @property
    def is_attended(self) -> bool:
        return any(session.attached for session in self._relay.sessions.values())

    @property
    def audience(self) -> list[Connection]:
        """Who is told what the process says of no session, and that it has gone.

        Where a session has the process to itself, those attached to it: others are not to hear of it."""
        if self.own_session is None:
            return [connection for connection in self._connections.values() if connection.agent == self.id]
        names = {name for session in self._relay.sessions.values() for name in session.connections}
        return [self._connections[name] for name in names if name in self._connections]

    @property
    def traffic(self) -> tuple[int, int]:
        """Events that came from the agent, and how often they were delivered to a connection."""
        return self._delivery.events_in, self._delivery.events_out

    async def ready(self) -> Initialized:
        """Start the process if it is not running, once for all who ask. Raises AgentStartFailed."""
        return await self._running.ready()

    @property
    def has_room(self) -> bool:
        process = self._running.process
        return process is None or process.has_room

    @property
    def has_room_for_control(self) -> bool:
        """Whether a small message may be queued although the agent does not read."""
        return self._running.has_room_for_control

    async def room(self, *, timeout: float) -> None:
        """Return when the agent can take more on its stdin. Raises AgentTimeout."""
        await self._running.room(timeout=timeout)

    def can(self, verb: str) -> bool:
        """Whether the running process declares `load`, `resume`, `list`, `fork`, `close` or `delete`."""
        initialized = self._running.initialized
        return initialized is not None and initialized.can(verb)

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

    def attach(self, client: Client, session: SessionId, retelling: Retelling | None = None) -> None:
        """`retelling` has seen the session's history, for a client of the other version."""
        effects = self._relay.attach(client, session)
        if retelling is not None:
            self._interpreter.adopt(session, client.id, retelling)
        self._apply(effects)

    def snapshot(self, session: SessionId) -> bytes:
        """What a client of version 2 is told when it comes: whether the session works."""
        return frames.notification(UPDATE, speaking.snapshot(self._relay.sessions[session], self.version))

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

    def notify(self, frame: Frame, raw: bytes, *, user: str | None = None) -> None:
        """Pass a client's notification on. `user` is the name on its token."""
        self._apply(self._relay.notify(frame, raw, user=user))

    def cancel(self, session: SessionId, *, user: str | None = None) -> None:
        """Cancel the turn that runs and those that wait."""
        line = frames.notification(SESSION_CANCEL, {"sessionId": session})
        self.notify(frames.parse(line), line, user=user)

    def cancel_request(self, connection: ConnectionId, raw: bytes) -> None:
        self._apply(self._relay.cancel_request(connection, raw))

    def take_back(self, session: SessionId, prompt_id: str) -> bool:
        """Take a prompt out of the session's queue; False if it does not wait there."""
        effects = self._relay.take_back(session, prompt_id)
        self._apply(effects)
        return bool(effects)

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

    def holds(self, native: str) -> bool:
        """Whether the process has a session under way that it calls so."""
        return self._relay.holds(native)

    def wake(self, session: SessionId, policy: PermissionPolicy, native: str) -> None:
        """The process is about to be asked to take up again what it calls `native`. Raises SessionEnded."""
        self._relay.wake(session, policy, native)

    def woken(self, session: SessionId) -> None:
        self._apply(self._relay.woken(session))

    def wake_failed(self, session: SessionId, error: SandboxAgentError) -> None:
        self._apply(self._relay.wake_failed(session, error))

    def closing(self, session: SessionId) -> None:
        """The process, which holds the session, is about to be asked to let it go: prompts wait from now on."""
        self._relay.closing(session)

    def kept(self, session: SessionId) -> None:
        self._apply(self._relay.kept(session))

    def release(self, session: SessionId, error: SandboxAgentError) -> None:
        self._apply(self._relay.release(session, error))

    def end(self, session: SessionId, error: SandboxAgentError) -> None:
        self._apply(self._relay.end(session, error))

    def forget(self, session: SessionId, error: SandboxAgentError) -> None:
        self._apply(self._relay.forget(session, error))
        self._delivery.forget(session)

    def call(self, request: Request) -> None:
        """Pass a client's request on; a session that it names is open. Raises AgentExited."""
        if self._running.process is None:
            self._running.require(request.method)
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
        remembered: Any = None,
        timeout: float | None,
    ) -> Any:
        """A request of the server's own; gives its result. Raises RemoteError, AgentExited, AgentTimeout.

        `policy` is for the session that the request makes, from its first question on; `remembered` are the params as
        its history has them."""
        return await self._own_calls.request(
            method,
            params,
            session=session,
            on_behalf=on_behalf,
            policy=policy,
            remembered=remembered,
            timeout=timeout,
        )

    async def _initialize(self, params: dict[str, Any]) -> Any:
        return await self._own_calls.request("initialize", params, timeout=self._start_timeout)

    def _name_session(self, native: str) -> SessionId:
        """The agent's own name for it, unless a session of ours has had that name already."""
        name = SessionId(native)
        try:
            is_new = self._store.is_new(self.key(name).stream)
        except StoreError:
            is_new = False  # perhaps it is: nothing can be said
        return name if is_new else SessionId(f"{native}~{secrets.token_hex(4)}")

    async def stop(self) -> None:
        """End the process within three times the grace. Whoever waits is told that the server is going down."""
        await self._running.stop()

    async def rest(self) -> None:
        """End the process within three times the grace; the next use starts it again. Its sessions become dormant."""
        await self._running.rest()

    def _started(self, process: AgentProcess) -> None:
        self._intake.process = process
        self._own_calls.process_started()

    def _introduced(self, initialized: Initialized) -> None:
        self._relay.speak(initialized.version)
        self._interpreter.speak(initialized.version)
        self._can_revive = initialized.can("resume") or initialized.can("load")

    def _handle(self, lines: Lines) -> None:
        self.last_used = time.monotonic()
        self._apply(self._relay.from_agent(lines))

    def _failed(self, error: AgentExited) -> None:
        sessions = [session.id for session in self._relay.sessions.values() if session.is_live]
        self._answer_all(error)
        self._on_exit(self, error, sessions)

    def _answer_all(self, error: SandboxAgentError) -> None:
        self._own_calls.fail(error)
        self._apply(self._relay.exited(error))

    def _write(self, line: bytes) -> None:
        self.last_used = time.monotonic()
        process = self._running.process
        if process is not None:
            process.write(line)

    def _resolve(self, call: int, line: bytes) -> None:
        self._own_calls.resolve(call, line)
