"""Idempotent prompts: the same turnId runs once, however often it is sent."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from sandbox_agent.core import frames
from sandbox_agent.core.ids import ConnectionId, SessionKey
from sandbox_agent.errors import AgentExited, StoreDegraded
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.store.base import Store

_REMEMBERED = 4096
_NEVER_RAN = b""
"""Stored in place of an answer: the same turnId may be used again."""


@dataclass(slots=True)
class _Turn:
    key: SessionKey
    turn_id: str
    waiting: list[Request] = field(default_factory=list)
    answer: bytes | None = None


class TurnIds:
    def __init__(self, store: Store, *, needs_memory: bool) -> None:
        """`needs_memory`: refuse turns while the store could forget them if we died."""
        self._store = store
        self._needs_memory = needs_memory
        self._turns: dict[tuple[SessionKey, str], _Turn] = {}
        self._answered: deque[tuple[SessionKey, str]] = deque()
        """In the order of their answers: these may be forgotten, the store has them. Running ones never are."""
        self._by_ticket: dict[tuple[ConnectionId, int], _Turn] = {}
        self._fresh: set[SessionKey] = set()
        self._has_forgotten = False

    def session_made(self, key: SessionKey) -> None:
        """A session made by this server: all its turns are in memory, so that prompts need not wait for the store."""
        self._fresh.add(key)

    async def begin(self, key: SessionKey, turn_id: str, request: Request) -> bool:
        """Whether the prompt is to be run. If not, it has been answered or will be with the turn that runs.

        Raises StoreDegraded."""
        is_known, stored = False, None
        if (key, turn_id) not in self._turns and (key not in self._fresh or self._has_forgotten):
            is_known, stored = await self._store.get_turn(key, turn_id)
        turn = self._turns.get((key, turn_id))
        if turn is not None:
            if turn.answer is None:
                turn.waiting.append(request)
            else:
                request.give(frames.with_id(turn.answer, request.frame.key), key.session)
            return False
        if is_known and stored != _NEVER_RAN:
            if stored is not None:
                request.give(frames.with_id(stored, request.frame.key), key.session)
            else:
                lost = "this turn was running when the server stopped; send it again under another turnId"
                request.fail(AgentExited(lost, turnId=turn_id), key.session)
            return False
        self._remember_start(key, turn_id)
        turn = self._turns[key, turn_id] = _Turn(key, turn_id)
        self._by_ticket[request.connection.id, request.ticket] = turn
        return True

    def answered(self, connection: ConnectionId, ticket: int, line: bytes, *, has_run: bool) -> None:
        """Give the answer to everybody who sent this turn again, and remember it. What never ran may be sent anew."""
        turn = self._by_ticket.pop((connection, ticket), None)
        if turn is None:
            return
        for request in turn.waiting:
            request.give(frames.with_id(line, request.frame.key), turn.key.session)
        turn.waiting.clear()
        if not has_run:
            del self._turns[turn.key, turn.turn_id]
            self._store.put_turn(turn.key, turn.turn_id, _NEVER_RAN)
            return
        turn.answer = line
        self._store.put_turn(turn.key, turn.turn_id, line)
        self._answered.append((turn.key, turn.turn_id))
        while len(self._answered) > _REMEMBERED:
            del self._turns[self._answered.popleft()]
            self._has_forgotten = True

    def _remember_start(self, key: SessionKey, turn_id: str) -> None:
        self._store.put_turn(key, turn_id, None)
        if self._needs_memory and self._store.is_degraded:  # asked afterwards: this write may be the first to fail
            self._store.put_turn(key, turn_id, _NEVER_RAN)
            raise StoreDegraded(
                "history is not being written, so that a prompt with a turnId could run twice after a crash: "
                "free disk space, send it without a turnId, or set refuse_turns_when_degraded = false",
                turnId=turn_id,
            )
