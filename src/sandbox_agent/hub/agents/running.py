"""The process of an agent: started on first use, once for all who ask; its failures, its rests and its end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.lifecycle import Change, Lifecycle, State
from sandbox_agent.errors import (
    AgentExited,
    AgentStartFailed,
    AgentTimeout,
    RemoteError,
    SandboxAgentError,
    ShuttingDown,
)
from sandbox_agent.hub.agents.handshake import Ask, Initialized, shake_hands
from sandbox_agent.hub.agents.options import AgentOptions
from sandbox_agent.process import AgentProcess, ExitStatus, StderrSummary, child_environment
from sandbox_agent.process.agent_process import Lines

_log = logging.getLogger(__name__)

_PATIENCE = 2.0
"""A back-off no longer than this is waited out; a longer one is an error that says when to come back."""
_CONTROL_BYTES = 16 << 20
"""What may wait for an agent that does not read: beyond its share, cancels and answers wait as everything else does."""
_NO_HANDSHAKE = b"{}"


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """Who hears what becomes of the process."""

    started: Callable[[AgentProcess], None]
    said: Callable[[Lines], None]
    introduced: Callable[[Initialized], None]
    """Its handshake is made."""
    ending: Callable[[SandboxAgentError], None]
    """We are about to end it: whoever waits for it is told why."""
    exited: Callable[[], None]
    """It is gone, whoever ended it."""
    failed: Callable[[AgentExited], None]
    """It is gone, and not because we ended it."""
    changed: Callable[[], None]
    """Its state is another one."""


class Running:
    def __init__(
        self,
        agent_id: AgentId,
        listener: Listener,
        *,
        find_spec: Callable[[AgentId], Awaitable[LaunchSpec]],
        environ: Mapping[str, str],
        after_write: Callable[[], None],
        initialize: Ask,
        options: AgentOptions,
    ) -> None:
        self.lifecycle = Lifecycle()
        self.initialized: Initialized | None = None
        """What the running process said that it is."""
        self.handshake: bytes = _NO_HANDSHAKE
        """The whole of what the last one said."""
        self.process: AgentProcess | None = None
        self.spec: LaunchSpec | None = None
        self.last_error: str | None = None
        self.last_stderr: StderrSummary | None = None
        self._id = agent_id
        self._listener = listener
        self._find_spec = find_spec
        self._environ = environ
        self._after_write = after_write
        self._initialize = initialize
        self._options = options
        self._starting: asyncio.Task[None] | None = None
        self._resting: asyncio.Task[None] | None = None
        self._failed_at = 0.0
        self._is_stopping = False

    @property
    def is_ready(self) -> bool:
        return self.lifecycle.state is State.RUNNING

    @property
    def has_shaken_hands(self) -> bool:
        """Whether a process of it has ever told us what it speaks."""
        return self.handshake != _NO_HANDSHAKE

    async def ready(self) -> Initialized:
        """Start the process if it is not running, once for all who ask. Raises AgentStartFailed."""
        if self.is_ready and self.initialized is not None:
            return self.initialized
        if self._starting is None:
            starting = self._start(after=self._resting)
            self._starting = asyncio.get_running_loop().create_task(starting, name=f"start-{self._id}")
            self._starting.add_done_callback(self._start_done)
        await asyncio.shield(self._starting)
        if self.initialized is None:
            raise AgentStartFailed(f"agent {self._id!r} did not start: {self.last_error}")
        return self.initialized

    def require(self, method: str) -> None:
        """Whoever waited for something else meanwhile may find that it has ended or is about to. Raises AgentExited."""
        if self.process is None or self.lifecycle.state is State.STOPPING:
            raise AgentExited(f"agent {self._id!r} is not running: {method} was not sent", agent=self._id)

    def environment(self, spec: LaunchSpec) -> dict[str, str]:
        return child_environment(self._environ, extra=spec.env, passthrough=spec.env_passthrough)

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
            raise AgentTimeout(f"agent {self._id!r} has not read its input for {timeout:g} s") from None

    async def stop(self) -> None:
        """End the process within three times the grace, for good."""
        self._is_stopping = True
        if self._starting is not None:
            self._starting.cancel()
        self._listener.ending(self._was_ended())
        if self.process is not None:
            if self.lifecycle.state in {State.STARTING, State.RUNNING}:
                self._move(Change.STOP)
            await self.process.stop(grace=self._options.stop_grace)

    async def rest(self) -> None:
        """End the process within three times the grace; the next use starts it again."""
        if self._resting is None:
            resting = self._rest(after=self._starting)
            self._resting = asyncio.get_running_loop().create_task(resting, name=f"rest-{self._id}")
        await asyncio.shield(self._resting)

    async def _rest(self, *, after: asyncio.Task[None] | None) -> None:
        """`after` is the start that was under way; as with a start, what was asked for first is done first."""
        try:
            if after is not None:
                await asyncio.wait([after])
            if self.process is not None and self.lifecycle.state in {State.STARTING, State.RUNNING}:
                self._move(Change.STOP)
                self.initialized = None
                self._listener.ending(self._was_ended())
                await self.process.stop(grace=self._options.stop_grace)
        finally:
            self._resting = None

    async def _start(self, *, after: asyncio.Task[None] | None) -> None:
        if after is not None:
            await asyncio.wait([after])
        if self._is_stopping:
            raise ShuttingDown("the server is shutting down")
        if self.lifecycle.state is State.STOPPING:
            raise AgentStartFailed(f"the last process of agent {self._id!r} has not ended yet")
        await self._wait_out_backoff()
        spec = self.spec = await self._find_spec(self._id)
        self._move(Change.START)
        self.initialized = None
        try:
            self.process = await AgentProcess.start(
                spec,
                self.environment(spec),
                on_lines=self._listener.said,
                on_exit=self._exited,
                after_write=self._after_write,
                line_cap=self._options.line_bytes,
                clean=self._options.clean_stderr,
                start_child=self._options.start_child,
            )
        except AgentStartFailed as error:
            self._start_failed(str(error))
            raise
        self._listener.started(self.process)
        await self._shake_hands(self.process, spec)
        self._move(Change.READY)
        _log.info("agent started agent=%s pid=%d", self._id, self.process.pid)

    async def _shake_hands(self, process: AgentProcess, spec: LaunchSpec) -> None:
        try:
            self.initialized, result = await shake_hands(self._initialize, pinned=spec.protocol_version)
            self.handshake = frames.to_json(result)
            self._listener.introduced(self.initialized)
        except (RemoteError, AgentTimeout, AgentStartFailed) as error:
            detail = f"agent {self._id!r} refused the handshake: {error}"
            self.last_error = detail
            await process.stop(grace=self._options.stop_grace)
            raise AgentStartFailed(detail, stderr=process.stderr.summary()) from None
        except AgentExited as error:
            detail = f"agent {self._id!r} ended during its handshake: {error}"
            raise AgentStartFailed(detail, **error.data) from None

    async def _wait_out_backoff(self) -> None:
        left = self._failed_at + self.lifecycle.delay - time.monotonic()
        if left <= 0:
            return
        if left > _PATIENCE or self.lifecycle.is_crash_loop:
            raise AgentStartFailed(
                f"agent {self._id!r} has failed {self.lifecycle.failures} times in a row, "
                f"last: {self.last_error}; it may be tried again in {left:.0f} s",
                retryAfterMs=int(left * 1000),
                failures=self.lifecycle.failures,
            )
        await asyncio.sleep(left)

    def _was_ended(self) -> SandboxAgentError:
        if self._is_stopping:
            return ShuttingDown("the server is shutting down")
        return AgentExited(f"the process of agent {self._id!r} was ended", agent=self._id)

    def _move(self, change: Change) -> None:
        self.lifecycle.apply(change)
        self._listener.changed()

    def _start_failed(self, problem: str) -> None:
        self.last_error = problem
        self._failed_at = time.monotonic()
        self._move(Change.EXIT)
        _log.warning("agent did not start agent=%s problem=%s", self._id, problem)

    def _start_done(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # whoever awaits ready() has got it; nobody else needs to

    def _exited(self, status: ExitStatus) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        self._listener.exited()
        stderr = self.last_stderr = process.stderr.summary()
        if self._is_stopping or self.lifecycle.state is State.STOPPING:
            self._move(Change.EXIT)
            self._listener.ending(self._was_ended())  # who has asked since it was told to end
            return
        if process.uptime > self.lifecycle.delay + 10.0:
            self.lifecycle.worked()
        error = AgentExited(f"agent {self._id!r} {status.words}", exitCode=status.code, stderr=stderr, agent=self._id)
        if self.last_error is None or self.initialized is not None:
            self.last_error = str(error)
        self._failed_at = time.monotonic()
        self.initialized = None
        self._move(Change.EXIT)
        _log.warning(
            "agent exited agent=%s pid=%d code=%d stderr=%r", self._id, process.pid, status.code, stderr.tail[-1:]
        )
        self._listener.failed(error)
