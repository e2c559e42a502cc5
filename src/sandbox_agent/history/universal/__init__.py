"""The old universal events, made from a session's history."""

from sandbox_agent.history.universal.conversion import EVENT_TYPES, LegacyEvents
from sandbox_agent.history.universal.events import EVENTS_PER_ENTRY, UniversalEvent
from sandbox_agent.history.universal.page import EventPage

__all__ = ["EVENTS_PER_ENTRY", "EVENT_TYPES", "EventPage", "LegacyEvents", "UniversalEvent"]
