"""From the words of `--store` to a store."""

from __future__ import annotations

from pathlib import Path

from sandbox_agent.errors import ConfigError
from sandbox_agent.store.base import Store
from sandbox_agent.store.memory import MemoryStore
from sandbox_agent.store.sqlite.store import SqliteStore

DATABASE_NAME = "history.db"


def open_store(
    spec: str, data_dir: Path, *, retention_age: float | None = None, retention_bytes: int | None = None
) -> Store:
    """The store that `memory`, `sqlite` or `sqlite:PATH` names, still to be opened with `await store.open()`.

    PATH is a database file or an existing directory to keep one in. Raises ConfigError.
    """
    kind, separator, place = spec.partition(":")
    if spec == "memory":
        return MemoryStore(retention_age=retention_age, retention_bytes=retention_bytes)
    if kind != "sqlite" or (separator and not place):
        raise ConfigError(f"unknown store {spec!r}: use memory, sqlite or sqlite:PATH")
    path = Path(place).expanduser() if place else data_dir / DATABASE_NAME
    if path.is_dir():
        path /= DATABASE_NAME
    return SqliteStore(path, retention_age=retention_age, retention_bytes=retention_bytes)
