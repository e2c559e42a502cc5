"""Connections of clients that want to know what the earlier API would have said of each message.

A client asks with `clientCapabilities._meta["sandboxagent.dev"].legacyEvents: true`. What goes to it waits in line,
while its sessions' histories are read and folded; nobody else's connection does any of this. The line never waits for
the client, and it has a bound: what stands in it when it has grown too long is passed on as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.ids import SessionId, SessionKey, StreamKey
from sandbox_agent.core.methods import PERMISSION, PROMPT, QUESTION
from sandbox_agent.core.notices import PREFIX
from sandbox_agent.errors import SandboxAgentError
from sandbox_agent.history.universal import UniversalEvent, UniversalEvents
from sandbox_agent.history.universal.correlation import correlated
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.store.base import Store

C = TypeVar("C", bound=Connection)
_log = logging.getLogger(__name__)
_CHUNK = 250
"""Entries that are folded in one go: others have their turn in between."""
_REMEMBERED = 1000
"""Questions of a session whose events are kept, for those who are asked or told later."""
_THREADS = 64
"""Sessions of a connection whose fold is kept. One that is needed again later is folded anew."""
_STREAMS = 4096
_OVERHEAD = 300
"""Bytes that a place in the line costs, beside its lines."""
_OPENING = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_ANSWERED = _OPENING | {PROMPT}
_TURN_STARTED, _TURN_ENDED, _SETTLED = (PREFIX + name for name in ("turn_started", "turn_ended", "settled"))
_TOLD = frozenset({PERMISSION, QUESTION, _TURN_STARTED, _TURN_ENDED, _SETTLED})
"""Messages for one connection alone that are events of the history all the same."""


class _Params(msgspec.Struct, rename="camel"):
    request_id: msgspec.Raw = msgspec.Raw(b"null")
    prompted_by: str | None = None
    has_run: bool = False


class _Item(msgspec.Struct):
    """One thing to pass on. `sequence` is where its lines stand in the history, 0 if they do not."""

    lines: list[bytes]
    pass_on: Callable[[bytes], None]
    stream: StreamKey | None = None
    """The history that is read for it, up to `last`; None if nothing is to be said of it."""
    last: int = 0
    sequence: int = 0
    method: str | None = None
    """Of the request that it answers."""

    @property
    def size(self) -> int:
        return sum(map(len, self.lines)) + _OVERHEAD


class _Thread(msgspec.Struct):
    """A session's history, folded as far as it has been needed."""

    converter: UniversalEvents
    cursor: int = 0
    wanted: deque[range] = msgspec.field(default_factory=deque)
    """Entries that stand in the line, in order: the events of no others are kept."""
    ahead: dict[int, list[UniversalEvent]] = msgspec.field(default_factory=dict)
    latest: dict[str, UniversalEvent] = msgspec.field(default_factory=dict)
    questions: dict[tuple[str, str], UniversalEvent] = msgspec.field(default_factory=dict)

    @property
    def is_wanted(self) -> bool:
        return bool(self.wanted or self.ahead)

    def add(self, sequence: int, events: list[UniversalEvent]) -> None:
        self.cursor = sequence
        while self.wanted and self.wanted[0].stop <= sequence:
            self.wanted.popleft()
        if events and self.wanted and sequence in self.wanted[0]:
            self.ahead[sequence] = events
        for event in events:
            self.latest[event.type] = event
            asked = event.data.get("permission_id", event.data.get("question_id"))
            if asked is not None:
                self.questions[event.type.partition(".")[2], asked] = event
                if len(self.questions) > _REMEMBERED:
                    del self.questions[next(iter(self.questions))]


