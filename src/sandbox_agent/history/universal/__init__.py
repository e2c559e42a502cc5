"""The universal events of the earlier API, made from a session's history."""

from sandbox_agent.history.universal.events import (
    EVENT_TYPES,
    EVENTS_PER_ENTRY,
    EventPage,
    UniversalEvent,
    UniversalEvents,
)

__all__ = ["EVENTS_PER_ENTRY", "EVENT_TYPES", "EventPage", "UniversalEvent", "UniversalEvents"]
