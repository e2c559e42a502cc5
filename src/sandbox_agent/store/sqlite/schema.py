"""The database file: its tables, its version, and the checks before anything is written to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sandbox_agent.errors import StoreError
from sandbox_agent.store.sqlite.disk import REAL, Disk
from sandbox_agent.store.sqlite.troubles import Troubles

APPLICATION_ID = 0x53614167
"""Marks the file as ours ("SaAg")."""

_MAGIC = b"SQLite format 3\x00"
_PAGE_BYTES = 8192

Migration = Callable[[sqlite3.Connection], None]


def create_tables(connection: sqlite3.Connection) -> None:
    """Version 1."""
    for statement in _TABLES:
        connection.execute(statement)


def add_checksums(connection: sqlite3.Connection) -> None:
    """Version 2. Rows from before have none, and are taken as they are."""
    for table in ("batches", "sessions", "turns"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER")


MIGRATIONS: tuple[Migration, ...] = (create_tables, add_checksums)
"""Step N leads from version N to N+1, in a transaction of its own. Steps are never changed, only added."""


def open_database(path: Path, migrations: Sequence[Migration] = MIGRATIONS, *, disk: Disk = REAL) -> sqlite3.Connection:
    """The writing connection, with the newest schema. Raises StoreError, and then has changed nothing."""
    try:
        _check_file(path)
        connection = _connect(disk, str(path), is_uri=False)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"cannot open the history database {path}: {error}") from error
    try:
        _check_version(connection, path, len(migrations))
        _configure(connection)
        _migrate(connection, migrations)
    except (sqlite3.Error, StoreError) as error:
        connection.close()
        if isinstance(error, StoreError):
            raise
        raise unusable(path, error) from error
    return connection


def open_reader(path: Path, *, disk: Disk = REAL) -> sqlite3.Connection:
    """A connection that cannot write; it may be used by one thread at a time.

    Its files are open from here on: a question needs no file descriptor that might be wanting later."""
    try:
        connection = _connect(disk, f"{path.absolute().as_uri()}?mode=ro", is_uri=True)
        connection.execute("SELECT value FROM meta").fetchall()
        return connection
    except sqlite3.Error as error:
        raise unusable(path, error) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A writing transaction: all of it, or nothing."""
    if connection.in_transaction:  # one whose end failed as well: it would stand in the way of all that follow
        connection.execute("ROLLBACK")
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def begin_epoch(connection: sqlite3.Connection) -> int:
    """Take over the database: from now on, whoever wrote with an older epoch is refused."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'epoch'")
    (epoch,) = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
    return int(epoch)


def unusable(path: Path, error: sqlite3.Error) -> StoreError:
    """What to tell when SQLite refuses the file: is it damaged, or just out of reach?"""
    if isinstance(error, sqlite3.OperationalError):
        return StoreError(f"cannot use the history database {path}: {error}; check the disk and the permissions")
    return StoreError(
        f"the history database {path} is damaged ({error}); it was left as it is: "
        "`sandbox-agent store check --repair` keeps what can be read; or move it away to start afresh"
    )


def _connect(disk: Disk, target: str, *, is_uri: bool) -> sqlite3.Connection:
    connection = disk.connect(target, is_uri=is_uri)
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"the history database {path} is a directory; name a file")
    if not path.exists():
        for left in (path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            if left.exists():  # SQLite would take it for the new file's
                Troubles(path).set_aside(left, "its database is gone")
        path.touch(mode=0o600)  # SQLite gives its other files the same mode
        return
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start and start != _MAGIC:
        raise StoreError(
            f"{path} is not a SQLite database; it was left as it is: move it away, or name another file for the store"
        )


def _check_version(connection: sqlite3.Connection, path: Path, newest: int) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (tables or version):
        raise StoreError(
            f"{path} is the database of another program (application id {application:#x}); "
            "it was left as it is: name another file for the store"
        )
    if version > newest:
        raise StoreError(
            f"the history database {path} has version {version}, but this program knows {newest} at most; "
            "it was left as it is: use the newer program, or name another file for the store"
        )


def _configure(connection: sqlite3.Connection) -> None:
    # Page size and vacuuming can be chosen only while the file is empty; later they are ignored.
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {64 * 1024 * 1024}")


def _migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, migrate in enumerate(migrations[version:], start=version + 1):
        with transaction(connection):
            migrate(connection)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO meta VALUES ('epoch', 0), ('applied', 0)",
    # `last` outlives the batches, so that sequences never begin anew when retention has taken them all.
    """CREATE TABLE streams (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, last INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE batches (
        id INTEGER PRIMARY KEY AUTOINCREMENT, stream INTEGER NOT NULL REFERENCES streams,
        first INTEGER NOT NULL, last INTEGER NOT NULL, began REAL NOT NULL, ended REAL NOT NULL,
        epoch INTEGER NOT NULL, body BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX batches_by_stream ON batches (stream, last)",
    """CREATE TABLE sessions (
        agent TEXT NOT NULL, session TEXT NOT NULL, stream TEXT NOT NULL, alias TEXT, cwd TEXT,
        updated REAL NOT NULL, is_ended INTEGER NOT NULL, record BLOB NOT NULL, UNIQUE (agent, session)
    )""",
    "CREATE INDEX sessions_by_updated ON sessions (updated, agent, session)",
    "CREATE INDEX sessions_by_agent ON sessions (agent, updated, session)",
    "CREATE INDEX sessions_by_cwd ON sessions (cwd, updated, agent, session)",
    "CREATE INDEX sessions_by_end ON sessions (is_ended, updated, agent, session)",
    "CREATE INDEX sessions_by_session ON sessions (session)",
    "CREATE INDEX sessions_by_alias ON sessions (alias) WHERE alias IS NOT NULL",
    """CREATE TABLE turns (
        agent TEXT NOT NULL, session TEXT NOT NULL, turn TEXT NOT NULL, answer BLOB,
        PRIMARY KEY (agent, session, turn)
    ) WITHOUT ROWID""",
)
