"""`_sandboxagent/item/completed`: whole messages at the end of a turn, for clients that ask for them.

A client asks with `clientCapabilities._meta["sandboxagent.dev"].itemCompleted: true`. The items are made from the
history once the turn is over, so that nobody else pays for them.
"""

from __future__ import annotations

from collections.abc import Callable

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import SessionKey
from sandbox_agent.core.legacy import LegacyEvents
from sandbox_agent.hub.connection import Connection
from sandbox_agent.hub.history import read_all
from sandbox_agent.store.base import Store

COMPLETED = "_sandboxagent/item/completed"


class Items:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._begun: dict[SessionKey, int] = {}

    def turn_begins(self, key: SessionKey) -> None:
        """Remember where the history stands, unless a turn is running whose start is remembered already."""
        self._begun.setdefault(key, self._store.last_sequence(key.stream))

    def turn_ended(self, key: SessionKey) -> int:
        """The sequence after which the turn's entries stand; the next turn of the queue begins here."""
        return self._begun.pop(key, self._store.last_sequence(key.stream))

    async def tell(self, key: SessionKey, after: int, listeners: Callable[[], list[Connection]]) -> None:
        """Deliver the turn's finished items to those who want them."""
        converter = LegacyEvents(key.session)
        async for entry in read_all(self._store, key.stream, after=after):
            for event in converter.feed(entry):
                if event.type == "item.completed":
                    params = {"sessionId": key.session, **event.data, "_meta": {META: {"eventId": event.event_id}}}
                    for connection in listeners():
                        connection.deliver_own(key.session, frames.notification(COMPLETED, params))
