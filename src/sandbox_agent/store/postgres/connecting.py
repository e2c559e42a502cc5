"""Connections to PostgreSQL, and what to do when there is none, in words."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from sandbox_agent.errors import ConfigError, SandboxAgentError, StoreError

OLDEST_SERVER = 14
_CONNECT_SECONDS = 5.0
_COMMAND_SECONDS = 30.0
_READERS = 3
"""Connections for reading, opened when they are needed. One more writes."""
_SCHEME = "postgresql://"

Connection = Any
"""asyncpg's, whose types say little."""


class Place:
    """Which database. In words it is without the password."""

    def __init__(self, url: str) -> None:
        """Raises ConfigError."""
        if not url.startswith(_SCHEME):
            raise ConfigError(f"not the address of a PostgreSQL database: {url.partition(':')[0]!r}")
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            raise ConfigError("store: the port of the PostgreSQL address is not a number") from None
        self.url = url
        self.database = parts.path.lstrip("/") or parts.username or ""
        self.user = parts.username or ""
        where = f"{parts.hostname or 'localhost'}:{port}" if port else parts.hostname or "localhost"
        self.name = f"postgresql://{where}/{self.database}"

    def __str__(self) -> str:
        return self.name

    async def connect(self) -> Connection:
        """Raises StoreError that says what to do."""
        try:
            return await asyncpg.connect(
                self.url,
                timeout=_CONNECT_SECONDS,
                command_timeout=_COMMAND_SECONDS,
                server_settings={"application_name": "sandbox-agent"},
            )
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise StoreError(self.explain(error)) from error
        except ValueError as error:
            raise ConfigError(f"store: {error}") from error

    def explain(self, error: BaseException) -> str:
        """What went wrong, and what to do."""
        for kind, advice in self._advice():
            if isinstance(error, kind):
                return f"{advice} ({_words(error)})"
        return f"the history database {self} reports: {_words(error)}"

    def _advice(self) -> list[tuple[type[BaseException], str]]:
        return [
            (
                asyncpg.InvalidAuthorizationSpecificationError,
                f"{self} refuses user {self.user!r}: check the user and the password in `store`, and pg_hba.conf",
            ),
            (
                asyncpg.InvalidCatalogNameError,
                (
                    f"there is no database {self.database!r} at {self}: create it with `createdb {self.database}`, "
                    "or name another in `store`"
                ),
            ),
            (
                asyncpg.TooManyConnectionsError,
                (
                    f"{self} has no connection left: raise max_connections there, or end others; "
                    f"each server needs up to {_READERS + 1}"
                ),
            ),
            (
                asyncpg.ReadOnlySQLTransactionError,
                f"{self} is read-only, perhaps a replica: name the primary in `store`",
            ),
            (
                asyncpg.InsufficientPrivilegeError,
                (
                    f"user {self.user!r} may not do this at {self}: grant it CREATE on the database, "
                    "or all on the schema sandbox_agent"
                ),
            ),
            (asyncpg.CannotConnectNowError, f"{self} is starting or stopping: it is tried again"),
            (TimeoutError, f"{self} does not answer: check that it runs and can be reached"),
            (OSError, f"{self} cannot be reached: check that it runs, and host and port in `store`"),
            (asyncpg.PostgresConnectionError, f"the connection to {self} was lost: it is tried again"),
            (asyncpg.InterfaceError, f"the connection to {self} was lost: it is tried again"),
        ]


async def check_server(connection: Connection, place: Place) -> None:
    """Raise StoreError for a server that cannot be used."""
    version = connection.get_server_version()
    if version.major < OLDEST_SERVER:
        raise StoreError(f"{place} is PostgreSQL {version.major}: {OLDEST_SERVER} or newer is needed; upgrade it")
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"{place} has the encoding {encoding}: create a database with the encoding UTF8")
    if await connection.fetchval("SHOW transaction_read_only") == "on":
        raise StoreError(f"{place} is read-only, perhaps a replica: name the primary in `store`")


class Readers:
    """A few connections, each lent to one at a time."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._free: list[Connection] = []
        self._places = asyncio.Semaphore(_READERS)

    @contextlib.asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        """Raises StoreError; what goes wrong on the way, too."""
        async with self._places:
            connection = await self._find()
            try:
                yield connection
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                connection.terminate()
                raise StoreError(self._place.explain(error)) from error
            except SandboxAgentError:
                self._free.append(connection)
                raise
            except BaseException:
                connection.terminate()  # a question may be under way on it
                raise
            self._free.append(connection)

    def close(self) -> None:
        while self._free:
            self._free.pop().terminate()

    async def _find(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
        return await self._place.connect()


def _words(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
