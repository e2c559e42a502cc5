"""Which store the setting `store` names."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sandbox_agent.errors import ConfigError, StoreInUse
from sandbox_agent.store.base import Retention, Store
from sandbox_agent.store.membership import Membership
from sandbox_agent.store.memory import MemoryStore
from sandbox_agent.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from sandbox_agent.store.copying import Copied, Progress, Side

DATABASE_NAME = "history.db"
AUTO = "auto"
_log = logging.getLogger("sandbox_agent.store")


async def open_store(
    name: str,
    data_dir: Path,
    *,
    retention: Retention,
    memory_bytes: int,
    search_text_bytes: int,
    membership: Membership | None = None,
) -> Store:
    """As `make_store`, and opened. `auto` is `sqlite`, or `memory` while another server keeps its history there."""
    limits = {"memory_bytes": memory_bytes, "search_text_bytes": search_text_bytes}
    store = make_store(name, data_dir, retention=retention, membership=membership, **limits)
    try:
        await store.open()
    except StoreInUse as error:
        if name != AUTO:
            raise
        other = error.data["pid"]
        reason = f"history is kept in memory until this server stops: another one (pid {other}) uses {data_dir}"
        _log.warning("%s", reason)
        store = MemoryStore(retention=retention, reason=reason)
        await store.open()
    return store


def make_store(
    name: str,
    data_dir: Path,
    *,
    retention: Retention,
    memory_bytes: int,
    search_text_bytes: int,
    membership: Membership | None = None,
) -> Store:
    """The store that `memory`, `sqlite`, `sqlite:PATH`, `postgresql://…` or `auto` names, still to be opened with
    `await store.open()`.

    PATH is a database file or an existing directory to keep one in. `membership` is for a store that others share.
    Raises ConfigError.
    """
    if name == "memory":
        return MemoryStore(retention=retention)
    if is_postgres(name):
        kept = membership or Membership()
        return _postgres_store(name, data_dir, retention=retention, memory_bytes=memory_bytes, membership=kept)
    path = database_path(name, data_dir)
    return SqliteStore(path, retention=retention, memory_bytes=memory_bytes, search_text_bytes=search_text_bytes)


async def copy_store(source: str, target: str, data_dir: Path, *, progress: Progress) -> Copied:
    """Copy all sessions between two stores by their names. Raises ConfigError, StoreError."""
    from sandbox_agent.store.copying import copy_all  # noqa: PLC0415 - a server never needs it

    async with (
        _side(source, data_dir, is_source=True) as from_,
        _side(target, data_dir, is_source=False) as to,
    ):
        if from_.name == to.name:
            raise ConfigError(f"{to.name} cannot be copied to itself")
        return await copy_all(from_, to, progress)


def _side(name: str, data_dir: Path, *, is_source: bool) -> AbstractAsyncContextManager[Side]:
    if not is_postgres(name):
        from sandbox_agent.store.sqlite.copied import sqlite_side  # noqa: PLC0415 - only for a copy

        return sqlite_side(database_path(name, data_dir), is_source=is_source)
    try:
        from sandbox_agent.store.postgres.copied import postgres_side  # noqa: PLC0415 - only for who uses it
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None
    return postgres_side(name)


def is_postgres(name: str) -> bool:
    return name.startswith("postgresql://")


def secret_of(name: str) -> str:
    """The password in the address of a store, if it has one: it must never be shown."""
    password = urlsplit(name).password if is_postgres(name) else None
    return unquote(password or "")


def _postgres_store(
    url: str, data_dir: Path, *, retention: Retention, memory_bytes: int, membership: Membership
) -> Store:
    try:
        from sandbox_agent.store.postgres.store import PostgresStore  # noqa: PLC0415 - only for who uses it
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None
    return PostgresStore(url, data_dir, retention=retention, memory_bytes=memory_bytes, membership=membership)


def _not_installed(error: ModuleNotFoundError) -> ConfigError:
    return ConfigError(f"postgresql://… needs {error.name}: install sandbox-agent-server[postgres]")


def database_path(name: str, data_dir: Path) -> Path:
    """The file of a store that has one. Raises ConfigError."""
    if is_postgres(name):
        raise ConfigError("the store is a PostgreSQL database: use pg_dump and pg_restore, which know it")
    kind, separator, place = ("sqlite" if name == AUTO else name).partition(":")
    if kind != "sqlite" or (separator and not place):
        raise ConfigError(f"unknown store {name!r}: use sqlite, sqlite:PATH, postgresql://…, memory or auto")
    path = Path(place).expanduser() if place else data_dir / DATABASE_NAME
    return path / DATABASE_NAME if path.is_dir() else path
