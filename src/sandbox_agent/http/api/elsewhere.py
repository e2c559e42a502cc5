"""Requests for another node of a cluster: its files, its processes, its agents, and what it says of its sessions.

A client names the node with `?node=ID`, or a session of that node. The request goes to the address that the node has
registered, with the cluster's token and the rights of the one who asks, and is answered there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec

from sandbox_agent.core.ids import SessionName
from sandbox_agent.errors import NodeUnreachable, NotFound, StoreError
from sandbox_agent.http.access.behalf import ON_BEHALF, describe
from sandbox_agent.http.asgi.exchange import Exchange, user_of
from sandbox_agent.http.asgi.messages import Headers, Receive, Scope, Send
from sandbox_agent.hub.hub import Hub

if TYPE_CHECKING:
    import httpx

    from sandbox_agent.hub.cluster.cluster import Cluster
    from sandbox_agent.store.postgres.directory import Peer
else:
    from sandbox_agent import lazy_httpx as httpx

_BY_SESSION = ("/v1/fs/", "/v1/processes")
_SESSIONS = "/v1/sessions/"
_NOT_PASSED_ON = frozenset(
    {
        *(b"host", b"authorization", b"cookie", b"connection", b"upgrade", b"transfer-encoding", b"keep-alive"),
        *(b"x-content-type-options", b"x-frame-options", b"cross-origin-resource-policy", b"date", ON_BEHALF),
    }
)
_NOT_ASKED_THERE = frozenset({"node", "access_token", "auth_token", "ticket"})
_CONNECT, _PATIENCE = 5.0, 2.0
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Elsewhere:
    """Costs nothing where there is no cluster."""

    def __init__(self, hub: Hub, token: str | None, ca_file: str | None) -> None:
        self._hub = hub
        self._token = token
        self._ca_file = ca_file
        self._http: httpx.AsyncClient | None = None
        self._silent: set[str] = set()
        """Nodes that did not answer when they were last asked, as the log says once."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Whether the request was for another node, which has answered it. Raises NotFound, NodeUnreachable."""
        cluster = self._hub.cluster
        if cluster is None or not scope["path"].startswith("/v1/"):
            return False
        named = dict(parse_qsl(scope["query_string"].decode("latin-1"))) if scope["query_string"] else {}
        node = named.get("node") or await self._owner(cluster, scope, named.get("sessionId"))
        if node is None or node == cluster.node:
            return False
        return await self.forward(node, scope, receive, send)

    async def forward(self, node: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Have a node answer; False for a request that has come from a node. Raises NotFound, NodeUnreachable."""
        cluster = self._hub.cluster
        if cluster is None or _is_passed_on(scope):
            return False
        peer = await cluster.directory.find(node)
        if peer is None:
            raise NotFound(f"there is no node {node!r}: GET /v1/nodes lists them")
        if not peer.is_alive or not peer.url:
            raise NodeUnreachable(f"node {node} is gone, or takes no requests of other nodes", node=node)
        exchange = Exchange(scope, receive, send)
        if scope["type"] == "websocket":
            await self._pass_socket_on(cluster, node, peer.url, exchange)
        else:
            await self._pass_on(node, peer.url, exchange)
        return True

    async def ask_others(self, scope: Scope, target: str, shape: type[T]) -> dict[str, T]:
        """What each other node answers to GET `target`, for who sent the request of `scope`, unless a node did.

        One that does not answer in time is left out."""
        cluster = self._hub.cluster
        if cluster is None or _is_passed_on(scope):
            return {}
        try:
            others = await cluster.directory.others()
        except StoreError:
            return {}
        answers = await asyncio.gather(*(self._ask(peer, scope, target, shape) for peer in others))
        return {peer.id: answer for peer, answer in zip(others, answers, strict=True) if answer is not None}

    async def _ask(self, node: Peer, scope: Scope, target: str, shape: type[T]) -> T | None:
        try:
            async with asyncio.timeout(_PATIENCE):
                response = await self._client().get(node.url.rstrip("/") + target, headers=self._credentials(scope))
            answer = msgspec.json.decode(response.raise_for_status().content, type=shape)
        except (httpx.HTTPError, TimeoutError, msgspec.MsgspecError) as error:
            if node.id not in self._silent:
                words = str(error) or type(error).__name__
                _log.warning(
                    "node does not answer, and is left out node=%s url=%s problem=%s", node.id, node.url, words
                )
            self._silent.add(node.id)
            return None
        self._silent.discard(node.id)
        return answer

    async def _owner(self, cluster: Cluster, scope: Scope, session: str | None) -> str | None:
        """The other node whose session a request is about; None if it can be answered here."""
        path: str = scope["path"]
        is_shown = (
            scope.get("method") == "GET" and path.startswith(_SESSIONS) and path.count("/") == _SESSIONS.count("/")
        )
        if is_shown:
            session = path.removeprefix(_SESSIONS)
        elif not path.startswith(_BY_SESSION):
            return None
        if session is None or self._hub.sessions.resolve_held(SessionName(session)) is not None:
            return None
        record = await self._hub.sessions.find_record(SessionName(session))
        owner = None if record is None else (await cluster.directory.owners([record.key.stream])).get(record.key.stream)
        if owner is None or (not owner.is_alive and (is_shown or cluster.takes_over)):
            return None  # nothing of it runs anywhere, or its files are here as well
        return owner.node or None

    async def _pass_on(self, node: str, url: str, exchange: Exchange) -> None:
        scope = exchange.scope
        kept = [(name, value) for name, value in scope["headers"] if name not in _NOT_PASSED_ON]
        headers = [*kept, *self._credentials(scope)]
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        request = self._client().build_request(
            scope["method"],
            url.rstrip("/") + _target(scope),
            headers=headers,
            content=exchange.body() if has_body else None,
        )
        try:
            response = await self._client().send(request, stream=True)
        except httpx.HTTPError as error:
            words = str(error) or type(error).__name__
            raise NodeUnreachable(f"node {node} cannot be reached at {url}: {words}", node=node) from None
        answering = asyncio.create_task(_answer(response, exchange.send))
        leaving = asyncio.create_task(_left(exchange.receive))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)
            await response.aclose()

    async def _pass_socket_on(self, cluster: Cluster, node: str, url: str, exchange: Exchange) -> None:
        from sandbox_agent.http.api.socket_elsewhere import SocketElsewhere  # noqa: PLC0415 - only for who has a cluster

        headers = {name.decode(): value.decode() for name, value in self._credentials(exchange.scope)}

        async def is_there() -> bool:
            peer = await cluster.directory.find(node)
            return peer is not None and peer.is_alive

        socket = SocketElsewhere(exchange, node, is_there)
        await socket.serve(url, _target(exchange.scope), headers, ca_file=self._ca_file)

    def _credentials(self, scope: Scope) -> Headers:
        return [(b"authorization", f"Bearer {self._token}".encode()), (ON_BEHALF, describe(user_of(scope)))]

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            context = ssl.create_default_context(cafile=self._ca_file) if self._ca_file else True
            limits = httpx.Timeout(None, connect=_CONNECT)
            self._http = httpx.AsyncClient(verify=context, timeout=limits, trust_env=False)
        return self._http


def _is_passed_on(scope: Scope) -> bool:
    """Whether a request has come from another node: it is answered here, or not at all."""
    return any(name == ON_BEHALF for name, _ in scope["headers"])


def _target(scope: Scope) -> str:
    """Path and query for the other node: it is told who asks in another way."""
    given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    query = [(name, value) for name, value in given if name not in _NOT_ASKED_THERE]
    path: str = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    return f"{path}?{urlencode(query)}" if query else path


async def _answer(response: httpx.Response, send: Send) -> None:
    headers = [(name.lower(), value) for name, value in response.headers.raw if name.lower() not in _NOT_PASSED_ON]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    with contextlib.suppress(httpx.HTTPError):  # half an answer is all that there is
        async for piece in response.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
