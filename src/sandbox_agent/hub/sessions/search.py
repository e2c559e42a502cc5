"""Full-text search over the histories of all sessions, as clients read it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from sandbox_agent.core.json_values import iso_time
from sandbox_agent.core.passages import PassageKind
from sandbox_agent.hub.sessions.inventory import Inventory
from sandbox_agent.hub.sessions.views import SessionSummary, summarize
from sandbox_agent.store.base import Store
from sandbox_agent.store.search import Hit, Part, Query, SessionHits

_HITS = 3
"""Passages that are shown of a session."""


class SearchWanted(msgspec.Struct, rename="camel"):
    q: str
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20


class SearchHit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`sequence` is where the passage begins in the session's history."""

    sequence: int
    time: str
    kind: PassageKind
    snippet: list[Part]


class FoundSession(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    session: SessionSummary
    hits: list[SearchHit]
    more_hits: int


class SearchResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The session that said it last comes first. `isComplete` is false if there may be more: the last second of a
    conversation is not indexed yet, and a search is limited in what it looks at."""

    sessions: list[FoundSession]
    is_complete: bool


class Search:
    def __init__(self, store: Store, inventory: Inventory) -> None:
        self._store = store
        self._inventory = inventory

    async def find(self, wanted: SearchWanted) -> SearchResult:
        """Raises InvalidParams for a query without words or with too many, NotFound when search is turned off."""
        found = await self._store.search(Query.parse(wanted.q), limit=wanted.limit, each=_HITS)
        sessions = [await self._session(hits) for hits in found.sessions]
        return SearchResult(sessions=[each for each in sessions if each is not None], is_complete=found.is_complete)

    async def _session(self, found: SessionHits) -> FoundSession | None:
        record = self._inventory.held(found.key) or await self._store.get_session(found.key)
        if record is None:
            return None
        return FoundSession(session=summarize(record), hits=list(map(_hit, found.hits)), more_hits=found.more)


def _hit(found: Hit) -> SearchHit:
    return SearchHit(sequence=found.sequence, time=iso_time(found.time), kind=found.kind, snippet=found.snippet)
