"""`_sandboxagent/item/completed`: whole messages at the end of a turn, for clients that ask for them.

A client asks with `clientCapabilities._meta["sandboxagent.dev"].itemCompleted: true`. The items are made from the
history once the turn is over, so that nobody else pays for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import SessionKey
from sandbox_agent.core.methods import ITEM_COMPLETED
from sandbox_agent.history.universal import UniversalEvent, UniversalEvents
from sandbox_agent.history.version_1 import AsVersion1
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.sessions.history import History
from sandbox_agent.store.base import Store


class Items:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._history = History(store)
        self._told: dict[SessionKey, int] = {}
        """How far each session's history has been gone through."""
        self._telling = asyncio.Lock()

    def turn_begins(self, key: SessionKey) -> None:
        """To be called before the prompt is recorded; one that is queued begins where the turn before it ends."""
        self._told.setdefault(key, self._store.last_sequence(key.stream))

    def skip(self, key: SessionKey, *, is_last: bool) -> None:
        """A turn has ended that nobody wants to hear of; unless it `is_last`, another has begun or waits."""
        if is_last:
            self.forget(key)
        else:
            self._told[key] = self._store.last_sequence(key.stream)

    def forget(self, key: SessionKey) -> None:
        self._told.pop(key, None)

    async def tell(self, key: SessionKey, listeners: Callable[[], list[Connection]]) -> None:
        """Deliver the finished items of the oldest turn that was not told of."""
        async with self._telling:
            converter = UniversalEvents(key.session)
            reader = AsVersion1()
            prompt: bytes | None = None
            async for entry in self._history.read_all(key.stream, after=self._told.get(key, 0)):
                self._told[key] = entry.sequence
                for event in converter.feed(entry):
                    if event.type == "item.completed":
                        self._deliver(key, event, listeners())
                for read in reader.feed(entry):
                    frame = frames.parse(read.envelope)
                    if prompt is None and frame.method == "session/prompt":
                        prompt = frame.key
                    elif frame.is_answer and frame.key == prompt:
                        return

    def _deliver(self, key: SessionKey, event: UniversalEvent, listeners: list[Connection]) -> None:
        params = {"sessionId": key.session, **event.data, "_meta": {META: {"eventId": event.event_id}}}
        for connection in listeners:
            connection.deliver_own(key.session, frames.notification(ITEM_COMPLETED, params))
