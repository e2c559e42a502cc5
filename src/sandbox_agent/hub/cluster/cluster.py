"""Several nodes as one: what a client asks of a session that lives at another node is answered there.

A request is tried here first; that the session is elsewhere (`SessionElsewhere`) brings it here, and from then on the
node is known. It goes over the link to that node, where the client has a connection like any other, and what that
connection is told comes back and is told here. So nothing reaches a client that its session's owner has not committed.

Where a session changes its owner, or a link breaks, each client goes on after the last entry that it was told.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from functools import partial

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.frames import Frame
from sandbox_agent.core.ids import ConnectionId, SessionKey, SessionName
from sandbox_agent.core.json_values import as_object, as_text, read_json
from sandbox_agent.core.methods import CANCEL_REQUEST, PROMPT, RUNTIME_ERROR, ClientCall, client_call
from sandbox_agent.errors import (
    NodeDraining,
    NodeUnreachable,
    OwnerGone,
    SessionElsewhere,
    ShuttingDown,
    UnknownSession,
)
from sandbox_agent.history.wording import version_at
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request, named, read_ours
from sandbox_agent.hub.cluster.draining import Draining
from sandbox_agent.hub.cluster.feed import WholeFeed
from sandbox_agent.hub.cluster.growing import tell_growth
from sandbox_agent.hub.cluster.links import Links
from sandbox_agent.hub.cluster.mirror import Forwarded, Mirror
from sandbox_agent.hub.cluster.routes import Lines, Route, Routes
from sandbox_agent.hub.cluster.strays import UNKNOWN, Stray, Strays
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.base import SessionRecord
from sandbox_agent.store.postgres.store import PostgresStore

_RETRY = 0.25
_TRIES = 4
"""How often a request goes on to a new owner because the last one has the session no more."""
_READ_HERE = frozenset(f"_sandboxagent/session/{name}" for name in ("events", "get", "list", "list_models", "search"))
"""Answered from the database, whoever owns the session."""
_FOLLOW = "_sandboxagent/session/follow"
_OF_THE_NODE = ("_sandboxagent/fs/", "_sandboxagent/process/")
_ELSEWHERE = frozenset(error.__new__(error).kind for error in (SessionElsewhere, ShuttingDown, NodeDraining))
_log = logging.getLogger(__name__)


class ClusterOptions(msgspec.Struct, frozen=True, kw_only=True):
    token: str
    ca_file: str | None
    lease: float
    takes_over: bool
    drain: float
    """Seconds that running turns may take to end before their sessions are handed on."""


class Cluster:
    def __init__(self, hub: Hub, store: PostgresStore, options: ClusterOptions) -> None:
        self.directory = store.directory
        self.node = store.directory.node.id
        self.takes_over = options.takes_over
        self._hub = hub
        self._store = store
        self._sessions = hub.sessions
        self._tasks = hub.tasks
        self._patience = options.lease * 1.5 + 2.0
        """Long enough for the lease of a node that has just died to end."""
        self._mirrors: dict[ConnectionId, dict[str, Mirror]] = {}
        self._routes = Routes()
        self._tries: dict[ConnectionId, dict[int, int]] = {}
        self._lines = Lines()
        self.links = Links(store.directory, options.token, lease=options.lease, ca_file=options.ca_file)
        self._strays = Strays(self._bring_back, store.directory, hub.tasks, every=min(0.5, options.lease / 10))
        self.draining = Draining(hub, store, patience=options.drain, hands_on=options.takes_over)
        self.feed = WholeFeed(hub.feed, self.links, store.directory, hub.tasks, every=options.lease / 6)
        hub.join(self)
        hub.tasks.start(tell_growth(hub.sessions, store.directory))

    def forwards(self, request: Request) -> bool:
        """Whether a request is not for this node, as far as can be said at once: then it is answered, sooner or later.

        Raises NodeDraining, InvalidParams."""
        connection, session, method = request.connection, request.frame.session, request.method
        is_leaving = self.directory.is_draining
        if is_leaving and method == PROMPT and not self.takes_over:
            raise NodeDraining(f"node {self.node} is draining, and its sessions stay with it (takeover = never)")
        if connection.is_guest and is_leaving and method == PROMPT:
            self._tasks.answer(request, self._send_back(request))
            return True
        if connection.is_guest or method in _READ_HERE:
            return False
        if is_leaving and client_call(method, has_session=session is not None) is ClientCall.CREATE:
            raise NodeDraining(f"node {self.node} is draining and takes no sessions: use another node")
        if session is None:
            return False
        target = request.target()
        is_waiting = self._lines.is_any(connection.id, session)
        if is_waiting or self._strays.has(connection.id) or (is_leaving and method == PROMPT):
            self._tasks.answer(request, self._forward(request))
            return True
        if self._sessions.resolve_held(target) is not None:
            return False
        mirror, route = self._known(connection, target), self._routes.get(target)
        if mirror is not None and route is not None and (method != PROMPT or route.key in mirror.follows):
            mirror.send(request, route.key, 0)
        elif mirror is not None or method.startswith(_OF_THE_NODE):  # these are for the disk of the session's node
            self._tasks.answer(request, self._forward(request))
        else:
            return False
        return True

    def elsewhere(self, request: Request, error: SessionElsewhere) -> bool:
        """Whether a request that failed since its session lives elsewhere is answered there."""
        if request.connection.is_guest or isinstance(error, OwnerGone) or "node" not in error.data:
            return False
        self._tasks.answer(request, self._forward(request))
        return True

    def tell(self, connection: Connection, frame: Frame, raw: bytes) -> bool:
        """Whether a notification of a client, or its answer to a question, is for another node."""
        mirrors = self._mirrors.get(connection.id, {})
        if frame.is_answer:
            asking = next((mirror for mirror in mirrors.values() if frame.key in mirror.asks), None)
            if asking is not None:
                asking.asks.discard(frame.key)
                asking.say(raw)
            return asking is not None
        if frame.method == CANCEL_REQUEST:
            for each in mirrors.values():
                each.cancel(raw)
            return False
        if frame.session is None or connection.is_guest:
            return False
        name = named(frame.session, read_ours(raw, frame.method or ""), connection.agent)
        is_waiting = self._lines.is_any(connection.id, frame.session)
        if not is_waiting and self._sessions.resolve_held(name) is not None:
            return False
        mirror = None if is_waiting else self._known(connection, name)
        if mirror is not None:
            mirror.say(raw)
        else:
            self._tasks.start(self._notify(connection, name, frame, raw))
        return True

    def mirror_for(self, connection: Connection, frame: Frame) -> Mirror | None:
        """Where a message would go, if that is another node."""
        if frame.session is None or connection.id not in self._mirrors:
            return None
        return self._known(connection, SessionName(frame.session, None, connection.agent))

    def connection_closed(self, connection: ConnectionId) -> None:
        self._strays.forget(connection)
        self._tries.pop(connection, None)
        for mirror in self._mirrors.pop(connection, {}).values():
            mirror.close()

    def session_lost(self, key: SessionKey, attached: list[Connection]) -> None:
        """This node has a session no more: those attached here follow it to where it goes."""
        for connection in attached:
            if not connection.is_guest:
                self._strays.add(connection, key, self._store.told(key.stream))

    async def close(self) -> None:
        await self.links.close()

    def answered(self, mirror: Mirror, forwarded: Forwarded, line: bytes, *, is_error: bool) -> None:
        request = forwarded.request
        tries = self._tries.setdefault(request.connection.id, {})
        tried = tries.pop(request.ticket, 0)
        if is_error and forwarded.may_repeat and _kind(line) in _ELSEWHERE and tried < _TRIES:
            tries[request.ticket] = tried + 1
            self.moved(mirror, forwarded.key)
            if self._is_followed(request, self._strays.position(request.connection.id, forwarded.key)):
                return
            self._tasks.answer(request, self._forward(request))
            return
        request.give(frames.with_id(line, request.frame.key))

    def moved(self, mirror: Mirror, key: SessionKey) -> None:
        self._routes.forget(key)
        after = mirror.leave(key)
        if after is not None:
            self._strays.add(mirror.connection, key, after)

    def mirror_lost(self, mirror: Mirror, reason: str) -> None:
        """Requests that may be repeated go to whoever has their session next; the client follows it there."""
        connection = mirror.connection
        mirrors = self._mirrors.get(connection.id, {})
        if mirrors.get(mirror.node) is mirror:
            del mirrors[mirror.node]
        if connection.is_closed or self._hub.closing.is_set():
            return
        for ask in mirror.asks:
            line = frames.notification(CANCEL_REQUEST, {"requestId": msgspec.Raw(ask)})
            connection.deliver_own(None, line)
        for key, after in mirror.follows.items():
            self._routes.forget(key)
            self._strays.add(connection, key, after)
        for forwarded in mirror.pending.values():
            request = forwarded.request
            if self._is_followed(request, mirror.follows.get(forwarded.key)):
                continue  # it is brought back from there; to ask again would tell it the same again
            if forwarded.may_repeat:
                self._tasks.answer(request, self._forward(request))
            else:
                lost = f"the link to node {mirror.node} broke during {request.method}: it may or may not have been done"
                request.fail(NodeUnreachable(f"{lost} ({reason})", node=mirror.node))

    async def _forward(self, request: Request) -> None:
        """Have a request answered by the owner of its session, here if that is to be us. Raises what is in the way."""
        connection = request.connection
        end = asyncio.get_running_loop().time() + self._patience
        async with self._lines.stand(connection.id, request.frame.session or ""):
            while True:
                try:
                    if await self._try(request):
                        return
                except (NodeUnreachable, SessionElsewhere) as error:
                    if isinstance(error, OwnerGone) or asyncio.get_running_loop().time() > end:
                        raise
                await asyncio.sleep(_RETRY)

    async def _try(self, request: Request) -> bool:
        """Whether the request is where it belongs; else it is to be tried again. Raises NodeUnreachable."""
        connection, target = request.connection, request.target()
        try:
            record = await self._sessions.look_up(target)
        except UnknownSession:
            self._hub.dispatch_here(request)
            return True
        if self.directory.is_draining and self._sessions.held(record.key) is not None and request.method == PROMPT:
            return False  # it is handed on as soon as its turn is over
        node = await self._place(record)
        if node is None:
            record = await self._sessions.resolve(target)
            if not self._is_followed(request, await self._strays.settle(connection, record.key)):
                self._hub.dispatch_here(request)
            return True
        mirror = await self._mirror(connection, node)
        if self._is_followed(request, await self._strays.settle(connection, record.key)):
            return True
        self._routes.remember(target, Route(node, record.key))
        mirror.send(request, record.key, record.event_count if _is_counted(mirror, record) else UNKNOWN)
        return True

    def _is_followed(self, request: Request, settled: int | None) -> bool:
        """Whether that the client was brought back is all that it asked for: what it was told must not come again."""
        if settled is None or request.method != _FOLLOW:
            return False
        request.answer({"sessionId": request.frame.session, "lastSequence": max(settled, 0)})
        return True

    async def _send_back(self, request: Request) -> None:
        """No turn begins here any more: once the session is handed on, the client's node looks for it anew."""
        while True:
            if self._sessions.resolve_held(request.target()) is None:
                raise NodeDraining(f"node {self.node} is draining: the session has been handed on")
            if not self.directory.is_draining:
                self._hub.dispatch_here(request)
                return
            await asyncio.sleep(_RETRY)

    async def _notify(self, connection: Connection, name: SessionName, frame: Frame, raw: bytes) -> None:
        async with self._lines.stand(connection.id, frame.session or ""):
            record = await self._sessions.look_up(name)
            node = await self._place(record)
            if node is not None:
                (await self._mirror(connection, node)).say(raw)
                return
        self._hub.notify_here(connection, frame, raw)

    async def _place(self, record: SessionRecord) -> str | None:
        """The other node that has a session, or is to have it; None for this one. Raises StoreError, NodeDraining."""
        if self._sessions.held(record.key) is not None:
            return None
        stream = record.key.stream
        owner = (await self.directory.owners([stream])).get(stream)
        if owner is not None and owner.is_alive and owner.node != self.node:
            return owner.node
        return await self.links.another() if self.directory.is_draining else None

    async def _bring_back(self, connection: Connection, key: SessionKey, stray: Stray) -> None:
        """Have a client follow a session again, wherever it is. Raises why it cannot be just now."""
        record = await self._sessions.look_up(SessionName(key.session, key.agent))
        node = await self._place(record)
        self._leave_others(stray, key, node)
        if stray.after == UNKNOWN:
            stray.after = record.event_count
            connection.deliver_own(key.session, _moved(key))
        if node is None:
            record = await self._sessions.resolve(SessionName(key.session, key.agent))
            await self._sessions.attach.follow(connection, record, stray.after, told=partial(setattr, stray, "after"))
        else:
            mirror = await self._mirror(connection, node)
            await mirror.follow(key, stray.after, is_counted=_is_counted(mirror, record))

    def _leave_others(self, stray: Stray, key: SessionKey, node: str | None) -> None:
        """From nodes that have had the session before nothing more is told of it: it comes from the one that has it."""
        for mirror in self._mirrors.get(stray.connection.id, {}).values():
            told = mirror.leave(key) if mirror.node != node else None
            if told is not None and UNKNOWN not in (told, stray.after):
                stray.after = max(stray.after, told)

    async def _mirror(self, connection: Connection, node: str) -> Mirror:
        """Raises NodeUnreachable."""
        link = await self.links.to(node)
        if connection.is_closed:
            raise NodeUnreachable("the client has left", node=node)
        mirrors = self._mirrors.setdefault(connection.id, {})
        mirror = mirrors.get(node)
        if mirror is None:
            mirror = mirrors[node] = Mirror(self, link, connection)
        return mirror

    def _known(self, connection: Connection, target: SessionName) -> Mirror | None:
        route = self._routes.get(target)
        return None if route is None else self._mirrors.get(connection.id, {}).get(route.node)


def _is_counted(mirror: Mirror, record: SessionRecord) -> bool:
    """Whether what the client is told of the session's history comes with its place there."""
    client = mirror.connection.client
    return mirror.tells_places or client.hears_all or version_at(record.spoken, sys.maxsize) is client.version


def _moved(key: SessionKey) -> bytes:
    message = "the session has moved to another node: read its history for what you may have missed"
    return frames.notification(RUNTIME_ERROR, {"sessionId": key.session, "code": "session_moved", "message": message})


def _kind(line: bytes) -> str:
    """Of an error of ours: the last part of its type."""
    error = as_object(read_json(frames.member(line, "error") or b"{}"))
    return as_text(as_object(error.get("data")).get("type")).rpartition(":")[2]
