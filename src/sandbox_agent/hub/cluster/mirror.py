"""A client of this node, as another node knows it: its requests that are there, and what it follows there."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol
from uuid import uuid4

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.effects import Retold
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.core.json_values import as_object, as_text, read_json
from sandbox_agent.core.methods import CANCEL_REQUEST, PROMPT, RUNTIME_ERROR, may_repeat
from sandbox_agent.core.notices import PREFIX
from sandbox_agent.errors import AgentTimeout, NodeUnreachable, SessionElsewhere
from sandbox_agent.hub.clients.connection import Connection
from sandbox_agent.hub.clients.request import Request
from sandbox_agent.hub.cluster import wire
from sandbox_agent.hub.cluster.link import Link
from sandbox_agent.hub.cluster.strays import UNKNOWN

_SETTLED = PREFIX + "settled"
_OWN = b'"node-'
_UPDATE = b'"session/update"'
_REPLAYING = "session/load"
"""Not sent again by itself: half of a replay may have been told, and all of it would come once more."""
_FOLLOWING = frozenset({PROMPT, "session/load", "session/resume", "_sandboxagent/session/follow"})
"""What attaches a client to a session."""
_LEAVING = frozenset({"session/delete", "_sandboxagent/session/detach"})
MOVED = SessionElsewhere.__new__(SessionElsewhere).kind


class Forwarded(msgspec.Struct, eq=False):
    request: Request
    key: SessionKey
    may_repeat: bool
    """Whether it can be sent once more if nobody knows what became of it: a prompt can, under its turnId."""


class Answering(Protocol):
    """What the cluster does about what comes over a link."""

    def answered(self, mirror: Mirror, forwarded: Forwarded, line: bytes, *, is_error: bool) -> None: ...
    def moved(self, mirror: Mirror, key: SessionKey) -> None:
        """The other node has the session no more."""

    def mirror_lost(self, mirror: Mirror, reason: str) -> None: ...


class Mirror:
    def __init__(self, cluster: Answering, link: Link, connection: Connection) -> None:
        self.connection = connection
        self.node = link.node
        self.tells_places = link.form >= wire.FORM
        """Whether what is translated over there comes with its place in the history, as everything else does."""
        self.pending: dict[int, Forwarded] = {}
        """By the ticket of the request, which is its id over there."""
        self.follows: dict[SessionKey, int] = {}
        """Up to which entry of a session's history the client has been told, or UNKNOWN."""
        self._departed: set[SessionKey] = set()
        """Sessions that the client follows another way by now: what is still on its way from here comes there too."""
        self._parts: list[bytes] = []
        """Lines of an entry whose others are on their way."""
        self.asks: set[bytes] = set()
        """Questions of agents over there that the client may answer."""
        self._own: dict[bytes, asyncio.Future[bytes]] = {}
        self._cluster = cluster
        self._link = link
        self._unheard = 0
        self._heard = asyncio.Event()
        self._channel = link.open(self, self._introduce)

    def send(self, request: Request, key: SessionKey, base: int) -> None:
        """Have a request answered over there. `base` is how far the history had come: a prompt follows from there."""
        if request.method in _FOLLOWING:
            self._departed.discard(key)
        if request.method == PROMPT:
            request = _with_turn_id(request)
            self.follows.setdefault(key, base)
        elif base == UNKNOWN:
            self.follows[key] = UNKNOWN
        is_safe = may_repeat(request.method) and request.method != _REPLAYING
        self.pending[request.ticket] = Forwarded(request, key, is_safe)
        self.say(frames.with_id(_as_said(request), b"%d" % request.ticket))

    def say(self, raw: bytes) -> None:
        self._unheard += len(raw)
        self._link.post(wire.encode(wire.Say(self._channel), raw))

    async def follow(self, key: SessionKey, after: int, *, is_counted: bool) -> None:
        """Have the client told what was told of a session after that entry, and whatever comes. Raises why not.

        Without `is_counted` it is not known from then on how far it has been told."""
        after = max(after, self.follows.get(key, after))  # something may have come since
        params = {"sessionId": key.session, "after": after, "_meta": {META: {"agent": key.agent}}}
        identity = b'%b%b"' % (_OWN, uuid4().hex.encode())
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._own[identity] = answer
        self._departed.discard(key)
        self.follows[key] = after if is_counted else UNKNOWN
        try:
            self.say(frames.request(identity, "_sandboxagent/session/follow", params))
            line = await answer
        except BaseException:
            self._cluster.moved(self, key)  # it may have been told some of it
            raise
        finally:
            del self._own[identity]
        error = frames.member(line, "error")
        if error is not None:
            self._cluster.moved(self, key)
            raise NodeUnreachable(f"node {self.node}: {frames.error_message(error)}", node=self.node)

    def leave(self, key: SessionKey) -> int | None:
        """The client follows the session another way from now on. Gives up to which entry it has been told here."""
        self._departed.add(key)
        return self.follows.pop(key, None)

    def cancel(self, raw: bytes) -> None:
        """The client takes one of its requests back; nothing, if it is not over there."""
        key = frames.cancelled_key(raw)
        for ticket, forwarded in self.pending.items():
            if forwarded.request.frame.key == key:
                self.say(frames.with_params(raw, {"requestId": ticket}))

    @property
    def has_room(self) -> bool:
        return self._unheard < wire.WINDOW

    async def room(self, timeout: float) -> None:
        """Return when more can be said. Raises AgentTimeout."""
        try:
            async with asyncio.timeout(timeout):
                while not self.has_room:
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            raise AgentTimeout(f"node {self.node} has taken nothing for {timeout:g} s") from None

    def close(self) -> None:
        self._link.close_channel(self._channel)

    def told(self, runs: list[wire.Run], lines: list[bytes]) -> None:
        at = 0
        for run in runs:
            part = lines[at : at + run.count]
            at += run.count
            session = None if run.session is None else SessionId(run.session)
            if run.sequence and session is not None:
                self._from_history(SessionKey(AgentId(run.agent), session), run.sequence, part)
            elif run.entry and session is not None:
                self._retold(SessionKey(AgentId(run.agent), session), self._whole(run, part))
            else:
                self._parts = []  # a gap may stand for the rest of them
                for line in part:
                    self._take(session, line)

    def took(self, size: int) -> None:
        self._unheard -= size
        self._heard.set()

    def lost(self, reason: str) -> None:
        self._unheard = 0
        self._heard.set()
        for answer in self._own.values():
            if not answer.done():
                answer.set_exception(NodeUnreachable(f"the link to node {self.node} broke: {reason}", node=self.node))
        self._cluster.mirror_lost(self, reason)

    def _introduce(self, channel: int) -> wire.Open:
        connection = self.connection
        meta = as_object(connection.capabilities.get("_meta"))
        ours = {name: value for name, value in as_object(meta.get(META)).items() if name not in _SAID_HERE}
        return wire.Open(
            channel,
            connection.agent,
            {**connection.capabilities, "_meta": {**meta, META: ours}},
            connection.client_info,
            int(connection.version),
            connection.user.name,
            int(connection.user.right),
        )

    def _from_history(self, key: SessionKey, sequence: int, lines: list[bytes]) -> None:
        """Entries of a session's history. What the client has been told already, by another way, is left out."""
        if key in self._departed:
            return
        known = self.follows.get(key, sequence - 1)
        if known != UNKNOWN:
            lines, sequence = lines[max(known + 1 - sequence, 0) :], max(sequence, known + 1)
        self.follows[key] = max(known, sequence + len(lines) - 1) if known != UNKNOWN else UNKNOWN
        if not lines:
            return
        self._note_asks(lines)
        self.connection.deliver(key.session, key.stream, sequence, lines)

    def _whole(self, run: wire.Run, lines: list[bytes]) -> Retold:
        """The entries whose last line has come with these."""
        if run.left is None:
            return [(entry, [line]) for entry, line in enumerate(lines, run.entry)]
        self._parts += lines
        if run.left:
            return []
        whole, self._parts = self._parts, []
        return [(run.entry, whole)]

    def _retold(self, key: SessionKey, entries: Retold) -> None:
        """Entries in the client's version. What it has been told already, by another way, is left out."""
        known = self.follows.get(key, 0)
        fresh = [(entry, lines) for entry, lines in entries if entry > known]
        if fresh and key not in self._departed:
            self.follows[key] = fresh[-1][0]
            for _, lines in fresh:
                self._note_asks(lines)
            self.connection.deliver_retold(key.session, key.stream, fresh)

    def _note_asks(self, lines: list[bytes]) -> None:
        for line in lines:
            if _UPDATE not in line[:80]:
                frame = frames.parse(line)
                if frame.is_request:
                    self.asks.add(frame.key)

    def _take(self, session: SessionId | None, line: bytes) -> None:
        frame = frames.parse(line)
        if frame.is_answer:
            self._answered(line, frame.key, is_error=frame.is_error)
            return
        if frame.is_request:
            self.asks.add(frame.key)
        elif frame.method in (CANCEL_REQUEST, _SETTLED):
            self.asks.discard(frames.cancelled_key(line) or b"")
        elif frame.method == RUNTIME_ERROR and (key := self._left(line)) is not None:
            self._cluster.moved(self, key)  # it is followed to where it goes, and the client need not care
            return
        self.connection.deliver_own(session, line)

    def _left(self, line: bytes) -> SessionKey | None:
        """The session that the other node says it has no more."""
        params = as_object(read_json(frames.params_of(line)))
        if as_text(params.get("code")) != MOVED:
            return None
        return next((key for key in self.follows if key.session == params.get("sessionId")), None)

    def _answered(self, line: bytes, key: bytes, *, is_error: bool) -> None:
        if key.startswith(_OWN):
            answer = self._own.get(key)
            if answer is not None and not answer.done():
                answer.set_result(line)
            return
        forwarded = self.pending.pop(int(key), None)
        if forwarded is None:
            return
        if not is_error and forwarded.request.method in _LEAVING:
            self.follows.pop(forwarded.key, None)
        self._cluster.answered(self, forwarded, line, is_error=is_error)


_SAID_HERE = frozenset({"legacyEvents", "sequences"})
"""What a client has asked for that the node with its connection adds by itself."""


def _as_said(request: Request) -> bytes:
    """The request in the client's own version."""
    if request.asked is None:
        return request.raw
    return frames.request(request.frame.key, request.asked.method, request.asked.params)


def _with_turn_id(request: Request) -> Request:
    """A prompt that can be sent again, wherever its session is then, without running twice."""
    meta: dict[str, Any] = as_object(as_object(read_json(frames.params_of(request.raw))).get("_meta"))
    ours = as_object(meta.get(META))
    if isinstance(ours.get("turnId"), str):
        return request
    raw = frames.with_params(request.raw, {"_meta": {**meta, META: {**ours, "turnId": uuid4().hex}}})
    return msgspec.structs.replace(request, raw=raw, frame=frames.parse(raw))
