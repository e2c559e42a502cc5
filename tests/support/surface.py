"""The route table as the server builds it, for tests that go over all of it."""

from __future__ import annotations

import re
from pathlib import Path

from sandbox_agent.agents import Catalog
from sandbox_agent.files import FileService
from sandbox_agent.http.access.auth import Credentials
from sandbox_agent.http.access.origins import HostNames
from sandbox_agent.http.asgi.routes import Door, Endpoint
from sandbox_agent.http.surface import Parts, build_app
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store import MemoryStore
from support.limits import APP_LIMITS, HUB_OPTIONS, file_limits
from support.store_words import KEEP_ALL


def route_table() -> tuple[Endpoint | Door, ...]:
    catalog, files = Catalog({}), FileService((), Path("/"), file_limits(), data_dir=None)
    hub = Hub(MemoryStore(retention=KEEP_ALL), catalog, environ={}, options=HUB_OPTIONS, files=files)
    parts = Parts(
        hub=hub,
        catalog=catalog,
        files=files,
        credentials=Credentials(None),
        hosts=HostNames((), is_loopback=True, is_any_name=False),
        limits=APP_LIMITS,
        request_timeout=120.0,
        body_limit=1 << 20,
    )
    return build_app(parts).table.entries


def every_method_and_path() -> list[tuple[str, str]]:
    """Each operation of the table once, with names filled in."""
    found = []
    for entry in route_table():
        path = filled_in(entry.path)
        methods = entry.methods if isinstance(entry, Door) else (entry.method,)
        found += [(method, path) for method in methods]
    return found


def filled_in(path: str) -> str:
    """A path of the table with a name for each pair of braces."""
    return re.sub(r"{[^}]+}", "some", path.replace("{agent}", "mock"))
