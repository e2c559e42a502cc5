"""Which process holds a session: one for all sessions of an agent, or one for each.

Callers ask `Agents`, by the session's key; which of the two an agent has is decided there and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

import msgspec

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.lifecycle import State
from sandbox_agent.errors import Overloaded, SessionEnded
from sandbox_agent.hub.agents.agent import Agent

FindSpec = Callable[[AgentId], Awaitable[LaunchSpec]]
MakeAgent = Callable[[AgentId, FindSpec], Agent]

_UP = (State.STARTING, State.RUNNING, State.STOPPING)


class Tally(msgspec.Struct, frozen=True):
    """What an agent's processes have done so far, those included that are no more. It only grows."""

    restarts: int = 0
    events_in: int = 0
    events_out: int = 0

    def plus(self, agent: Agent) -> Tally:
        came, went = agent.traffic
        return Tally(self.restarts + agent.lifecycle.restarts, self.events_in + came, self.events_out + went)


class Processes(Protocol):
    """The processes of those agents that are isolated in the same way."""

    def __iter__(self) -> Iterator[Agent]: ...

    def all_of(self, agent_id: AgentId) -> list[Agent]:
        """Every one of this agent that is there, running or not."""

    def tally(self, agent_id: AgentId) -> Tally: ...

    def run_of(self, agent_id: AgentId) -> int:
        """Another number than before if what the agent said of itself may have changed."""

    def front(self, agent_id: AgentId) -> Agent:
        """The one that is asked what concerns no session: handshake, login, methods of the agent's own."""

    def of(self, key: SessionKey) -> Agent:
        """The one that holds the session, or will hold it when it is woken."""

    def found(self, key: SessionKey) -> Agent | None:
        """As `of`, if it is there already."""

    def knowing(self, agent_id: AgentId, session: SessionId) -> Agent | None:
        """As `found`, for the hot path: no key is made where none is needed."""

    def take(self, agent_id: AgentId, parent: SessionKey | None) -> Agent:
        """One that may make a session, or fork it from `parent`. It is followed by `made` or `gave_back`."""

    async def made(self, agent: Agent, key: SessionKey) -> None:
        """The session is there: from now on `of` gives its process."""

    def adopted(self, agent: Agent, key: SessionKey) -> None:
        """It has made the session by itself, as part of one that it holds."""

    async def gave_back(self, agent: Agent, *, is_used: bool) -> None:
        """No session is kept that it made; with `is_used` it did make one."""

    async def let_go(self, key: SessionKey) -> None:
        """The session is closed, ended or deleted: nothing need run for it."""


class SharedProcesses:
    """One process for all sessions of an agent."""

    def __init__(self, make: MakeAgent, find_spec: FindSpec) -> None:
        self._make = make
        self._find_spec = find_spec
        self._made: dict[AgentId, Agent] = {}

    def __iter__(self) -> Iterator[Agent]:
        return iter(list(self._made.values()))

    def all_of(self, agent_id: AgentId) -> list[Agent]:
        return [self._made[agent_id]] if agent_id in self._made else []

    def tally(self, agent_id: AgentId) -> Tally:
        agent = self._made.get(agent_id)
        return Tally().plus(agent) if agent is not None else Tally()

    def run_of(self, agent_id: AgentId) -> int:
        agent = self._made.get(agent_id)
        return agent.lifecycle.starts if agent is not None and agent.is_ready else 0

    def front(self, agent_id: AgentId) -> Agent:
        found = self._made.get(agent_id)
        if found is None:
            found = self._made[agent_id] = self._make(agent_id, self._find_spec)
        return found

    def of(self, key: SessionKey) -> Agent:
        return self.front(key.agent)

    def found(self, key: SessionKey) -> Agent | None:
        return self._made.get(key.agent)

    def knowing(self, agent_id: AgentId, session: SessionId) -> Agent | None:
        return self._made.get(agent_id)

    def take(self, agent_id: AgentId, parent: SessionKey | None) -> Agent:
        return self.front(agent_id)

    async def made(self, agent: Agent, key: SessionKey) -> None:
        pass

    def adopted(self, agent: Agent, key: SessionKey) -> None:
        pass

    async def gave_back(self, agent: Agent, *, is_used: bool) -> None:
        pass

    async def let_go(self, key: SessionKey) -> None:
        pass


