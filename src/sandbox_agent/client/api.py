"""Plain HTTP calls, with the server's problems as exceptions."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from sandbox_agent.client.rpc.problems import from_response, from_transport

if TYPE_CHECKING:
    import httpx
else:
    from sandbox_agent import lazy_httpx as httpx

Content = bytes | AsyncIterator[bytes]


class Api:
    def __init__(self, http: httpx.AsyncClient, verify: ssl.SSLContext | bool = True) -> None:
        self.http = http
        self.verify = verify
        """Which certificates are believed, for those who open sockets of their own."""

    async def request(
        self,
        verb: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: Any = None,
        content: Content | None = None,
        headers: dict[str, str] | None = None,
        timeout: float | None = 60.0,
    ) -> httpx.Response:
        """A response below 400. Raises the error that the server named, or ConnectionLost."""
        given = dict(headers or {})
        if body is not None:
            content = msgspec.json.encode(body)
            given.setdefault("Content-Type", "application/json")
        try:
            response = await self.http.request(
                verb,
                path,
                params=plain_query(query),
                content=content,
                headers=given,
                timeout=httpx.Timeout(timeout, connect=10.0, pool=None),
            )
        except httpx.HTTPError as error:
            raise from_transport(error, str(self.http.base_url).rstrip("/")) from error
        if response.status_code >= 400:
            raise from_response(response)
        return response

    async def get(self, path: str, /, **query: Any) -> Any:
        return msgspec.json.decode((await self.request("GET", path, query=query)).content)

    async def post(self, path: str, /, *, body: Any = None, timeout: float | None = 60.0, **query: Any) -> Any:
        response = await self.request("POST", path, query=query, body=body, timeout=timeout)
        return msgspec.json.decode(response.content) if response.content else None

    @contextlib.asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        verb: str = "GET",
        query: dict[str, Any] | None = None,
        body: Any = None,
        headers: dict[str, str] | None = None,
        timeout: float | None = 60.0,
    ) -> AsyncIterator[httpx.Response]:
        """A response whose body is read piece by piece; `timeout` bounds each piece."""
        limits = httpx.Timeout(timeout, connect=10.0, pool=None)
        url = str(self.http.base_url).rstrip("/")
        given = dict(headers or {})
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            given.setdefault("Content-Type", "application/json")
        try:
            async with self.http.stream(
                verb, path, params=plain_query(query), content=content, headers=given, timeout=limits
            ) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise from_response(response)
                yield response
        except httpx.HTTPError as error:
            raise from_transport(error, url) from error


def plain_query(query: dict[str, Any] | None) -> dict[str, str]:
    """Without what is None, and with booleans as the server spells them."""
    spelled = {True: "true", False: "false"}
    return {
        name: spelled[value] if isinstance(value, bool) else str(value)
        for name, value in (query or {}).items()
        if value is not None
    }
