"""Full-text search over what is committed: one thread keeps an index beside the database, another asks it.

The index (`FILE.search`) is filled from the database, batch by batch in the order of their numbers. To index costs more
than to relay, so it is done when the server has nothing else to do, or when somebody searches, who waits a moment for
it. It remembers how far it has come, so a server that dies goes on from there; an index that is damaged, or of another
database, is made anew. It grows only while there is room on the disk, and is given up when history needs it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.errors import NotFound, StoreError
from sandbox_agent.store.batches import DamagedRow, unpack_row
from sandbox_agent.store.search import Findings, Kept, Lines, Query, SearchIndex
from sandbox_agent.store.sqlite.disk import Disk
from sandbox_agent.store.sqlite.room import Room
from sandbox_agent.store.sqlite.schema import open_reader, transaction

VERSION = 1
_STOP_SECONDS = 2.0
_STEP_BATCHES = 8
_QUIET_SECONDS = 2.0
"""Without a commit for so long, the server has time."""
_LONGEST_LAG = 60.0
"""A server that is never quiet indexes all the same, a little at a time."""
_QUIET_REST, _BUSY_REST = 3.0, 50.0
"""Rests so many times as long as it worked."""
_CATCH_UP_SECONDS = 2.0
"""A search waits so long for what was said before it."""
_SWEEP_SECONDS = 60.0
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 60.0
_MERGED_PAGES = 500
_GIVEN_BACK_PAGES = 4096
_PROPORTION, _SLACK_BYTES = 4, 1024 * 1024
"""Bytes of the file for one of text, and besides."""
_WAL_BYTES = 4 * 1024 * 1024
_log = logging.getLogger("sandbox_agent.store")


def ensure_identity(connection: sqlite3.Connection) -> None:
    """Give the database a number of its own, by which an index knows that it is this one's."""
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('identity', ?)", (1 + secrets.randbits(62),))


def index_path(database: Path) -> Path:
    return database.with_name(f"{database.name}.search")


