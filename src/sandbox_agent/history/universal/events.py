"""The old universal event and how it is numbered.

`sequence` is 1000 x the history entry's sequence + the position among that entry's events, from 1: 42003 is
the third event of entry 42. It grows strictly, has holes, depends on history alone, and does not move when
retention drops the beginning of a history. `event_id` is `evt_` and that number, unless the envelope brought
an id along.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

EVENTS_PER_ENTRY = 1000

EventSource = Literal["agent", "daemon"]


class UniversalEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`daemon` is whoever is not the agent; `synthetic` means that no envelope says it outright."""

    event_id: str
    sequence: int
    time: str
    session_id: str
    native_session_id: str | None
    source: EventSource
    synthetic: bool
    type: str
    data: dict[str, Any]
    raw: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
