"""`/v1/openapi.json`, and `/docs`: the same as a page to read, without scripts. Made when somebody first asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import JSON, Response
from sandbox_agent.http.asgi.routes import Content, Operation

READ_OPENAPI = Operation(
    "readOpenapi", "Get this document", "server", returns=Content(("application/json",), {"type": "object"})
)


class ReferenceApi:
    def __init__(self, build: Callable[[], dict[str, Any]]) -> None:
        self._build = build

    async def openapi(self, _: Exchange) -> Response:
        return self._openapi

    async def reference(self, _: Exchange) -> Response:
        return self._reference

    @cached_property
    def _document(self) -> dict[str, Any]:
        return self._build()

    @cached_property
    def _openapi(self) -> Response:
        return Response(200, pretty(self._document), JSON, ((b"cache-control", b"no-cache"),))

    @cached_property
    def _reference(self) -> Response:
        from sandbox_agent.http.api.reference_page import render_reference  # noqa: PLC0415 - few read it

        return render_reference(self._document)


def pretty(document: dict[str, Any]) -> bytes:
    """As it is served, and as the copy under docs/ is kept."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
