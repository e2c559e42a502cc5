"""What the server itself asks of an agent process, and waits for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from sandbox_agent.core import frames, versions
from sandbox_agent.core.effects import Effect
from sandbox_agent.core.ids import AgentId, SessionId
from sandbox_agent.core.permission_policy import PermissionPolicy
from sandbox_agent.core.relay import Relay
from sandbox_agent.core.session import Client
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import AgentTimeout, RemoteError, SandboxAgentError
from sandbox_agent.hub.agents.advice import with_hint
from sandbox_agent.hub.agents.authentication import AUTH_REQUIRED, method_by_key, with_advice
from sandbox_agent.hub.agents.running import Running

_log = logging.getLogger(__name__)


class OwnCalls:
    """Each is answered, or fails in time. An agent that wants a login, and takes a key that is set, is logged in."""

    def __init__(
        self,
        agent_id: AgentId,
        *,
        relay: Relay,
        running: Running,
        apply: Callable[[list[Effect]], None],
        login_timeout: float,
    ) -> None:
        self._agent_id = agent_id
        self._relay = relay
        self._running = running
        self._apply = apply
        self._login_timeout = login_timeout
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._login: asyncio.Task[bool] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

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
        """Give the result, as version 1 has it. Raises RemoteError, AgentExited, AgentTimeout."""
        given = (method, params, session, on_behalf, policy, timeout, remembered)
        try:
            try:
                return await self._ask(*given)
            except RemoteError as error:
                if error.body.get("code") != AUTH_REQUIRED or not await self._log_in():
                    raise
            return await self._ask(*given)
        except RemoteError as error:
            spec = self._running.spec
            if error.body.get("code") == AUTH_REQUIRED:
                raise RemoteError(with_advice(error.body, spec, self._running.handshake)) from None
            raise RemoteError(with_hint(error.body, spec.advice if spec else {})) from None

    def resolve(self, call: int, line: bytes) -> None:
        """The agent has answered."""
        waiter = self._waiting.get(call)
        if waiter is not None and not waiter.done():
            waiter.set_result(line)

    def fail(self, error: SandboxAgentError) -> None:
        """The agent will answer nothing any more."""
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(error)

    def process_started(self) -> None:
        """The new process has not been logged in."""
        self._login = None

    async def _ask(
        self,
        method: str,
        params: Any,
        session: SessionId | None,
        on_behalf: tuple[Client, bytes] | None,
        policy: PermissionPolicy | None,
        timeout: float | None,
        remembered: Any = None,
    ) -> Any:
        self._running.require(method)
        call, effects = self._relay.call_own(
            method, params, session, on_behalf=on_behalf, policy=policy, remembered=remembered
        )
        waiter: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[call] = waiter
        try:
            self._apply(effects)
            async with asyncio.timeout(timeout):
                line = await waiter
        except TimeoutError:
            raise AgentTimeout(f"agent {self._agent_id!r} did not answer {method} within {timeout:g} s") from None
        finally:
            del self._waiting[call]
        answer = frames.decode(line)
        if "error" in answer:
            raise RemoteError(answer["error"] if isinstance(answer["error"], dict) else {})
        result = answer.get("result")
        version = self._relay.version
        if version is Version.V1 or method == "initialize":
            return result
        return versions.result(method, result, from_=version, to=Version.V1, asked=params)

    async def _log_in(self) -> bool:
        """Whether this process has been logged in by a key; tried once, for all who ask."""
        if self._login is None:
            self._login = asyncio.get_running_loop().create_task(self._authenticate(), name=f"login-{self._agent_id}")
        return await asyncio.shield(self._login)

    async def _authenticate(self) -> bool:
        running = self._running
        method = (
            method_by_key(running.handshake, running.spec, running.environment(running.spec)) if running.spec else None
        )
        if method is None:
            return False
        agent = self._agent_id
        try:
            await self._ask("authenticate", {"methodId": method}, None, None, None, self._login_timeout)
        except SandboxAgentError as error:
            _log.warning("agent did not take the key that is set agent=%s method=%s problem=%s", agent, method, error)
            return False
        _log.info("agent logged in by a key agent=%s method=%s", agent, method)
        return True
