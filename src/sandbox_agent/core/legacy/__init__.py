"""The old universal events, made from a session's history."""

from sandbox_agent.core.legacy.conversion import EVENT_TYPES, LegacyEvents
from sandbox_agent.core.legacy.events import EVENTS_PER_ENTRY, UniversalEvent
from sandbox_agent.core.legacy.page import EventPage

__all__ = ["EVENTS_PER_ENTRY", "EVENT_TYPES", "EventPage", "LegacyEvents", "UniversalEvent"]
