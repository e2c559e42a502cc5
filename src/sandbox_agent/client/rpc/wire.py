"""The verbs of `/v1/rpc`, one try each, with everything that can go wrong as one of our errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from sandbox_agent.client.rpc.problems import from_response, from_transport
from sandbox_agent.client.rpc.sse import EventParser, ServerEvent
from sandbox_agent.errors import ConnectionLost, SandboxAgentError

if TYPE_CHECKING:
    import httpx
else:
    from sandbox_agent import lazy_httpx as httpx

_PATH = "/v1/rpc"
_CONNECTION = "X-ACP-Connection-Id"
_JSON = {"Content-Type": "application/json", "Accept": "application/json"}
_OPEN = 600.0
"""An agent may be installed on the way."""
_TAKEN = 60.0
"""Requests are answered on the stream: the server only has to take them."""
_SILENCE = 45.0
"""The server sends a heartbeat every 15 s: a stream that is silent for longer is dead."""
_GATEWAY = frozenset({502, 503, 504})


class Wire:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    @property
    def url(self) -> str:
        return str(self._http.base_url).rstrip("/")

    async def open(self, initialize: bytes) -> tuple[str, bytes]:
        """The id of a new connection, and the answer."""
        response = await self._post(initialize, _JSON, _OPEN)
        connection_id = response.headers.get(_CONNECTION)
        if connection_id is None:
            raise ConnectionLost(f"what answers at {self.url} is no sandbox-agent server")
        return connection_id, response.content

    async def tell(self, raw: bytes, connection_id: str) -> None:
        """Have the server take a message; what comes of it comes on the stream. Raises UnknownConnection."""
        await self._post(raw, {**_JSON, _CONNECTION: connection_id, "Prefer": "respond-async"}, _TAKEN)

    async def ask(self, raw: bytes, connection_id: str) -> bytes:
        """The answer to a request. Raises UnknownConnection, AgentTimeout."""
        return (await self._post(raw, {**_JSON, _CONNECTION: connection_id}, _OPEN)).content

    async def events(self, connection_id: str, after: int) -> AsyncGenerator[list[ServerEvent], None]:
        """The stream after event `after`, in bursts, until it ends. Raises UnknownConnection, StreamTaken."""
        headers = {_CONNECTION: connection_id, "Accept": "text/event-stream", "Last-Event-ID": str(after)}
        parser = EventParser()
        try:
            async with self._http.stream("GET", _PATH, headers=headers, timeout=_limits(_SILENCE)) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise self._refusal(response)
                yield []
                async for chunk in response.aiter_raw():
                    if events := parser.feed(chunk):
                        yield events
        except httpx.HTTPError as error:
            raise from_transport(error, self.url) from error

    async def close(self, connection_id: str) -> None:
        """Tell the server that we are gone, if it can be told."""
        try:
            await self._http.delete(_PATH, headers={_CONNECTION: connection_id}, timeout=5.0)
        except httpx.HTTPError:
            pass

    async def _post(self, raw: bytes, headers: dict[str, str], timeout: float) -> httpx.Response:
        try:
            response = await self._http.post(_PATH, content=raw, headers=headers, timeout=_limits(timeout))
        except httpx.HTTPError as error:
            raise from_transport(error, self.url) from error
        if response.status_code >= 400:
            raise self._refusal(response)
        return response

    def _refusal(self, response: httpx.Response) -> SandboxAgentError:
        is_ours = response.headers.get("content-type", "").startswith("application/problem+json")
        if response.status_code in _GATEWAY and not is_ours:
            return ConnectionLost(f"the server behind {self.url} is away: HTTP {response.status_code}")
        return from_response(response)


def was_sent(error: SandboxAgentError) -> bool:
    """Whether the server may have what could not be sent whole, or without an answer."""
    never = httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout
    return isinstance(error, ConnectionLost) and not isinstance(error.__cause__, never)


def _limits(timeout: float) -> httpx.Timeout:
    return httpx.Timeout(timeout, connect=10.0, pool=None)
