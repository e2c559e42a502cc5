"""Paging through sessions that move: an update takes a session to the top of the list.

A page goes on below the position where the one before it ended. A session that was still to come and has
moved above that position in the meantime is given with the next page; a log of moves tells which. So a
listing shows every session that existed when it began, once, as far back as the log reaches. A listing that
goes on after a restart of the server, or after very many moves, may miss sessions that moved.
"""

from __future__ import annotations

import base64
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
    """Where sessions stood before they moved, for the last so many moves.

    Between two looks at the log only the first move of a session counts: whoever looked before finds it by that one,
    and whoever looks later need not know. So where nobody pages through the list, a session has one place in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._count = 0
        self._moves: dict[int, tuple[SessionKey, float]] = {}
        """By their numbers, in order."""
        self._moved: dict[SessionKey, int] = {}
        """The numbers of those since the last look."""

    def __len__(self) -> int:
        return len(self._moves)

    def look(self) -> int:
        """How many moves there have been: later ones can be asked for by this number."""
        self._moved.clear()
        return self._count

    def record(self, key: SessionKey, updated_before: float) -> None:
        if key in self._moved:
            return
        self._count += 1
        self._moved[key] = self._count
        self._moves[self._count] = (key, updated_before)
        if len(self._moves) > _KEPT_MOVES:
            lost, _ = self._moves.pop(next(iter(self._moves)))
            self._moved.pop(lost, None)

    def forget(self, key: SessionKey) -> None:
        """The session is deleted: nobody looks for it."""
        self._moves.pop(self._moved.pop(key, 0), None)

    def escaped(self, since: int, after: Position | None) -> list[SessionKey]:
        """Sessions that stood below `after` and have moved since; they may be anywhere now."""
        found: dict[SessionKey, None] = {}
        for number in reversed(self._moves):
            if number <= since:
                break
            key, updated = self._moves[number]
            if after is None or (updated, key.agent, key.session) < after:
                found[key] = None
        return list(found)


_decode = msgspec.json.Decoder(Cursor).decode
