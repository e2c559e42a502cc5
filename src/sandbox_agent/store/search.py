"""Full-text search: passages of histories in an FTS5 table, and questions to it.

The index is a copy: whatever becomes of it, it can be made anew from the histories. So nothing here needs repair.
"""

from __future__ import annotations

import re
import sqlite3
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from sandbox_agent.core.ids import SessionKey
from sandbox_agent.core.passages import Passage, PassageKind, PassageReader
from sandbox_agent.errors import InvalidParams

LONGEST_QUERY = 1000
_MOST_WORDS = 32
_SCANNED = 50_000
"""Matches that are looked at for one question; more are left out, and the answer says so."""
_SECONDS = 2.0
_SNIPPET_WORDS = 24
_SHORTEST_PREFIX = 3
_BEFORE = 6
"""Words before the first that is looked for."""
_LONGEST_REST = 400
_WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
_DROPPED = 50
"""Passages that leave in one step: to take a word out of the index is to write as much."""

TABLES = (
    "CREATE TABLE progress (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO progress VALUES ('identity', 0), ('indexed', 0), ('bytes', 0)",
    """CREATE TABLE passages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, stream INTEGER NOT NULL, kind TEXT NOT NULL,
        first INTEGER NOT NULL, last INTEGER NOT NULL, time REAL NOT NULL, size INTEGER NOT NULL
    )""",
    "CREATE INDEX passages_by_stream ON passages (stream, id)",
    "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'unicode61 remove_diacritics 2', prefix = '3')",
)

Lines = Iterable[tuple[int, float, bytes]]
"""Sequence, time and envelope of entries."""


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """A piece of a snippet; `is_match` where it is what was looked for."""

    text: str
    is_match: bool = False


class Hit(msgspec.Struct, frozen=True, rename="camel"):
    """A passage that has all the words. `sequence` is its first entry in the session's history."""

    sequence: int
    time: float
    kind: PassageKind
    snippet: list[Part]


class SessionHits(msgspec.Struct, frozen=True):
    """What was found in one session, newest first; `more` passages beside those that are shown match."""

    key: SessionKey
    hits: list[Hit]
    more: int


class Findings(msgspec.Struct, frozen=True):
    """The session that said it last comes first. Not `is_complete`: there may be more, in what is not indexed yet or
    beyond what one question may cost."""

    sessions: list[SessionHits]
    is_complete: bool


class Query(NamedTuple):
    """What to look for: in FTS5's language, and as the words themselves, the last of them perhaps unfinished."""

    expression: str
    words: frozenset[str]
    beginning: str | None

    @classmethod
    def parse(cls, text: str) -> Query:
        """All words, the last of them perhaps unfinished; "quoted words" in this order. Raises InvalidParams.

        Nothing that somebody types means anything else to FTS5."""
        if len(text) > LONGEST_QUERY:
            raise InvalidParams(f"q: {len(text)} characters are too many to search for; the most is {LONGEST_QUERY}")
        text = text.encode("utf-8", "replace").decode()
        terms = [(phrase or word).replace("\0", " ").strip() for phrase, word in _TERM.findall(text)]
        terms = [term for term in terms if any(map(str.isalnum, term))][:_MOST_WORDS]
        if not terms:
            raise InvalidParams("q: give at least one word to search for")
        words = [_folded(word) for term in terms for word in _WORD.findall(term)]
        is_unfinished = text[-1:].isalnum() and len(terms[-1]) >= _SHORTEST_PREFIX
        expression = " ".join(f'"{term}"' for term in terms) + ("*" if is_unfinished else "")
        return cls(expression, frozenset(words), words[-1] if is_unfinished and words else None)

    def snippet(self, text: str) -> list[Part]:
        """Some words of a text around the first that is looked for."""
        places = list(_WORD.finditer(text))
        hits = [index for index, place in enumerate(places) if self._has(place.group())]
        start = max(0, (hits[0] if hits else 0) - _BEFORE)
        shown = places[start : start + _SNIPPET_WORDS]
        at = shown[0].start() if start and shown else 0
        end = shown[-1].end() if start + _SNIPPET_WORDS < len(places) else len(text)
        parts = [Part("…")] if start else []
        for place in shown:
            if self._has(place.group()):
                parts += [Part(text[at : place.start()])] if place.start() > at else []
                parts.append(Part(place.group(), is_match=True))
                at = place.end()
        rest = text[at : min(end, at + _LONGEST_REST)]
        return [*parts, Part(rest + ("" if at + len(rest) == len(text) else "…"))]

    def _has(self, word: str) -> bool:
        folded = _folded(word)
        return folded in self.words or (self.beginning is not None and folded.startswith(self.beginning))


class Kept(NamedTuple):
    """A stream that is a session's history, and the oldest entry that is kept of it."""

    key: SessionKey
    oldest: int


