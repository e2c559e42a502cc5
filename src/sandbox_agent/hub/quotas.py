"""How much may go on at once in the whole server, where somebody has set a limit."""

from __future__ import annotations

import msgspec

from sandbox_agent.core.ids import SessionKey
from sandbox_agent.core.session import Phase
from sandbox_agent.errors import TooMany
from sandbox_agent.hub.agents.agents import Agents


class Quotas(msgspec.Struct, frozen=True):
    """None: no limit. Counted when asked, as few servers have a limit and all have a hot path."""

    agents: Agents
    sessions: int | None
    turns: int | None

    def room_for_a_session(self) -> None:
        """Raises TooMany if as many sessions are open in agents as may be."""
        if self.sessions is not None and self._open() >= self.sessions:
            raise TooMany(
                f"{self.sessions} sessions are open, as many as this server allows (max_open_sessions); "
                "end one with session/close, or terminate or delete it"
            )

    def room_for_a_turn(self, key: SessionKey) -> None:
        """Raises TooMany if turns run in as many other sessions as may be. A prompt behind a running one only waits."""
        if self.turns is not None and self._at_work(key) >= self.turns:
            raise TooMany(
                f"{self.turns} turns are running, as many as this server allows (max_running_turns); try again"
            )

    def _open(self) -> int:
        ours = (one for agent in self.agents for one in agent.sessions.values())
        return sum(one.phase not in {Phase.DORMANT, Phase.ENDED} for one in ours)

    def _at_work(self, besides: SessionKey) -> int:
        return sum(
            one.running is not None and agent.key(name) != besides
            for agent in self.agents
            for name, one in agent.sessions.items()
        )
