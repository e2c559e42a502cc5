"""Which store the setting `store` names."""

from __future__ import annotations

from pathlib import Path

from sandbox_agent.errors import ConfigError
from sandbox_agent.store.base import Retention, Store
from sandbox_agent.store.memory import MemoryStore
from sandbox_agent.store.sqlite.store import SqliteStore

DATABASE_NAME = "history.db"


def make_store(name: str, data_dir: Path, *, retention: Retention, memory_bytes: int) -> Store:
    """The store that `memory`, `sqlite` or `sqlite:PATH` names, still to be opened with `await store.open()`.

    PATH is a database file or an existing directory to keep one in. Raises ConfigError.
    """
    if name == "memory":
        return MemoryStore(retention=retention)
    return SqliteStore(database_path(name, data_dir), retention=retention, memory_bytes=memory_bytes)


def database_path(name: str, data_dir: Path) -> Path:
    """The file of a store that has one. Raises ConfigError."""
    kind, separator, place = name.partition(":")
    if kind != "sqlite" or (separator and not place):
        raise ConfigError(f"unknown store {name!r}: use memory, sqlite or sqlite:PATH")
    path = Path(place).expanduser() if place else data_dir / DATABASE_NAME
    return path / DATABASE_NAME if path.is_dir() else path
