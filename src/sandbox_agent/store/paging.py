"""Paging through sessions that move: an update takes a session to the top of the list.

A page goes on below the position where the one before it ended. A session that was still to come and has
moved above that position in the meantime is given with the next page; a log of moves tells which. So a
listing shows every session that existed when it began, once, as far back as the log reaches. A listing that
goes on after a restart of the server, or after very many moves, may miss sessions that moved.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.errors import InvalidParams
from sandbox_agent.store.base import SessionFilter, SessionRecord

_KEPT_MOVES = 20_000

Position = tuple[float, AgentId, SessionId]
"""Where a session stands in the list; larger ones come first."""


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    after: Position
    moves: int
    """How many moves had been made when the page before was given."""
    log: str
    """Which log counted them: none outlives its server."""


def position_of(record: SessionRecord) -> Position:
    return record.updated, record.agent, record.session_id


def matches(record: SessionRecord, matching: SessionFilter) -> bool:
    return (
        (matching.agent is None or record.agent == matching.agent)
        and (matching.cwd is None or record.cwd == matching.cwd)
        and (matching.is_ended is None or (record.ended is not None) == matching.is_ended)
    )


def encode_cursor(cursor: Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def decode_cursor(text: str) -> Cursor:
    """Raise InvalidParams for what is not a cursor of ours."""
    try:
        return _decode(base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4)))
    except (ValueError, msgspec.MsgspecError) as error:
        raise InvalidParams(f"not a cursor of this list: {text[:80]!r}", cursor=text[:80]) from error


def merge(
    stored: Iterable[SessionRecord],
    newer: Mapping[SessionKey, SessionRecord | None],
    matching: SessionFilter,
    after: Position | None,
) -> list[SessionRecord]:
    """Lay `newer` (None: deleted) over what the database says, in the order of the list."""
    merged = [record for record in stored if record.key not in newer]
    merged += [
        record
        for record in newer.values()
        if record is not None and matches(record, matching) and (after is None or position_of(record) < after)
    ]
    merged.sort(key=position_of, reverse=True)
    return merged


class MoveLog:
    """Where sessions stood before they moved, for the last so many moves."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self._moves: deque[tuple[SessionKey, float]] = deque(maxlen=_KEPT_MOVES)

    def record(self, key: SessionKey, updated_before: float) -> None:
        self._moves.append((key, updated_before))
        self.count += 1

    def escaped(self, since: int, after: Position | None) -> list[SessionKey]:
        """Sessions that stood below `after` and have moved since; they may be anywhere now."""
        fresh = min(self.count - since, len(self._moves))
        if fresh <= 0:
            return []
        found = dict.fromkeys(
            key
            for key, updated in list(self._moves)[-fresh:]
            if after is None or (updated, key.agent, key.session) < after
        )
        return list(found)


_decode = msgspec.json.Decoder(Cursor).decode
