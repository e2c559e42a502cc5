"""A copy of the whole history in one file, made while a server goes on writing, and the way back.

The journal is read before the database: what it holds that the database does not is taken into the copy. So the copy
is the history as it was at one moment, nothing of which a client was told before that moment missing.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import msgspec

from sandbox_agent.errors import StoreError
from sandbox_agent.store.operations import Operation
from sandbox_agent.store.sqlite.check import check_database
from sandbox_agent.store.sqlite.database import DatabaseLock
from sandbox_agent.store.sqlite.indexer import ensure_identity
from sandbox_agent.store.sqlite.intake import drop_connections, take_in
from sandbox_agent.store.sqlite.journal import journal_paths, read_journal
from sandbox_agent.store.sqlite.schema import open_database, open_reader, transaction, unusable
from sandbox_agent.store.sqlite.troubles import Troubles

Progress = Callable[[int, int], None]
"""Called with the bytes that are copied, and all of them."""
_STEP_PAGES = 2048


class Backup(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    size: int
    sessions: int
    kept: tuple[str, ...] = ()
    """After a restore: the files that it replaced, under their new names."""


def back_up(path: Path, target: Path, *, progress: Progress) -> Backup:
    """Copy the database to `target`, which must not exist. Raises StoreError."""
    if target.exists():
        raise StoreError(f"{target} exists already; name another file for the backup")
    if not path.is_file():
        raise StoreError(f"there is no history database {path}; name one with --data-dir or --store")
    part = target.with_name(f"{target.name}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        sessions = _copy(path, part, progress)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.rename(target)
    except sqlite3.Error as error:
        raise unusable(path, error) from error
    except OSError as error:
        raise StoreError(f"cannot write the backup {target}: {error.strerror or error}") from error
    finally:
        for left in (part, *_companions(part)):
            left.unlink(missing_ok=True)
    return Backup(str(target), target.stat().st_size, sessions)


def restore(source: Path, path: Path, *, is_forced: bool) -> Backup:
    """Put a backup in the place of the database, which no server may have open. Raises StoreError."""
    report = check_database(source)
    if report.problems:
        raise StoreError(f"{source} is damaged: {report.problems[0].place}: {report.problems[0].detail}")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = DatabaseLock(path)
    lock.acquire()
    try:
        there = [file for file in (path, *_companions(path), *journal_paths(path)) if file.exists()]
        if path.exists() and not is_forced:
            raise StoreError(f"{path} exists; --force puts the backup in its place and keeps the old one beside it")
        part = path.with_name(f"{path.name}.part")
        shutil.copyfile(source, part)
        part.chmod(0o600)
        _renew_identity(part)
        suffix = f".before-restore-{time.strftime('%Y%m%d-%H%M%S')}"
        kept = tuple(str(file.rename(file.with_name(file.name + suffix))) for file in there)
        part.rename(path)
    except OSError as error:
        raise StoreError(f"cannot restore {path}: {error.strerror or error}") from error
    finally:
        lock.release()
    return Backup(str(path), path.stat().st_size, report.sessions, kept)


def _copy(path: Path, part: Path, progress: Progress) -> int:
    journaled = read_journal(journal_paths(path)).operations
    with closing(open_reader(path)) as source, closing(sqlite3.connect(part)) as copy:
        (page_bytes,) = source.execute("PRAGMA page_size").fetchone()
        source.execute("BEGIN")
        source.execute("SELECT value FROM meta").fetchall()  # one moment of the database, however long it takes

        def step(_: int, left: int, total: int) -> None:
            progress((total - left) * page_bytes, total * page_bytes)

        source.backup(copy, pages=_STEP_PAGES, progress=step, sleep=0)
    with closing(open_database(part)) as copy:
        _take_in_rest(copy, part, journaled)
        with transaction(copy):
            drop_connections(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # so that the file is all there is
        (sessions,) = copy.execute("SELECT count(*) FROM sessions").fetchone()
        return int(sessions)


def _take_in_rest(copy: sqlite3.Connection, part: Path, journaled: Iterable[Operation]) -> None:
    """What the database did not have yet, up to the first number that is missing: later ones presume it."""
    (applied,) = copy.execute("SELECT value FROM meta WHERE name = 'applied'").fetchone()
    (epoch,) = copy.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
    rest: list[Operation] = []
    for operation in journaled:
        if operation.number == applied + len(rest) + 1:
            rest.append(operation)
    if rest:
        take_in(copy, epoch, rest, Troubles(part).refuse)


def _renew_identity(path: Path) -> None:
    """A search index beside it is another history's: this makes it be made anew."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM meta WHERE name = 'identity'")
        ensure_identity(connection)


def _companions(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm")]
