"""Idempotent prompts: the same turnId runs once, however often it is sent, and by clients of whichever version.

Version 1 is answered when the turn is over, version 2 when it has begun; so both are remembered of a turn."""

from __future__ import annotations

from collections import deque
from uuid import uuid4

import msgspec
from msgspec import UNSET, Raw, UnsetType

from sandbox_agent.core import frames
from sandbox_agent.core.ids import ConnectionId, SessionKey
from sandbox_agent.core.json_values import as_object, as_text, read_json
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import AgentExited, RequestCancelled, ShuttingDown, StoreDegraded
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.store.base import Store

_REMEMBERED = 4096
_STOPPING = f":{ShuttingDown.__new__(ShuttingDown).kind}"
_NEVER_RAN = b""
"""Stored in place of an answer: the same turnId may be used again."""


class _Outcome(msgspec.Struct, omit_defaults=True, rename="camel"):
    """What is known of a turn, as it is stored. Without `result` and `error` it has begun, and no more is known."""

    message_id: str = ""
    """The prompt's name as a message, which version 2 is answered with."""
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def is_over(self) -> bool:
        return self.result is not UNSET or self.error is not UNSET

    @property
    def was_cut_off(self) -> bool:
        """Whether it ended because its server stopped: to say that of this one would have clients try again."""
        said = as_object(read_json(bytes(self.error))) if isinstance(self.error, Raw) else {}
        return as_text(as_object(said.get("data")).get("type")).endswith(_STOPPING)

    def answer(self, key: bytes, version: Version) -> bytes | None:
        """What a client of this version is answered; None if that is not known yet."""
        if version is Version.V2 and self.message_id:
            return frames.result(key, {"messageId": self.message_id})
        if isinstance(self.error, Raw):
            return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (key, bytes(self.error))
        if not isinstance(self.result, Raw):
            return None
        if version is Version.V2:  # it ran before anybody wanted to know what its prompt is called
            return frames.result(key, {"messageId": f"msg_{uuid4().hex}"})
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (key, bytes(self.result))


class _Turn(msgspec.Struct):
    key: SessionKey
    turn_id: str
    waiting: list[Request] = msgspec.field(default_factory=list)
    outcome: _Outcome = msgspec.field(default_factory=_Outcome)


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

    def session_deleted(self, key: SessionKey) -> None:
        """The agent may give the name to another session: it has no turns yet."""
        for turn in [turn for turn in self._turns if turn[0] == key]:
            del self._turns[turn]
        self._fresh.discard(key)

    async def begin(self, key: SessionKey, turn_id: str, request: Request) -> bool:
        """Whether the prompt is to be run. If not, it has been answered or will be with the turn that runs.

        Raises StoreDegraded."""
        is_known, stored = False, None
        if (key, turn_id) not in self._turns and (key not in self._fresh or self._has_forgotten):
            is_known, stored = await self._store.get_turn(key, turn_id)
        turn = self._turns.get((key, turn_id))
        if turn is not None:
            if not _give(turn, request):
                turn.waiting.append(request)
            return False
        if is_known and stored != _NEVER_RAN:
            old = _Turn(key, turn_id, outcome=_read(stored))
            if old.outcome.was_cut_off or not _give(old, request):
                lost = "this turn was running when the server stopped; send it again under another turnId"
                request.fail(AgentExited(lost, turnId=turn_id), key.session)
            return False
        self._remember_start(key, turn_id)
        turn = self._turns[key, turn_id] = _Turn(key, turn_id)
        self._by_ticket[request.connection.id, request.ticket] = turn
        return True

    def begun(self, key: SessionKey, turn_id: str, message_id: str) -> None:
        """The agent has taken the prompt up, as the message that is called so."""
        turn = self._turns.get((key, turn_id))
        if turn is not None and not turn.outcome.message_id:
            self._learn(turn, msgspec.structs.replace(turn.outcome, message_id=message_id))

    def ended(self, key: SessionKey, turn_id: str, result: Raw | UnsetType, error: Raw | UnsetType) -> None:
        """The turn is over, with what version 1 is answered."""
        turn = self._turns.get((key, turn_id))
        if turn is not None and not turn.outcome.is_over:
            self._learn(turn, msgspec.structs.replace(turn.outcome, result=result, error=error))

    def answered(self, connection: ConnectionId, ticket: int, line: bytes, *, has_run: bool) -> None:
        """The first who sent it has its answer. What never ran may be sent anew."""
        turn = self._by_ticket.pop((connection, ticket), None)
        if turn is None:
            return
        if has_run:
            answer = _read(line)
            message_id = _message_id(answer.result)
            if message_id:
                self.begun(turn.key, turn.turn_id, message_id)
            else:
                self.ended(turn.key, turn.turn_id, answer.result, answer.error)
            return
        for request in turn.waiting:
            request.give(_never_ran(line, request), turn.key.session)
        self._turns.pop((turn.key, turn.turn_id), None)
        self._store.put_turn(turn.key, turn.turn_id, _NEVER_RAN)

    def _learn(self, turn: _Turn, outcome: _Outcome) -> None:
        """Remember it, and answer those whose version can be answered now."""
        was_over, turn.outcome = turn.outcome.is_over, outcome
        self._store.put_turn(turn.key, turn.turn_id, frames.to_json(outcome))
        turn.waiting = [request for request in turn.waiting if not _give(turn, request)]
        if was_over or not outcome.is_over:
            return
        self._answered.append((turn.key, turn.turn_id))
        while len(self._answered) > _REMEMBERED:
            self._turns.pop(self._answered.popleft(), None)
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


def _never_ran(line: bytes, request: Request) -> bytes:
    """The answer to a prompt that was refused or cancelled before it ran, for another who sent it too."""
    if request.connection.version is Version.V2 and frames.member(line, "result") is not None:
        return frames.failure(request.frame.key, RequestCancelled("cancelled while it waited in the session's queue"))
    return frames.with_id(line, request.frame.key)


def _give(turn: _Turn, request: Request) -> bool:
    """Whether its answer is known, and given."""
    line = turn.outcome.answer(request.frame.key, request.connection.version)
    if line is not None:
        request.give(line, turn.key.session)
    return line is not None


def _read(stored: bytes | None) -> _Outcome:
    """An outcome as it is stored, or an answer: then only what it says counts."""
    return read_json(stored or b"{}", _Outcome) or _Outcome()


def _message_id(result: Raw | UnsetType) -> str:
    """The name that an acknowledgement of version 2 gives; none in an answer of version 1."""
    said = as_object(read_json(bytes(result))) if isinstance(result, Raw) else {}
    return as_text(said.get("messageId")) if "stopReason" not in said else ""
