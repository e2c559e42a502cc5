"""`/permission` and `/question`: what agents wait for, and the answers. Whoever answers first, wherever, closes it."""

from __future__ import annotations

from typing import Any, TypeVar

from sandbox_agent.core.users import User
from sandbox_agent.errors import SessionElsewhere
from sandbox_agent.history.opencode.asks import Permission, Question, Reply
from sandbox_agent.http.doors.opencode import bodies
from sandbox_agent.http.doors.opencode.call import Call, Nothing
from sandbox_agent.http.doors.opencode.errors import OpenCodeError, not_found
from sandbox_agent.http.doors.opencode.live import Live
from sandbox_agent.http.doors.opencode.others import Others, Requests
from sandbox_agent.http.doors.opencode.presence import Presence
from sandbox_agent.http.doors.opencode.sessions import Sessions
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.base import SessionRecord

A = TypeVar("A", Permission, Question)
_PATHS: dict[type, str] = {Permission: "/permission", Question: "/question"}


class Questions:
    def __init__(self, hub: Hub, sessions: Sessions, live: Live, presence: Presence, others: Others) -> None:
        self._hub = hub
        self._sessions = sessions
        self._live = live
        self._presence = presence
        self._others = others

    async def permissions(self, call: Call) -> list[dict[str, Any]]:
        return await self._listed(call, Permission)

    async def questions(self, call: Call) -> list[dict[str, Any]]:
        return await self._listed(call, Question)

    async def reply_permission(self, call: Call) -> bool:
        await self._require_here(call, Permission)
        wanted = await call.body(bodies.PermissionReply)
        return await self.reply(call.user, call.path["requestID"], wanted.reply)

    async def respond_permission(self, call: Call) -> bool:
        """The older spelling, below the session."""
        session, wanted = await self._sessions.of(call), await call.body(bodies.PermissionResponse)
        return await self.reply(call.user, call.path["permissionID"], wanted.response, session)

    async def reply(self, user: User, request_id: str, reply: Reply, session: SessionRecord | None = None) -> bool:
        for record, asked in await self._open(Permission):
            if asked.id == request_id and session in (None, record):
                await self._settle(user, record, asked.ask, asked.result(reply))
                return True
        raise _no_permission(request_id)

    async def reply_question(self, call: Call, session: SessionRecord | None = None) -> bool:
        await self._require_here(call, Question)
        wanted = await call.body(bodies.QuestionReply)
        record, asked = await self._question(call, session)
        await self._settle(call.user, record, asked.ask, asked.result(wanted.answers))
        return True

    async def reject_question(self, call: Call, session: SessionRecord | None = None) -> bool:
        await self._require_here(call, Question)
        await call.body(Nothing)
        record, asked = await self._question(call, session)
        await self._settle(call.user, record, asked.ask, asked.refusal())
        return True

    async def of(self, session: SessionRecord, kind: type[A]) -> list[A]:
        """What is open in one session."""
        return [asked for record, asked in await self._open(kind) if record.key == session.key]

    async def _listed(self, call: Call, kind: type[A]) -> Requests:
        """What is open at all nodes."""
        own: Requests = [asked.request for _, asked in await self._open(kind, call.directory)]
        others: dict[str, Requests] = await self._others.requests(call, _PATHS[kind], call.directory)
        return [*own, *(request for requests in others.values() for request in requests)]

    async def _require_here(self, call: Call, kind: type[A]) -> None:
        """To be called before the body is read, as another node has to read it then. Raises SessionElsewhere."""
        wanted = call.path["requestID"]
        if self._hub.cluster is None or any(asked.id == wanted for _, asked in await self._open(kind)):
            return
        for node, requests in (await self._others.requests(call, _PATHS[kind], None)).items():
            if any(request.get("id") == wanted for request in requests):
                raise SessionElsewhere(f"{wanted} was asked by an agent of node {node}", node=node)

    async def _question(self, call: Call, session: SessionRecord | None) -> tuple[SessionRecord, Question]:
        wanted = call.path["requestID"]
        for record, asked in await self._open(Question):
            if asked.id == wanted and session in (None, record):
                return record, asked
        raise not_found("QuestionNotFoundError", "requestID", wanted[:80], "Question request")

    async def _settle(self, user: User, record: SessionRecord, ask: Any, result: dict[str, Any]) -> None:
        with self._presence.use():
            await self._presence.answer(user, record, ask, result)
        await self._live.folds.current(record)

    async def _open(self, kind: type[A], directory: str | None = None) -> list[tuple[SessionRecord, A]]:
        """What is open here and now: a question of a process that is gone waits for nobody."""
        found: list[tuple[SessionRecord, A]] = []
        waiting = [
            (agent.key(session.id), {ask.id for ask in session.asks.values()})
            for agent in self._hub.agents
            for session in agent.sessions.values()
            if session.asks
        ]
        for key, open_asks in waiting:
            record = self._hub.sessions.held(key)
            if record is None or (directory is not None and record.cwd != directory):
                continue
            fold = await self._live.folds.current(record)
            asks = list(fold.asks.values())
            found += [(record, asked) for asked in asks if isinstance(asked, kind) and asked.ask in open_asks]
        return found


def _no_permission(request_id: str) -> OpenCodeError:
    return not_found("PermissionNotFoundError", "requestID", request_id[:80], "Permission request")