class Correlated(Connection):
    """To be mixed with the kind of connection that its door wants, in front of it: see `correlating`."""

    is_correlated = True
    _store: Store
    _waiting_bytes: int

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._line: deque[_Item] = deque()
        self._size = 0
        self._worker: asyncio.Task[None] | None = None
        self._is_passing = False
        self._threads: dict[StreamKey, _Thread] = {}
        self._streams: dict[SessionId, StreamKey] = {}
        self._turns: dict[bytes, UniversalEvent] = {}
        """The ends of turns of ours, by the id of the prompt, until it is answered."""

    def deliver(self, session: SessionId | None, stream: StreamKey, sequence: int, lines: list[bytes]) -> None:
        if session is not None and session not in self._streams:
            if len(self._streams) >= _STREAMS:
                del self._streams[next(iter(self._streams))]
            self._streams[session] = stream
        own, last = super().deliver_own, sequence + len(lines) - 1
        self._thread(stream).wanted.append(range(sequence, last + 1))
        self._put(_Item(list(lines), lambda line: own(session, line), stream, last, sequence))

    def deliver_own(self, session: SessionId | None, line: bytes) -> None:
        own = super().deliver_own
        if self._is_passing:  # the answer that is being passed on: its kind puts it on the stream
            own(session, line)
            return
        item = _Item([line], lambda line: own(session, line))
        if session is not None and frames.parse(line).method in _TOLD:
            self._let_read(item, session)
        self._put(item)

    def deliver_own_lines(self, session: SessionId | None, lines: list[bytes]) -> None:
        for line in lines:
            self.deliver_own(session, line)

    def deliver_replayed(self, session: SessionId, lines: list[bytes]) -> None:
        own = super().deliver_own
        self._put(_Item(list(lines), lambda line: own(session, line)))

    def reply(self, ticket: int, line: bytes, session: SessionId | None, method: str) -> None:
        answer = super().reply
        item = _Item([line], lambda line: answer(ticket, line, session, method), method=method)
        if session is not None and method in _ANSWERED:
            self._let_read(item, session)
        self._put(item)

    def close(self, reason: str, error: SandboxAgentError) -> None:
        if self._worker is not None:
            self._worker.cancel()
        self._hurry()
        super().close(reason, error)

    def _let_read(self, item: _Item, session: SessionId) -> None:
        """As far as the history has come now."""
        item.stream = self._streams.get(session) or SessionKey(self.agent, session).stream
        item.last = self._store.last_sequence(item.stream)

    def _put(self, item: _Item) -> None:
        self._line.append(item)
        self._size += item.size
        if self._size > self._waiting_bytes:
            _log.warning("correlation is behind connection=%s bytes=%d: passed on without", self.id, self._size)
            self._hurry()
        elif self._worker is None and not self.is_closed:
            self._worker = asyncio.get_running_loop().create_task(self._work(), name=f"correlate-{self.id}")

    def _hurry(self) -> None:
        """Pass on what waits, as it is."""
        self._turns.clear()
        for thread in self._threads.values():
            thread.wanted.clear()
            thread.ahead.clear()
        while self._line:
            item = self._line[0]
            self._pass(item, item.lines)

    async def _work(self) -> None:
        try:
            while self._line:
                item = self._line[0]
                lines = await self._correlated(item)
                if self._line and self._line[0] is item:  # else it has been passed on meanwhile
                    self._pass(item, lines)
        finally:
            self._worker = None

    def _pass(self, item: _Item, lines: list[bytes]) -> None:
        self._line.popleft()
        self._size -= item.size
        self._is_passing = True
        try:
            for line in lines:
                item.pass_on(line)
        finally:
            self._is_passing = False

    async def _correlated(self, item: _Item) -> list[bytes]:
        """The item's lines with what can be said of them; as they are where nothing can, whatever the reason."""
        if item.stream is None:
            return item.lines
        try:
            thread = await self._read_to(item.stream, item.last)
            if item.sequence:
                of = thread.ahead
                return [correlated(line, of.pop(item.sequence + n, ())) for n, line in enumerate(item.lines)]
            return [correlated(line, self._events_of(thread, line, item.method)) for line in item.lines]
        except Exception:  # noqa: BLE001 - a task boundary: what was to be told is told all the same
            _log.exception("no correlation connection=%s stream=%s", self.id, item.stream)
            return item.lines

    def _thread(self, stream: StreamKey) -> _Thread:
        thread = self._threads.pop(stream, None)
        if thread is None:
            thread = _Thread(UniversalEvents(""))
            if len(self._threads) >= _THREADS:
                spare = next((name for name, kept in self._threads.items() if not kept.is_wanted), None)
                if spare is not None:
                    del self._threads[spare]
        self._threads[stream] = thread  # the last one used is the last one to be forgotten
        return thread

    async def _read_to(self, stream: StreamKey, last: int) -> _Thread:
        thread = self._thread(stream)
        while thread.cursor < last:
            limit = min(_CHUNK, last - thread.cursor)
            entries = await self._store.read(stream, after=thread.cursor, limit=limit)
            if not entries:
                break
            for entry in entries:
                thread.add(entry.sequence, thread.converter.feed(entry))
        return thread

    def _events_of(self, thread: _Thread, line: bytes, method: str | None) -> list[UniversalEvent]:
        """The event that a message of this connection alone belongs to: an answer, a notice, a question asked again."""
        frame = frames.parse(line)
        found: UniversalEvent | None = None
        if frame.is_answer:
            found = thread.latest.get("session.started") if method in _OPENING else self._turns.pop(frame.key, None)
        elif frame.method in (PERMISSION, QUESTION):
            found = thread.questions.get(("requested", _text(frame.key)))
        elif frame.method == _TURN_STARTED:
            found = thread.latest.get("turn.started")
        elif frame.method in (_TURN_ENDED, _SETTLED):
            params = msgspec.json.decode(frames.params_of(line), type=_Params)
            if frame.method == _SETTLED:
                found = thread.questions.get(("resolved", _text(bytes(params.request_id))))
            elif params.has_run:
                found = thread.latest.get("turn.ended")
                if found is not None and params.prompted_by == self.id:
                    self._turns[bytes(params.request_id)] = found
        return [] if found is None else [found]


def correlating(kind: type[C], store: Store, *, waiting_bytes: int) -> type[C]:
    """`kind`, for a client that wants correlation with the earlier API."""
    members = {"_store": store, "_waiting_bytes": waiting_bytes}
    return cast("type[C]", type(f"Correlated{kind.__name__}", (Correlated, kind), members))


def _text(key: bytes) -> str:
    """A JSON-RPC id as the earlier API names a question by it."""
    return str(msgspec.json.decode(key))
