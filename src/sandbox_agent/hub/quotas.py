"""How much may go on at once in the whole server, and of one user, where somebody has set a limit."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sandbox_agent.core.ids import SessionKey
from sandbox_agent.core.session import Phase, Session
from sandbox_agent.errors import TooMany
from sandbox_agent.hub.agents.agents import Agents


class Quotas(msgspec.Struct, frozen=True):
    """None: no limit. Counted when asked, as few servers have a limit and all have a hot path."""

    agents: Agents
    sessions: int | None
    turns: int | None
    turns_per_user: int | None

    def room_for_a_session(self) -> None:
        """Raises TooMany if as many sessions are open in agents as may be."""
        if self.sessions is not None and self._open() >= self.sessions:
            raise TooMany(
                f"{self.sessions} sessions are open, as many as this server allows (max_open_sessions); "
                "end one with session/close, or terminate or delete it"
            )

    def room_for_a_turn(self, key: SessionKey, user: str | None) -> None:
        """Raises TooMany if turns run in as many other sessions as may be. A prompt behind a running one only waits."""
        if self.turns is not None and sum(1 for _ in self._at_work(key)) >= self.turns:
            raise TooMany(
                f"{self.turns} turns are running, as many as this server allows (max_running_turns); try again"
            )
        if self.turns_per_user is None or user is None:
            return
        if sum(_prompted_by(user, session) for session in self._at_work(key)) >= self.turns_per_user:
            raise TooMany(
                f"{user} has {self.turns_per_user} turns running, as many as one user may have "
                "(max_running_turns_per_user); try again"
            )

    def _open(self) -> int:
        ours = (one for agent in self.agents for one in agent.sessions.values())
        return sum(one.phase not in {Phase.DORMANT, Phase.ENDED} for one in ours)

    def _at_work(self, besides: SessionKey) -> Iterator[Session]:
        """Those with a turn that runs, or that will as soon as the session has been woken."""
        for agent in self.agents:
            for name, one in agent.sessions.items():
                if not one.is_idle and agent.key(name) != besides:
                    yield one


def _prompted_by(user: str, session: Session) -> bool:
    call = session.running or session.queue[0]
    return call.user == user