class SearchIndex:
    """The tables over one connection, which one thread at a time may use."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def create(self) -> None:
        for statement in TABLES:
            self._connection.execute(statement)

    def progress(self, name: str) -> int:
        (value,) = self._connection.execute("SELECT value FROM progress WHERE name = ?", (name,)).fetchone()
        return int(value)

    def set_progress(self, name: str, value: int) -> None:
        self._connection.execute("UPDATE progress SET value = ? WHERE name = ?", (value, name))

    def add(self, stream: int, lines: Lines) -> None:
        """Index entries of a stream, which follow those that were indexed before."""
        tail = self._tail(stream)
        reader = PassageReader(tail[1] if tail else None)
        for sequence, at, line in lines:
            reader.feed(sequence, at, line)
        grown = 0
        for passage in reader.take():
            if tail is not None and passage.first == tail[1].first:
                grown += self._replace(*tail, passage)
                tail = None  # what a long passage was cut into may begin at the same entry
            else:
                grown += self._insert(stream, passage)
        if grown:
            self._count(grown)

    def find(self, query: Query, *, limit: int, each: int, kept: Callable[[int], Kept | None]) -> Findings:
        """`kept` tells of a stream's number whose history it is; None: nobody's, or no longer."""
        streams: dict[int, Kept | None] = {}
        found: dict[SessionKey, list[int]] = {}
        more: dict[SessionKey, int] = {}
        is_complete = True
        deadline = time.monotonic() + _SECONDS
        matches = self._connection.execute(
            "SELECT passages.id, stream, first FROM words JOIN passages ON passages.id = words.rowid"
            " WHERE words MATCH ? ORDER BY words.rowid DESC",
            (query.expression,),
        )
        for count, (id_, stream, first) in enumerate(matches, 1):
            if stream not in streams:
                streams[stream] = kept(stream)
            history = streams[stream]
            if history is not None and first >= history.oldest:
                hits = found.get(history.key)
                if hits is None and len(found) < limit:
                    found[history.key] = [id_]
                elif hits is None:
                    is_complete = False
                    break
                elif len(hits) < each:
                    hits.append(id_)
                else:
                    more[history.key] = more.get(history.key, 0) + 1
            if count >= _SCANNED or (count % 1000 == 0 and time.monotonic() > deadline):
                is_complete = False
                break
        sessions = [SessionHits(key, self._hits(query, ids), more.get(key, 0)) for key, ids in found.items()]
        return Findings(sessions, is_complete)

    def streams(self) -> Iterator[int]:
        """Every stream that has passages, by steps through the key: the passages are many."""
        stream = -1
        while True:
            (stream,) = self._connection.execute(
                "SELECT min(stream) FROM passages WHERE stream > ?", (stream,)
            ).fetchone()
            if stream is None:
                return
            yield stream

    def forget(self, stream: int, *, before: int | None) -> int:
        """Remove some passages of a stream that begin before an entry, or of all of it; say how many went."""
        where, values = ("stream = ?", [stream]) if before is None else ("stream = ? AND first < ?", [stream, before])
        return self._remove(where, values)

    def forget_oldest(self) -> int:
        return self._remove("true", [])

    def merge(self, pages: int) -> bool:
        """Write about so many pages of the index anew, without what was forgotten, and say whether there may be more to
        do. A negative number begins with all of it."""
        before = self._connection.total_changes
        self._connection.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (pages,))
        return self._connection.total_changes - before >= 2

    def _tail(self, stream: int) -> tuple[int, Passage] | None:
        found = self._connection.execute(
            "SELECT passages.id, kind, first, last, time, text FROM passages JOIN words ON words.rowid = passages.id"
            " WHERE stream = ? ORDER BY passages.id DESC LIMIT 1",
            (stream,),
        ).fetchone()
        return (found[0], Passage(*found[1:])) if found else None

    def _insert(self, stream: int, passage: Passage) -> int:
        text = passage.text
        size = _size(text)
        values = (stream, passage.kind, passage.first, passage.last, passage.time, size)
        added = self._connection.execute(
            "INSERT INTO passages (stream, kind, first, last, time, size) VALUES (?, ?, ?, ?, ?, ?)", values
        )
        self._connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (added.lastrowid, text))
        return size

    def _replace(self, id_: int, before: Passage, passage: Passage) -> int:
        if passage == before:
            return 0
        size = _size(passage.text)
        self._connection.execute("UPDATE passages SET last = ?, size = ? WHERE id = ?", (passage.last, size, id_))
        self._connection.execute("UPDATE words SET text = ? WHERE rowid = ?", (passage.text, id_))
        return size - _size(before.text)

    def _remove(self, where: str, values: list[int]) -> int:
        rows = self._connection.execute(
            f"SELECT id, size FROM passages WHERE {where} ORDER BY id LIMIT ?",  # noqa: S608
            (*values, _DROPPED),
        ).fetchall()
        for table, column in (("words", "rowid"), ("passages", "id")):
            self._connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(id_,) for id_, _ in rows])  # noqa: S608
        if rows:
            self._count(-sum(size for _, size in rows))
        return len(rows)

    def _count(self, grown: int) -> None:
        self._connection.execute("UPDATE progress SET value = value + ? WHERE name = 'bytes'", (grown,))

    def _hits(self, query: Query, ids: list[int]) -> list[Hit]:
        hits: list[Hit] = []
        for id_ in ids:
            row = self._connection.execute(
                "SELECT first, time, kind, text FROM passages JOIN words ON words.rowid = passages.id"
                " WHERE passages.id = ?",
                (id_,),
            ).fetchone()
            if row is not None:
                hits.append(Hit(row[0], row[1], row[2], query.snippet(row[3])))
        return hits


def _size(text: str) -> int:
    return len(text.encode())


def _folded(text: str) -> str:
    """As the index has it: without case and accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in plain if not unicodedata.combining(char))
