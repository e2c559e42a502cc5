"""The feed of all nodes: what changes here, and what the others tell of themselves over links, in one order.

Its positions are this node's alone. Each change says of which node it is, and those of a node stay in their order. A
node is followed again after the last change that it told; wherever some of its changes may be missing, a `reset` that
names it says so. Others are followed only while somebody follows here, and for a while after, for who comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.methods import STREAM_GAP
from sandbox_agent.core.users import Right
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import MalformedMessage, NodeUnreachable, StoreError
from sandbox_agent.hub.cluster import wire
from sandbox_agent.hub.cluster.links import Links
from sandbox_agent.hub.extensions.feed import CHANGED, FOLLOW
from sandbox_agent.hub.feed import RESET, Change, Feed
from sandbox_agent.hub.tasks import Tasks
from sandbox_agent.store.postgres.directory import Directory

_PATIENCE = 1.0
"""Seconds that the first who follows waits for nodes that do not answer."""
_GRACE = 60.0
"""Seconds that others are followed for nobody."""
_RETRY, _RETRY_MOST = 0.25, 5.0
_CARRIED = 10_000
"""Changes after which a channel is opened anew: the other node keeps what it has told on one until it is closed."""
_log = logging.getLogger(__name__)


class WholeFeed:
    def __init__(self, own: Feed, links: Links, directory: Directory, tasks: Tasks, *, every: float) -> None:
        """`every` so many seconds it looks which nodes there are."""
        self._own = own
        self._links = links
        self._directory = directory
        self._tasks = tasks
        self._every = every
        self._gathered: _Gathered | None = None

    async def opened(self) -> Feed:
        """To be followed at once. Whatever other nodes told before it was opened is not in it."""
        if self._gathered is None:
            self._gathered = _Gathered(self._own, self._links, self._directory, self._tasks)
            self._tasks.start(self._gather(self._gathered))
        gathered = self._gathered
        if not gathered.is_open:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await gathered.begun()
        gathered.is_open = True
        return gathered.feed

    async def _gather(self, gathered: _Gathered) -> None:
        clock = asyncio.get_running_loop().time
        last_used = clock()
        try:
            while clock() < last_used + _GRACE:
                await gathered.look()
                await asyncio.sleep(self._every)
                if gathered.feed.is_followed:
                    last_used = clock()
        finally:
            self._gathered = None  # in the same step as the look that found nobody
            gathered.end()


class _Gathered:
    """One feed of all nodes, from when somebody wants it to when nobody does."""

    def __init__(self, own: Feed, links: Links, directory: Directory, tasks: Tasks) -> None:
        self.feed = Feed(kept_bytes=own.kept_bytes)
        self.is_open = False
        """Whether somebody follows, or has: then it matters what nodes told before they were followed."""
        self._links = links
        self._directory = directory
        self._tasks = tasks
        self._others: dict[str, _Other] = {}
        self._looked = asyncio.Event()
        self._leave_own = own.follow(None, self._tell_own)

    async def look(self) -> None:
        """Follow who has come, and leave who has gone."""
        try:
            nodes = {peer.id for peer in await self._directory.others()}
        except StoreError as error:
            _log.debug("the nodes cannot be listed problem=%s", error)
            return
        for node in self._others.keys() - nodes:
            self._others.pop(node).leave()
            self.tell(RESET, node, {})
        for node in nodes - self._others.keys():
            self._others[node] = _Other(self, node, self._links, self._tasks)
        self._looked.set()

    async def begun(self) -> None:
        """Return when each node that there is is followed, or cannot be just now."""
        await self._looked.wait()
        for other in list(self._others.values()):
            await other.tried.wait()

    def end(self) -> None:
        self.feed.close()
        self._leave_own()
        for other in self._others.values():
            other.leave()

    def tell(self, kind: str, node: str, members: dict[str, msgspec.Raw]) -> None:
        self.feed.tell(kind, lambda: {**members, "node": node})

    def _tell_own(self, change: Change) -> None:
        self.tell(change.kind, self._directory.node.id, frames.members(change.body))


class _Other:
    """Another node's own feed, followed as a client of that node follows it, from where it was left."""

    def __init__(self, gathered: _Gathered, node: str, links: Links, tasks: Tasks) -> None:
        self.tried = asyncio.Event()
        """It is followed, or could not be at the first try."""
        self._gathered = gathered
        self._node = node
        self._links = links
        self._position: str | None = None
        self._is_followed = False
        self._carried = 0
        self._delay = _RETRY
        self._over = asyncio.Event()
        self._task = tasks.start(self._run())

    def leave(self) -> None:
        self._task.cancel()

    def told(self, runs: list[wire.Run], lines: list[bytes]) -> None:
        try:
            for line in lines:
                self._take(line)
        except msgspec.MsgspecError as error:
            raise MalformedMessage(f"node {self._node} tells no changes: {error}") from None
        self._carried += len(lines)
        if self._carried >= _CARRIED:
            self._over.set()

    def took(self, size: int) -> None:
        pass

    def lost(self, reason: str) -> None:
        self._over.set()

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except (NodeUnreachable, StoreError) as error:
                _log.debug("a node is not followed node=%s problem=%s", self._node, error)
            self.tried.set()
            await asyncio.sleep(self._delay)
            self._delay = min(self._delay * 2, _RETRY_MOST)

    async def _follow(self) -> None:
        """Until the channel is lost, or has carried enough. Raises NodeUnreachable, StoreError."""
        link = await self._links.to(self._node)
        self._over.clear()
        self._carried = 0
        channel = link.open(self, _introduce)
        try:
            asked = {} if self._position is None else {"after": self._position}
            link.post(wire.encode(wire.Say(channel), frames.request(b"1", FOLLOW, asked)))
            await self._over.wait()
        finally:
            link.close_channel(channel)

    def _take(self, line: bytes) -> None:
        frame = frames.parse(line)
        if frame.method == CHANGED:
            members = frames.members(frames.params_of(line))
            self._position = msgspec.json.decode(members.pop("id", b""), type=str)
            self._gathered.tell(msgspec.json.decode(members.get("type", b""), type=str), self._node, members)
        elif frame.method == STREAM_GAP:
            self._gathered.tell(RESET, self._node, {})
        elif frame.is_error:
            self._over.set()
        elif frame.is_answer:
            self._joined(frames.member(line, "result") or b"{}")

    def _joined(self, result: bytes) -> None:
        if self._position is None:
            self._position = msgspec.json.decode(frames.member(result, "after") or b"", type=str)
        if not self._is_followed and self._gathered.is_open:
            self._gathered.tell(RESET, self._node, {})
        self._is_followed = True
        self._delay = _RETRY
        self.tried.set()


def _introduce(channel: int) -> wire.Open:
    """A client that belongs to no agent, and may only read."""
    return wire.Open(channel, "", {}, {"name": "sandbox-agent"}, int(Version.V1), None, int(Right.READ))