class Indexer:
    """`start` and `stop` are the owner's; `notify` the writer's; `find` anybody's."""

    def __init__(self, database: Path, *, text_bytes: int, disk: Disk) -> None:
        self._database = database
        self._path = index_path(database)
        self._room = Room(self._path, disk)
        self._text_bytes = text_bytes
        self._committed_at = time.monotonic()
        self._has_news = threading.Event()
        self._hurry = threading.Event()
        self._closing = threading.Event()
        self._committed = 0
        self._reached = -1
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._lock = threading.Lock()
        self._next_sweep = 0.0
        self._retry = _FIRST_RETRY
        self._thread = threading.Thread(target=self._run, name="store-indexer", daemon=True)
        self._askers = ThreadPoolExecutor(1, thread_name_prefix="store-search")

    def make_room(self) -> None:
        """The history wants for room: an index that takes it goes. Nobody else may have it open before `start`."""
        try:
            is_short = self._room.is_short()
            if is_short and not self._thread.is_alive():
                self._room.discard()
        except OSError as error:
            _log.warning("cannot make room for the history: %s", error)
            return
        if is_short:
            self._hurry.set()
            self._has_news.set()

    def start(self) -> None:
        if self._text_bytes:
            self._thread.start()

    def stop(self) -> None:
        """Blocks, for a bounded time. What is not indexed by then is indexed next time."""
        self._closing.set()
        self._hurry.set()
        self._has_news.set()
        with self._lock:
            self._tell(list(self._waiting))
        self._askers.shutdown(wait=True, cancel_futures=True)
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def notify(self, number: int, *, has_dropped: bool) -> None:
        """Everything up to the operation `number` is committed; `has_dropped`: histories went."""
        self._committed = max(self._committed, number)
        self._committed_at = time.monotonic()
        if has_dropped:
            self._next_sweep = 0.0
        self._has_news.set()

    async def find(self, query: Query, *, limit: int, each: int, pending: int = 0) -> Findings:
        """Of what is committed, and up to the operation `pending`, which will be in a moment; the answer says if that
        was not indexed in time. Raises NotFound when nobody is to search here."""
        if not self._text_bytes:
            raise NotFound("search is turned off on this server: search_text_bytes is 0")
        number = max(self._committed, pending)
        await self._catch_up(number)
        if self._closing.is_set():
            return Findings([], is_complete=False)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._askers, self._find, query, limit, each, number)

    async def _catch_up(self, number: int) -> None:
        """Wait until everything up to `number` is indexed, for a bounded time."""
        caught_up = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._reached >= number:
                return
            self._waiting[caught_up] = number
            self._hurry.set()
        try:
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                await caught_up
        except TimeoutError:
            pass
        finally:
            with self._lock:
                del self._waiting[caught_up]
                if not self._waiting and not self._closing.is_set():
                    self._hurry.clear()

    def _find(self, query: Query, limit: int, each: int, number: int) -> Findings:
        is_current = self._reached >= number
        try:
            with closing(open_index(self._path, is_reader=True)) as connection, closing(self._read()) as history:
                index = SearchIndex(connection)
                found = index.find(query, limit=limit, each=each, kept=lambda stream: kept_session(history, stream))
        except sqlite3.Error as error:
            _log.debug("no search yet: %s", error)
            return Findings([], is_complete=False)
        return Findings(found.sessions, is_complete=found.is_complete and is_current)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wait_for_quiet()
            try:
                if self._room.is_short() or not (self._path.exists() or self._room.may_grow()):
                    self._give_way()
                    continue
                with closing(self._read()) as history, closing(self._open(history)) as connection:
                    self._follow(_Filling(history, connection))
            except (sqlite3.Error, OSError, StoreError) as error:
                self._recover(error)
            except Exception:  # noqa: BLE001 - the thread must outlive a fault of ours
                _log.exception("the search index stumbled")
                self._closing.wait(_LONGEST_RETRY)

    def _follow(self, filling: _Filling) -> None:
        while not self._closing.is_set() and not self._room.is_short():
            began = time.monotonic()
            self._has_news.clear()
            committed = self._committed
            if began >= self._next_sweep:
                self._sweep(filling)
            may_grow = self._room.may_grow()
            if may_grow and filling.step():
                is_quiet = began > self._committed_at + _QUIET_SECONDS
                self._hurry.wait((time.monotonic() - began) * (_QUIET_REST if is_quiet else _BUSY_REST))
            else:
                if may_grow:
                    self._reach(committed)
                self._sweep(filling)
                if not may_grow and self._room.may_grow():
                    continue
                self._has_news.wait(_SWEEP_SECONDS)
                self._wait_for_quiet()
            self._retry = _FIRST_RETRY

    def _wait_for_quiet(self) -> None:
        """Until the server has time, somebody searches, or it was put off long enough."""
        began = now = time.monotonic()
        while now < (quiet_at := min(self._committed_at + _QUIET_SECONDS, began + _LONGEST_LAG)):
            if self._hurry.wait(quiet_at - now):
                return
            now = time.monotonic()

    def _reach(self, number: int) -> None:
        """Everything up to `number` is indexed: tell those who wait for it."""
        with self._lock:
            self._reached = number
            self._tell([each for each, wanted in self._waiting.items() if wanted <= number])

    def _tell(self, waiting: list[asyncio.Future[None]]) -> None:
        for each in waiting:
            each.get_loop().call_soon_threadsafe(_settle, each)

    def _sweep(self, filling: _Filling) -> None:
        """Take out what left the database, and the oldest where it is too much."""
        if time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + _SWEEP_SECONDS
            for _ in filling.forget_gone():
                if self._hurry.wait(0.01) or self._room.is_short():
                    self._next_sweep = 0.0
                    return
        is_tight = not self._room.may_grow()
        allowed = min(self._text_bytes, filling.text_bytes() * 3 // 4) if is_tight else self._text_bytes
        while filling.text_bytes() > allowed and not self._closing.is_set() and not self._room.is_short():
            filling.forget_oldest()
        for _ in filling.shrink(is_tight=is_tight):
            if self._hurry.wait(0.01) or self._room.is_short():
                return

    def _give_way(self) -> None:
        if self._path.exists():
            _log.warning("the disk is nearly full: search index %s removed until there is room", self._path)
            self._discard()
        with self._lock:
            if not self._waiting and not self._closing.is_set():
                self._hurry.clear()
        self._closing.wait(self._retry)
        self._retry = min(self._retry * 2, _LONGEST_RETRY)

    def _open(self, history: sqlite3.Connection) -> sqlite3.Connection:
        """The index of this database, a new one if there is none. Raises sqlite3.Error, OSError."""
        (identity,) = history.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
        if self._path.exists():
            connection = open_index(self._path)
            if _is_of(connection, identity):
                return connection
            connection.close()
            self._discard()
        connection = open_index(self._path)
        with transaction(connection):
            SearchIndex(connection).create()
            SearchIndex(connection).set_progress("identity", identity)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        return connection

    def _read(self) -> sqlite3.Connection:
        return open_reader(self._database)

    def _recover(self, error: Exception) -> None:
        if self._closing.is_set():
            return
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            _log.warning("the search index %s is damaged (%s): made anew", self._path, error)
            self._discard()
        else:
            _log.warning("the search index %s cannot be used now: %s", self._path, error)
        self._closing.wait(self._retry)
        self._retry = min(self._retry * 2, _LONGEST_RETRY)

    def _discard(self) -> None:
        self._reached = -1
        self._room.discard()


class _Filling:
    """What one thread does with the two files. Its steps are short."""

    def __init__(self, history: sqlite3.Connection, connection: sqlite3.Connection) -> None:
        self._history = history
        self._connection = connection
        self._index = SearchIndex(connection)

    def step(self) -> bool:
        """Index the next few batches, and say whether there may be more."""
        indexed = self._index.progress("indexed")
        rows = self._history.execute(_BATCHES, (indexed, _STEP_BATCHES)).fetchall()
        if not rows:
            return False
        by_stream: dict[int, list[tuple[int, int, bytes, int | None]]] = {}
        for _, stream, first, last, body, checksum in rows:
            if body is not None:
                by_stream.setdefault(stream, []).append((first, last, body, checksum))
        with transaction(self._connection):
            for stream, batches in by_stream.items():
                self._index.add(stream, _lines(batches))
            self._index.set_progress("indexed", rows[-1][0])
        return len(rows) == _STEP_BATCHES

    def forget_gone(self) -> Iterator[None]:
        """Remove what the database no longer has, one small step at a time."""
        for stream in self._index.streams():
            oldest = _oldest(self._history, stream)
            while True:
                with transaction(self._connection):
                    removed = self._index.forget(stream, before=oldest)
                if not removed:
                    break
                yield

    def forget_oldest(self) -> None:
        with transaction(self._connection):
            self._index.forget_oldest()

    def text_bytes(self) -> int:
        return self._index.progress("bytes")

    def shrink(self, *, is_tight: bool) -> Iterator[None]:
        """Give pages back, one small step at a time, where it `is_tight` or the file is out of proportion to its text:
        what was forgotten leaves it only when the index is merged."""
        pages = -_MERGED_PAGES  # of all that there is, to begin with; then on with that
        while is_tight or self._page_bytes("page_count") > _PROPORTION * self.text_bytes() + _SLACK_BYTES:
            with transaction(self._connection):
                is_merging = self._index.merge(pages)
            pages = _MERGED_PAGES
            is_emptied = self._page_bytes("freelist_count") > 0
            if is_emptied:
                # A script, because it is stepped to its end; `execute` would stop after the first page.
                self._connection.executescript(f"PRAGMA incremental_vacuum({_GIVEN_BACK_PAGES})")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            if not is_merging and not is_emptied:
                break
            yield

    def _page_bytes(self, count: str) -> int:
        (pages,) = self._connection.execute(f"PRAGMA {count}").fetchone()
        (size,) = self._connection.execute("PRAGMA page_size").fetchone()
        return int(pages * size)


def open_index(path: Path, *, is_reader: bool = False) -> sqlite3.Connection:
    """Raises sqlite3.Error."""
    mode = "ro" if is_reader else "rwc"
    if not is_reader and not path.exists():
        path.touch(mode=0o600)
    target = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(target, uri=True, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        connection.execute("PRAGMA temp_store = MEMORY")
        if not is_reader:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def kept_session(history: sqlite3.Connection, stream: int) -> Kept | None:
    """The session whose history a stream is, if both are there."""
    found = history.execute("SELECT name FROM streams WHERE id = ?", (stream,)).fetchone()
    oldest = _oldest(history, stream) if found else None
    if found is None or oldest is None:
        return None
    for key in _possible_keys(found[0]):
        if history.execute("SELECT 1 FROM sessions WHERE agent = ? AND session = ?", key).fetchone():
            return Kept(key, oldest)
    return None


_BATCHES = """SELECT batches.id, stream, first, batches.last, CASE WHEN name GLOB 'session:*' THEN body END, checksum
    FROM batches LEFT JOIN streams ON streams.id = stream WHERE batches.id > ? ORDER BY batches.id LIMIT ?"""


def _possible_keys(stream: str) -> Iterator[SessionKey]:
    """Which sessions a stream of this name may belong to: an agent's id may have colons as well."""
    parts = stream.split(":")[1:]
    for at in range(1, len(parts)):
        key = SessionKey(AgentId(":".join(parts[:at])), SessionId(":".join(parts[at:])))
        if key.stream == stream:
            yield key


def _oldest(history: sqlite3.Connection, stream: int) -> int | None:
    """The first entry that is kept of a stream; None if the stream was dropped or has nothing left."""
    found = history.execute(
        "SELECT first FROM batches JOIN streams ON streams.id = stream"
        " WHERE stream = ? AND name GLOB 'session:*' ORDER BY batches.last LIMIT 1",
        (stream,),
    ).fetchone()
    return int(found[0]) if found else None


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def _is_of(connection: sqlite3.Connection, identity: int) -> bool:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return version == VERSION and SearchIndex(connection).progress("identity") == identity


def _lines(batches: list[tuple[int, int, bytes, int | None]]) -> Lines:
    for first, last, body, checksum in batches:
        try:
            bodies = list(unpack_row(first, last, body, checksum))
        except DamagedRow:
            continue  # whoever reads the history is told
        for start, (at, _, lines) in bodies:
            for sequence, line in enumerate(lines, start):
                yield sequence, at, line
