"""Sessions as folds of their histories: the open ones held for those who follow, any other made when asked for."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from sandbox_agent.core.ids import SessionKey
from sandbox_agent.history.opencode import Messages, SessionFold, Told
from sandbox_agent.http.doors.opencode.views import view_of
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.base import SessionRecord

_CHUNK = 500
"""Entries that are folded before others get a turn."""
_ANCESTORS = 20

Tell = Callable[[SessionRecord, list[Told]], None]


@dataclass(slots=True)
class _Held:
    fold: SessionFold
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    collectors: list[Messages] = field(default_factory=list)
    """Those who want the messages of what is new, and not the events."""


class Folds:
    """`tell` hears of what is new in the sessions that are held."""

    def __init__(self, hub: Hub, directory: str, *, limit: int, tell: Tell) -> None:
        self._hub = hub
        self._directory = directory
        self._limit = limit
        self._tell = tell
        self._held: OrderedDict[SessionKey, _Held] = OrderedDict()

    def forget(self, key: SessionKey | None = None) -> None:
        """Of one session, or of all: what comes meanwhile is told to nobody."""
        if key is None:
            self._held.clear()
        else:
            self._held.pop(key, None)

    async def current(self, record: SessionRecord, *, first: int | None = None) -> SessionFold:
        """The fold with everything that is in the history now. Of a session that is taken up here, what came before
        entry `first` is not told; None tells nothing of what is there."""
        return (await self._current(record, first=first)).fold

    async def _current(self, record: SessionRecord, *, first: int | None = None) -> _Held:
        held = self._hold(record)
        last = await self._hub.store.newest(record.key.stream)
        async with held.lock:
            if held.fold.sequence == 0:
                await self._begin(held.fold, record)
                silent = last if first is None else first - 1
                await self._advance(held.fold, record, silent, is_told=False)
            await self._advance(held.fold, record, None, is_told=True, collectors=held.collectors)
        return held

    def length(self, record: SessionRecord) -> int:
        """How many entries the history has."""
        return self._hub.store.last_sequence(record.key.stream)

    async def messages(self, record: SessionRecord, messages: Messages) -> SessionFold:
        """Fill `messages` with what the session says, as far as it was told to those who follow."""
        async with self.as_told(record, messages) as fold:
            return fold

    @asynccontextmanager
    async def as_told(
        self, record: SessionRecord, messages: Messages, *, is_running: bool | None = None
    ) -> AsyncIterator[SessionFold]:
        """The same, and nothing more is told of the session until the block ends. `is_running` is for one who knows
        better than this node whether a turn that is open is under way."""
        held = await self._current(record)
        async with held.lock:
            fold = SessionFold(view_of(record, self._directory))
            await self._begin(fold, record, messages)
            await self._advance(fold, record, held.fold.sequence, is_told=False, collectors=[messages])
            is_all = await self._hub.store.newest(record.key.stream) == fold.sequence
            is_running = self.is_running(record) if is_running is None else is_running
            if fold.is_open and is_all and not is_running:  # else the turn may have ended meanwhile
                messages.apply(fold.interrupted())
            yield fold

    @contextmanager
    def collecting(self, record: SessionRecord, messages: Messages) -> Iterator[None]:
        """What is new in the session meanwhile goes into `messages` too, if it is held all the while."""
        held = self._hold(record)
        held.collectors.append(messages)
        try:
            yield
        finally:
            held.collectors.remove(messages)

    def is_running(self, record: SessionRecord) -> bool:
        """Whether a turn is under way, here and now."""
        agent = self._hub.agents.found(record.key)
        session = agent.sessions.get(record.session_id) if agent is not None else None
        return session is not None and (session.running is not None or bool(session.queue))

    def _hold(self, record: SessionRecord) -> _Held:
        held = self._held.get(record.key)
        if held is None:
            held = self._held[record.key] = _Held(SessionFold(view_of(record, self._directory)))
        self._held.move_to_end(record.key)
        while len(self._held) > self._limit:
            self._held.popitem(last=False)
        return held

    async def _begin(self, fold: SessionFold, record: SessionRecord, messages: Messages | None = None) -> None:
        """A fork's conversation begins with that of its parent, up to the moment of the fork."""
        ancestors: list[tuple[SessionRecord, int]] = []
        while (origin := await self._hub.sessions.origin(record)) is not None and len(ancestors) < _ANCESTORS:
            ancestors.append(origin)
            record = origin[0]
        for parent, until in reversed(ancestors):
            async for entry in self._hub.sessions.history.read_all(parent.key.stream):
                if entry.sequence > until:
                    break
                told = fold.feed(entry)
                if messages is not None:
                    messages.apply(told)
        fold.sequence = 0

    async def _advance(
        self,
        fold: SessionFold,
        record: SessionRecord,
        until: int | None,
        *,
        is_told: bool,
        collectors: Sequence[Messages] = (),
    ) -> None:
        batch: list[Told] = []
        try:
            async for entry in self._hub.sessions.history.read_all(record.key.stream, after=fold.sequence):
                if until is not None and entry.sequence > until:
                    return
                told = fold.feed(entry)
                for messages in collectors:
                    messages.apply(told)
                if is_told:
                    batch += told
                if entry.sequence % _CHUNK == 0:
                    self._tell(record, batch)
                    batch = []
                    await asyncio.sleep(0)
        finally:
            if batch:
                self._tell(record, batch)
