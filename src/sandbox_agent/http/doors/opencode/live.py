"""What happens, told to those who follow: growing histories through their folds, and changes of sessions."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Container
from typing import Any

import msgspec

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey, SessionName
from sandbox_agent.errors import SandboxAgentError
from sandbox_agent.history.opencode import Messages, SessionFold, Told
from sandbox_agent.http.doors.opencode import views
from sandbox_agent.http.doors.opencode.folds import Folds
from sandbox_agent.http.doors.opencode.followers import Follower, Followers
from sandbox_agent.http.doors.opencode.presence import Presence
from sandbox_agent.hub.feed import RESET, Change
from sandbox_agent.hub.hub import Hub
from sandbox_agent.hub.sessions.views import SessionSummary
from sandbox_agent.store.base import SessionFilter, SessionRecord

_log = logging.getLogger(__name__)
_KINDS = {
    "session.created": "session.created",
    "session.updated": "session.updated",
    "session.ended": "session.updated",
    "session.deleted": "session.deleted",
}
_RECENT_SECONDS = 120.0
_RECENT_SESSIONS = 8
_RECENT_MESSAGES = 100
"""As many as OpenCode's terminal UI keeps: it waits longer after each cut, and many turns may pass meanwhile."""


Busy = Callable[[], Awaitable[Container[str]]]
"""Says which sessions work at other nodes."""


class _Feed(msgspec.Struct, rename="camel"):
    agent: str
    session_id: str
    session: SessionSummary | None = None