class SessionProcesses:
    """A process for each session, so that no session hears of another, and none falls with another.

    At most `limit` run at a time, over all such agents. When one more is needed, the one that has been idle longest
    rests, if its session can be woken again; if there is none such, the new one is refused. What was started for a
    handshake is the process of the first session that is made after it.
    """

    def __init__(self, make: MakeAgent, find_spec: FindSpec, *, limit: int) -> None:
        self._make = make
        self._find = find_spec
        self._limit = limit
        self._held: dict[SessionKey, Agent] = {}
        self._spare: dict[AgentId, Agent] = {}
        self._taken: list[Agent] = []
        self._past: dict[AgentId, Tally] = {}

    def __iter__(self) -> Iterator[Agent]:
        return iter(dict.fromkeys([*self._held.values(), *self._spare.values(), *self._taken]))

    def all_of(self, agent_id: AgentId) -> list[Agent]:
        return [agent for agent in self if agent.id == agent_id]

    def tally(self, agent_id: AgentId) -> Tally:
        total = self._past.get(agent_id, Tally())
        for agent in self.all_of(agent_id):
            total = total.plus(agent)
        return total

    def run_of(self, agent_id: AgentId) -> int:
        return 1

    def front(self, agent_id: AgentId) -> Agent:
        spare = self._spare.get(agent_id)
        if spare is not None and spare.is_ready:
            return spare
        running = next((agent for agent in self.all_of(agent_id) if agent.is_ready), None)
        if running is not None:
            return running
        if spare is None:
            spare = self._spare[agent_id] = self._new(agent_id)
        return spare

    def of(self, key: SessionKey) -> Agent:
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = self._new(key.agent)
            found.own_session = key.session
        return found

    def found(self, key: SessionKey) -> Agent | None:
        return self._held.get(key)

    def knowing(self, agent_id: AgentId, session: SessionId) -> Agent | None:
        return self._held.get((agent_id, session))  # type: ignore[call-overload,no-any-return]  # equal to a SessionKey, made sooner

    def take(self, agent_id: AgentId, parent: SessionKey | None) -> Agent:
        if parent is not None:
            return self.of(parent)
        agent = self._spare.pop(agent_id, None) or self._new(agent_id)
        self._taken.append(agent)
        return agent

    async def made(self, agent: Agent, key: SessionKey) -> None:
        """A fork was made by its parent's process: that one lets it go, and it wakes in a process of its own."""
        if agent.own_session is not None:
            agent.forget(key.session, SessionEnded("the fork goes on in a process of its own", sessionId=key.session))
            return
        self._taken.remove(agent)
        agent.own_session = key.session
        before, self._held[key] = self._held.get(key), agent
        if before is not None:
            before.forget(key.session, SessionEnded("the agent has given its name to a new one", sessionId=key.session))
            self._passed(before)
            await before.rest()

    def adopted(self, agent: Agent, key: SessionKey) -> None:
        self._held[key] = agent

    async def gave_back(self, agent: Agent, *, is_used: bool) -> None:
        if agent not in self._taken:
            return
        self._taken.remove(agent)
        if is_used or agent.id in self._spare:
            self._passed(agent)
            await agent.rest()
        else:
            self._spare[agent.id] = agent

    async def let_go(self, key: SessionKey) -> None:
        agent = self._held.get(key)
        if agent is None:
            return
        if agent.own_session != key.session:  # a helper's: the process is another's
            del self._held[key]
            return
        await agent.rest()
        if not agent.sessions and self._held.get(key) is agent:
            self._passed(self._held.pop(key))

    async def rest_idle(self, before: float) -> list[Agent]:
        """End processes that nothing has happened in since `before` and whose session nobody is attached to."""
        idle = [agent for agent in self._idle() if agent.last_used < before and not agent.is_attended]
        await asyncio.gather(*(agent.rest() for agent in idle))
        return idle

    def _new(self, agent_id: AgentId) -> Agent:
        return self._make(agent_id, self._find_spec)

    async def _find_spec(self, agent_id: AgentId) -> LaunchSpec:
        """How to launch it, once there is room for one more; nothing is waited for between that and its start."""
        spec = await self._find(agent_id)
        while sum(agent.lifecycle.state in _UP for agent in self) >= self._limit:
            idle = min(self._idle(), key=lambda agent: (agent.is_attended, agent.last_used), default=None)
            if idle is None:
                raise Overloaded(
                    f"{self._limit} agent processes are running, one for each session, and all are in use: "
                    "close a session, or raise max_session_processes"
                )
            await idle.rest()
        return spec

    def _idle(self) -> list[Agent]:
        """Those that can be ended without anybody losing anything."""
        return [agent for agent in self if agent.is_idle and agent not in self._taken]

    def _passed(self, agent: Agent) -> None:
        self._past[agent.id] = self._past.get(agent.id, Tally()).plus(agent)
