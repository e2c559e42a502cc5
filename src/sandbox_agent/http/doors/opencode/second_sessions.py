"""`/api/session`: the second API's sessions, as far as OpenCode's web UI and SDK use them. The same as `/session`."""

from __future__ import annotations

import time
from typing import Any

from sandbox_agent.errors import InvalidParams, NotFound
from sandbox_agent.history.opencode import Messages
from sandbox_agent.history.opencode.asks import Permission, Question
from sandbox_agent.history.opencode.second import second_message, second_permission, second_session
from sandbox_agent.http.asgi.messages import Response
from sandbox_agent.http.doors.opencode import bodies, views
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.errors import InvalidQuery, OpenCodeError, not_found
from sandbox_agent.http.doors.opencode.live import Live
from sandbox_agent.http.doors.opencode.prompts import Prompts, new_message_id
from sandbox_agent.http.doors.opencode.questions import Questions
from sandbox_agent.http.doors.opencode.sessions import Sessions
from sandbox_agent.store.base import SessionRecord

_DONE = Response(204)
_PAGE = 5000
"""Sessions of one answer: the web UI asks for so many at once, and takes fewer for the end."""
_MESSAGES = 200
_DEFAULT = 50


class SecondSessions:
    def __init__(self, sessions: Sessions, prompts: Prompts, questions: Questions, live: Live) -> None:
        self._sessions = sessions
        self._prompts = prompts
        self._questions = questions
        self._live = live

    async def listed(self, call: Call) -> dict[str, Any]:
        """Newest first, page by page."""
        order = call.query("order") or "desc"
        if order != "desc":
            raise InvalidQuery(f"query: order must be 'desc', not {order[:20]!r}")
        limit = call.number("limit", low=1, high=_PAGE) or _DEFAULT
        found, cursor = await self._sessions.page(call, call.query("cursor") or None, limit)
        data = [second_session(self._sessions.describe(record)) for record in found]
        return {"data": data, "cursor": {} if cursor is None else {"next": cursor}}

    async def active(self, call: Call) -> dict[str, Any]:
        return {"data": {session: {"type": "running"} for session in await self._sessions.status(call)}}

    async def create(self, call: Call) -> dict[str, Any]:
        wanted = await call.body(bodies.SecondNewSession)
        if wanted.id is not None:
            raise InvalidParams("id: sessions are named by the server")
        session = bodies.NewSession(agent=wanted.agent, model=wanted.model)
        directory = wanted.location.directory if wanted.location is not None else None
        return {"data": second_session(await self._sessions.make(call, session, directory))}

    async def show(self, call: Call) -> dict[str, Any]:
        return {"data": second_session(self._sessions.describe(await self._of(call)))}

    async def switch_agent(self, call: Call) -> Response:
        record, wanted = await self._of(call), await call.body(bodies.SecondAgent)
        await self._prompts.choose(call.user, record, None, wanted.agent)
        return _DONE

    async def switch_model(self, call: Call) -> Response:
        record, wanted = await self._of(call), await call.body(bodies.SecondModel)
        await self._prompts.choose(call.user, record, wanted.model, None)
        return _DONE

    async def prompt(self, call: Call) -> dict[str, Any]:
        """Answers when the prompt is taken; what comes of it is in the messages."""
        record, wanted = await self._of(call), await call.body(bodies.SecondPrompt)
        message_id = wanted.id or new_message_id()
        files = [file.attachment() for file in wanted.prompt.files]
        named = [{"type": "file", "url": file["uri"], "mime": file["mime"], "filename": file["name"]} for file in files]
        parts: list[dict[str, Any]] = [{"type": "text", "text": wanted.prompt.text}, *named]
        await self._prompts.begin(call.user, record, bodies.Prompt(parts=parts, message_id=message_id))
        prompt: dict[str, Any] = {"text": wanted.prompt.text, **({"files": files} if files else {})}
        admitted = {
            "admittedSeq": self._live.folds.length(record),
            "id": message_id,
            "sessionID": views.id_of(record),
            "prompt": prompt,
            "delivery": "queue",
            "timeCreated": int(time.time() * 1000),
        }
        return {"data": admitted}

    async def interrupt(self, call: Call) -> Response:
        await self._of(call)
        await self._sessions.abort(call)
        return _DONE

    async def messages(self, call: Call) -> dict[str, Any]:
        """Newest first, unless asked otherwise; each page continues towards the older ones."""
        record, order = await self._of(call), call.query("order") or "desc"
        if order not in ("asc", "desc"):
            raise InvalidQuery(f"query: order must be 'asc' or 'desc', not {order[:20]!r}")
        limit = call.number("limit", low=1, high=_MESSAGES) or _DEFAULT
        before = call.query("cursor") or None
        messages = Messages(limit, before)
        await self._live.folds.messages(record, messages)
        if not messages.is_past:
            raise OpenCodeError(400, {"_tag": "InvalidCursorError", "message": "Invalid cursor"})
        found = [second_message(message) for message in messages.listed()]
        cursor = {"next": messages.oldest} if messages.has_earlier else {}
        return {"data": found if order == "asc" else found[::-1], "cursor": cursor}

    async def message(self, call: Call) -> dict[str, Any]:
        record, wanted = await self._of(call), call.path["messageID"]
        try:
            return {"data": second_message(await self._prompts.message(record, wanted))}
        except NotFound:
            missing = {"_tag": "MessageNotFoundError", "sessionID": views.id_of(record), "messageID": wanted[:80]}
            raise OpenCodeError(404, {**missing, "message": f"Message not found: {wanted[:80]}"}) from None

    async def permissions(self, call: Call) -> list[dict[str, Any]]:
        return [second_permission(asked) for asked in await self._questions.permissions(call)]

    async def permissions_of(self, call: Call) -> dict[str, Any]:
        record = await self._of(call)
        return {"data": [second_permission(asked.request) for asked in await self._questions.of(record, Permission)]}

    async def permission(self, call: Call) -> dict[str, Any]:
        record, wanted = await self._of(call), call.path["requestID"]
        for asked in await self._questions.of(record, Permission):
            if asked.id == wanted:
                return {"data": second_permission(asked.request)}
        raise not_found("PermissionNotFoundError", "requestID", wanted[:80], "Permission request")

    async def reply_permission(self, call: Call) -> Response:
        record, wanted = await self._of(call), await call.body(bodies.PermissionReply)
        await self._questions.reply(call.user, call.path["requestID"], wanted.reply, record)
        return _DONE

    async def questions_of(self, call: Call) -> dict[str, Any]:
        record = await self._of(call)
        return {"data": [asked.request for asked in await self._questions.of(record, Question)]}

    async def reply_question(self, call: Call) -> Response:
        await self._questions.reply_question(call, await self._of(call))
        return _DONE

    async def reject_question(self, call: Call) -> Response:
        await self._questions.reject_question(call, await self._of(call))
        return _DONE

    async def _of(self, call: Call) -> SessionRecord:
        try:
            return await self._sessions.of(call)
        except NotFound:
            given = call.path["sessionID"]
            raise not_found("SessionNotFoundError", "sessionID", given[:200], "Session") from None
