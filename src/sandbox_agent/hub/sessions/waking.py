"""Waking: having the process take up a session that none holds any more."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Any

from sandbox_agent.core import config_options
from sandbox_agent.core.ids import SessionKey, SessionName
from sandbox_agent.core.session import Phase
from sandbox_agent.errors import RemoteError, SandboxAgentError, SessionEnded, ShuttingDown
from sandbox_agent.history.wording import version_at
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.agents import Agents
from sandbox_agent.hub.agents.authentication import AUTH_REQUIRED
from sandbox_agent.hub.agents.handshake import Initialized
from sandbox_agent.hub.directories.directories import Directories
from sandbox_agent.hub.sessions.establish import kept_policy
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.naming import Naming
from sandbox_agent.store.base import SessionRecord

_WAKE_TIMEOUT = 120.0
_REPLAY_QUIET, _REPLAY_TIMEOUT = 0.15, 10.0
"""A replay is over when the agent has been silent about the session for so long; the bound on that wait."""


class Waking:
    def __init__(self, agents: Agents, inventory: Inventory, naming: Naming, directories: Directories) -> None:
        self._agents = agents
        self._directories = directories
        self._inventory = inventory
        self._naming = naming
        self._under_way: dict[SessionKey, asyncio.Task[None]] = {}
        self._settling: dict[SessionKey, _Quiet] = {}

    async def live(self, key: SessionKey) -> None:
        """Return when the running process holds the session. Raises why it cannot."""
        if not self._agents.of(key).open(key.session).is_live:
            await self.wake(key)

    async def wake(self, key: SessionKey) -> None:
        """Have the process take the session up again, once for all who ask. Raises why it cannot."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._wake(key), name=f"wake-{key.session}")
            task.add_done_callback(_heard)
        await asyncio.shield(task)

    def replayed(self, key: SessionKey) -> None:
        """More of a late replay has come."""
        if key in self._settling:
            self._settling[key].disturb()

    async def _wake(self, key: SessionKey) -> None:
        agent = self._agents.of(key)
        try:
            await self._take_up_again(agent, key)
        except BaseException as error:
            del self._under_way[key]  # in this very step: who prompts from here on is woken anew
            if key.session in agent.sessions:
                agent.wake_failed(key.session, _reason(error))
            raise
        del self._under_way[key]
        if agent.sessions[key.session].phase is Phase.SETTLING:
            agent.woken(key.session)

    async def _take_up_again(self, agent: Agent, key: SessionKey) -> None:
        native = (await self._open_record(key)).native
        initialized = await agent.ready()
        if not (initialized.can("resume") or initialized.can("load")):
            raise SessionEnded(
                f"agent {key.agent!r} can neither resume nor load sessions: {key.session!r} can be read only",
                sessionId=key.session,
            )
        async with self._naming.resuming(key.agent, native):
            await self._resume(agent, key, initialized)

    async def _resume(self, agent: Agent, key: SessionKey, initialized: Initialized) -> None:
        record = await self._open_record(key)  # again: a start takes long enough for somebody to end it or delete it
        if version_at(record.spoken, sys.maxsize) is not agent.version:
            record.spoken = [*record.spoken, (self._inventory.last_sequence(record) + 1, int(agent.version))]
        agent.open(key.session)
        agent.wake(key.session, kept_policy(record.permission_mode, agent.default_policy), record.native)
        result = await self._take_up(agent, initialized, record)
        _require_held(agent, key)
        record.offered = {**record.offered, **config_options.from_answer(result)}
        self._inventory.save(record)

    async def _open_record(self, key: SessionKey) -> SessionRecord:
        """The record of a session that can be taken up, as far as we know in this step. Raises why it cannot."""
        name = SessionName(key.session, key.agent)
        record = await self._inventory.resolve(name)
        if not await self._inventory.has_kept_its_name(record):
            raise SessionEnded(_name_lost(record), sessionId=key.session)
        record = await self._inventory.resolve(name)
        if record.ended is not None:
            raise SessionEnded(f"session {key.session!r} has ended: {record.ended_reason}", sessionId=key.session)
        return record

    async def _take_up(self, agent: Agent, initialized: Initialized, record: SessionRecord) -> Any:
        """Resume, or load where the agent cannot resume or fails to. Raises SessionEnded with the agent's reason."""
        equipment = await self._directories.equip(
            agent.id, record.cwd, record.mcp_servers, initialized.capabilities, record.skills
        )
        params: dict[str, Any] = {
            "sessionId": record.session_id,
            "cwd": record.cwd or "/",
            "mcpServers": [*record.mcp_servers, *equipment.servers],
        }
        if record.additional_directories:
            params["additionalDirectories"] = record.additional_directories
        verbs = [verb for verb in ("resume", "load") if initialized.can(verb)]
        for verb in verbs:
            try:
                result = await agent.request(
                    f"session/{verb}", params, session=record.session_id, timeout=_WAKE_TIMEOUT
                )
            except RemoteError as error:
                if error.body.get("code") == AUTH_REQUIRED:
                    raise
                if verb == verbs[-1]:
                    raise SessionEnded(
                        f"agent {agent.id!r} could not {verb} session {record.session_id!r}: {error}",
                        sessionId=record.session_id,
                        agentError=error.body,
                    ) from None
            else:
                if verb == "load":
                    await self._settle(record.key)
                return result
        return {}

    async def _settle(self, key: SessionKey) -> None:
        """Return when the replay has ended: some agents answer `session/load` first and replay then."""
        quiet = self._settling[key] = _Quiet(_REPLAY_QUIET)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REPLAY_TIMEOUT):
                    await quiet.reached.wait()
        finally:
            quiet.close()
            del self._settling[key]


def _heard(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # whoever waits has got it


def _reason(error: BaseException) -> SandboxAgentError:
    if isinstance(error, SandboxAgentError):
        return error
    if isinstance(error, asyncio.CancelledError):
        return ShuttingDown("the server is shutting down")
    return SandboxAgentError("the session could not be taken up again: internal error; see the server log")


def _require_held(agent: Agent, key: SessionKey) -> None:
    """The process may have died, or the session been deleted, while it was taken up."""
    session = agent.sessions.get(key.session)
    if session is None or not (session.is_live or session.phase is Phase.SETTLING):
        raise SessionEnded(f"session {key.session!r} was lost while it was taken up again", sessionId=key.session)


class _Quiet:
    """Reached when nothing has disturbed it for a while. There is one timer, however often it is disturbed."""

    def __init__(self, patience: float) -> None:
        self.reached = asyncio.Event()
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._timer = self._loop.call_later(patience, self._look)

    def disturb(self) -> None:
        self._since = self._loop.time()

    def close(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        left = self._since + self._patience - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self.reached.set()


def _name_lost(record: SessionRecord) -> str:
    if record.name_given_to == record.native:
        return f"agent {record.agent!r} has called another session {record.native!r} too, and that one was deleted"
    return f"agent {record.agent!r} has given its name {record.native!r} to a newer session"