class Live:
    """Follows the hub while anybody follows it."""

    def __init__(self, hub: Hub, presence: Presence, directory: str, *, stream_bytes: int, sessions: int) -> None:
        self._hub = hub
        self._presence = presence
        self._directory = directory
        self.followers = Followers(limit=stream_bytes)
        self.folds = Folds(hub, directory, limit=sessions, tell=self._tell)
        self.on_process: Callable[[Change], None] = lambda _: None
        """Hears of processes, while anybody follows."""
        self._grown: dict[SessionKey, int] = {}
        self._changed: dict[SessionKey, tuple[str, SessionSummary | None]] = {}
        self._came = asyncio.Event()
        self._leave: list[Callable[[], None]] = []
        self._pump: asyncio.Task[None] | None = None

    def follow(self, directory: str | None, *, is_global: bool) -> Follower:
        """To be ended with `unfollow`."""
        if not self.followers:
            self.folds.forget()  # nobody was told what has come since they were looked at
            self._leave = [
                self._hub.sessions.growth.follow(self._note_growth),
                self._hub.feed.follow(None, self._note_change),
            ]
            self._pump = self._hub.tasks.start(self._run())
        self._presence.come()
        return self.followers.add(directory, is_global=is_global)

    def unfollow(self, follower: Follower) -> None:
        self.followers.remove(follower)
        self._presence.leave()
        if not self.followers:
            for leave in self._leave:
                leave()
            if self._pump is not None:
                self._pump.cancel()
            self._grown.clear()
            self._changed.clear()

    def tell(self, record: SessionRecord, type_: str, **properties: Any) -> None:
        """Something of a session that is not in its history."""
        self._tell(record, [Told(type_, {"sessionID": views.id_of(record), **properties})])

    def tell_all(self, type_: str, properties: dict[str, Any]) -> None:
        self.followers.tell(self._directory, [Told(type_, properties)])

    async def tell_recent(self, follower: Follower, busy_elsewhere: Busy) -> None:
        """Tell one who comes the newest messages, whole, of sessions in which something happened shortly before.

        OpenCode's terminal UI does not ask again for what it has, and would miss what came while it was away. The
        newest message is told first, so that one who is cut off again and again gets on."""
        page = await self._hub.sessions.page(SessionFilter(), cursor=None, limit=_RECENT_SESSIONS)
        recent: list[SessionRecord] = []
        for record in page.sessions:
            last = max(record.updated, await self._hub.sessions.history.newest_time(record))
            if last >= time.time() - _RECENT_SECONDS or self.folds.is_running(record):
                recent.append(record)
        dead = await self._left_open(recent, busy_elsewhere)
        for record in recent:
            messages, is_running = Messages(_RECENT_MESSAGES), record.key not in dead
            async with self.folds.as_told(record, messages, is_running=is_running) as fold:  # nothing newer comes first
                self._tell_whole(follower, record, fold, messages, is_busy=fold.is_open and is_running)

    async def _left_open(self, records: list[SessionRecord], busy_elsewhere: Busy) -> set[SessionKey]:
        """Those whose last turn was never ended, and no node that answers runs it."""
        unended = [record for record in records if (await self.folds.current(record)).is_open]
        idle = [record for record in unended if not self.folds.is_running(record)]
        busy = await busy_elsewhere() if idle else {}
        return {record.key for record in idle if views.id_of(record) not in busy}

    def _tell_whole(
        self, follower: Follower, record: SessionRecord, fold: SessionFold, messages: Messages, *, is_busy: bool
    ) -> None:
        newest, *older = [_whole(message) for message in reversed(messages.listed())] or [[]]
        status = {"type": "busy" if is_busy else "idle"}
        state = [Told("session.status", {"sessionID": views.id_of(record), "status": status})]
        if is_busy:
            state += [Told(_asked(asked.id), asked.request) for asked in fold.asks.values()]
        self.followers.tell_one(follower, record.cwd or self._directory, [newest, state, *older])

    def _note_growth(self, key: SessionKey, first: int) -> None:
        if first:
            self._grown.setdefault(key, first)
            self._came.set()

    def _note_change(self, change: Change) -> None:
        if change.kind.startswith("process."):
            self.on_process(change)
        if change.kind not in _KINDS or change.kind == RESET:
            return
        told = msgspec.json.decode(change.body, type=_Feed)
        key = SessionKey(AgentId(told.agent), SessionId(told.session_id))
        before = self._changed.get(key)
        is_new = before is not None and before[0] == "session.created" and change.kind != "session.deleted"
        self._changed[key] = ("session.created" if is_new else _KINDS[change.kind], told.session)
        self._came.set()

    async def _run(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            created = {key: kind for key, (kind, _) in self._changed.items() if kind == "session.created"}
            for key in created:
                await self._tell_change(key)
            while self._grown:
                key = next(iter(self._grown))
                await self._tell_growth(key, self._grown.pop(key))
            for key in list(self._changed):
                await self._tell_change(key)

    async def _tell_growth(self, key: SessionKey, first: int) -> None:
        try:
            record = await self._hub.sessions.look_up(SessionName(key.session, key.agent))
            await self.folds.current(record, first=first)
        except SandboxAgentError as error:  # deleted meanwhile, or its history cannot be read now
            _log.debug("session not followed session=%s problem=%s", key.session, error)

    async def _tell_change(self, key: SessionKey) -> None:
        changed = self._changed.pop(key, None)
        if changed is None:
            return
        kind, summary = changed
        if kind == "session.deleted":
            self.folds.forget(key)
            record = _remembered(key, summary) if summary is not None else None
        else:
            record = self._hub.sessions.held(key)
        if record is not None:
            self.tell(record, kind, info=views.describe(record, self._directory))
            if kind == "session.created":  # the terminal UI lists a session only when it is updated
                self.tell(record, "session.updated", info=views.describe(record, self._directory))

    def _tell(self, record: SessionRecord, told: list[Told]) -> None:
        self.followers.tell(record.cwd or self._directory, told)


def _whole(message: dict[str, Any]) -> list[Told]:
    info = message["info"]
    session = info["sessionID"]
    parts = [
        Told("message.part.updated", {"sessionID": session, "part": part, "time": info["time"]["created"]})
        for part in message["parts"]
    ]
    return [Told("message.updated", {"sessionID": session, "info": info}), *parts]


def _asked(request_id: str) -> str:
    return "permission.asked" if request_id.startswith("per_") else "question.asked"


def _remembered(key: SessionKey, summary: SessionSummary) -> SessionRecord:
    """Enough of a record that is gone to say which it was."""
    created, updated = views.seconds(summary.created_at), views.seconds(summary.updated_at)
    return SessionRecord(
        agent=key.agent,
        session_id=key.session,
        cwd=summary.cwd,
        title=summary.title,
        first_prompt=summary.first_prompt,
        created=created,
        updated=updated,
    )
