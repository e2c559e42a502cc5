"""Prompts and messages: `/session/{id}/message`, `prompt_async`, `command`, and what is a command of the agent."""

from __future__ import annotations

import secrets
import time

from sandbox_agent.core.frames import META
from sandbox_agent.core.json_values import Object
from sandbox_agent.core.users import User
from sandbox_agent.errors import InvalidParams, NotFound, RemoteError, SandboxAgentError
from sandbox_agent.history.opencode import Messages
from sandbox_agent.history.opencode.blocks import block_of
from sandbox_agent.history.opencode.ids import Ids
from sandbox_agent.http.asgi.messages import Response, json_response
from sandbox_agent.http.doors.opencode import bodies, views
from sandbox_agent.http.doors.opencode.call import Call, Nothing
from sandbox_agent.http.doors.opencode.choices import Choices
from sandbox_agent.http.doors.opencode.errors import InvalidQuery, busy_session
from sandbox_agent.http.doors.opencode.live import Live
from sandbox_agent.http.doors.opencode.presence import Presence
from sandbox_agent.http.doors.opencode.sessions import Sessions
from sandbox_agent.hub.tasks import Tasks
from sandbox_agent.store.base import SessionRecord

_MESSAGES = 1000
"""Messages in one answer; earlier ones are asked for with `before`."""


class Prompts:
    def __init__(self, sessions: Sessions, live: Live, presence: Presence, choices: Choices, tasks: Tasks) -> None:
        self._sessions = sessions
        self._live = live
        self._presence = presence
        self._choices = choices
        self._tasks = tasks

    async def listed(self, call: Call) -> Response:
        record = await self._sessions.of(call)
        limit = call.number("limit", low=0, high=_MESSAGES)
        before = call.query("before")
        messages = Messages(_MESSAGES if limit in (None, 0) else limit, before)
        if call.user.may_prompt:
            await self._presence.join(record)
        await self._live.folds.messages(record, messages)
        if before is not None and not messages.is_past:
            raise InvalidQuery(f"query: before names no message of this session: {before[:80]!r}")
        await self._live.followers.handed_on()
        answer = json_response(messages.listed())
        earlier = messages.oldest if messages.has_earlier else None
        return answer if earlier is None else answer.adding((b"x-next-cursor", earlier.encode()))

    async def show(self, call: Call) -> Object:
        return await self.message(await self._sessions.of(call), call.path["messageID"])

    async def message(self, record: SessionRecord, message_id: str) -> Object:
        messages = Messages()
        await self._live.folds.messages(record, messages)
        found = messages.get(message_id)
        if found is None:
            raise NotFound(f"Message not found: {message_id[:80]}")
        return found

    async def prompt(self, call: Call) -> Object:
        """Returns with the assistant's message, when the turn is over."""
        record, wanted = await self._sessions.of(call), await call.body(bodies.Prompt)
        return await self._run(call.user, record, await self._prepared(call.user, record, wanted))

    async def prompt_async(self, call: Call) -> Response:
        record, wanted = await self._sessions.of(call), await call.body(bodies.Prompt)
        await self.begin(call.user, record, wanted)
        return Response(204)

    async def begin(self, user: User, record: SessionRecord, wanted: bodies.Prompt) -> None:
        """Run the prompt without anybody who waits for its answer. Raises InvalidParams."""
        self._tasks.start(self._run_unheard(user, record, await self._prepared(user, record, wanted)))

    async def command(self, call: Call) -> Object:
        """A slash command of the agent is a prompt that begins with its name."""
        record, wanted = await self._sessions.of(call), await call.body(bodies.CommandCall)
        provider, _, model = (wanted.model or "").partition("/")
        chosen = bodies.ModelWish(provider_id=provider, model_id=model) if provider else None
        text: Object = {"type": "text", "text": f"/{wanted.command} {wanted.arguments}".rstrip()}
        parts = [text, *wanted.parts]
        prompt = bodies.Prompt(parts=parts, message_id=wanted.message_id, model=chosen, agent=wanted.agent)
        return await self._run(call.user, record, await self._prepared(call.user, record, prompt))

    async def summarize(self, call: Call) -> bool:
        record, _ = await self._sessions.of(call), await call.body(Nothing)
        await self._require_own(record, "compact", "summarize a session")
        return await self._run_own(call.user, record, "compact")

    async def init(self, call: Call) -> bool:
        record, _ = await self._sessions.of(call), await call.body(Nothing)
        await self._require_own(record, "init", "write AGENTS.md by itself")
        return await self._run_own(call.user, record, "init")

    async def revert(self, call: Call) -> Object:
        """Undo the last turn, where the agent has a command for it. What was said stays: it is history."""
        record, wanted = await self._sessions.of(call), await call.body(bodies.Revert)
        await self._require_own(record, "undo", "undo a turn")
        if self._live.folds.is_running(record):
            raise busy_session(views.id_of(record))
        messages = Messages(_MESSAGES)
        await self._live.folds.messages(record, messages)
        newest = messages.newest("user")
        if newest is None or newest["info"]["id"] != wanted.message_id or wanted.part_id is not None:
            raise InvalidParams("agents can only undo their last turn: name the newest message of the user alone")
        await self._run_own(call.user, record, "undo")
        return self._sessions.describe(record)

    async def _require_own(self, record: SessionRecord, command: str, what: str) -> None:
        """Raises InvalidParams where the agent has no command of this name."""
        fold = await self._live.folds.current(record)
        if all(offered["name"] != command for offered in fold.commands):
            raise InvalidParams(f"agent {record.agent!r} has no command to {what}")

    async def _run_own(self, user: User, record: SessionRecord, command: str) -> bool:
        """Run a command that the agent has by itself."""
        prompt = bodies.Prompt(parts=[{"type": "text", "text": f"/{command}"}])
        await self._run(user, record, await self._prepared(user, record, prompt))
        return True

    async def _prepared(self, user: User, record: SessionRecord, wanted: bodies.Prompt) -> Object:
        """The prompt in ACP's words, with the session's model and mode set as wished. Raises InvalidParams."""
        if wanted.no_reply:
            raise InvalidParams("noReply: agents answer every message; send it with the next prompt instead")
        system = [{"type": "text", "text": wanted.system, "synthetic": True}] if wanted.system else []
        blocks = [block for part in [*system, *wanted.parts] if (block := block_of(part)) is not None]
        if not blocks:
            raise InvalidParams("parts: the prompt is empty")
        await self.choose(user, record, wanted.model, wanted.agent)
        message_id = wanted.message_id or new_message_id()
        ours: Object = {"messageID": message_id}
        if wanted.model is not None:
            ours["model"] = {"modelID": wanted.model.model}
        if wanted.agent is not None:
            ours["agent"] = wanted.agent
        meta = {META: {"agent": record.agent, "opencode": ours}}
        return {"sessionId": record.session_id, "prompt": blocks, "_meta": meta}

    async def choose(self, user: User, record: SessionRecord, model: bodies.ModelWish | None, mode: str | None) -> None:
        """Set the session's model and mode, where they are wished for. Raises InvalidParams."""
        with self._presence.use():
            await self._choices.apply(user, record, model, mode)

    async def _run(self, user: User, record: SessionRecord, params: Object) -> Object:
        """Raises why the prompt never ran. That a turn failed stands in the message that is its answer."""
        message_id = params["_meta"][META]["opencode"]["messageID"]
        messages = Messages()
        with self._presence.use():
            await self._live.folds.current(record)
            with self._live.folds.collecting(record, messages):
                failed: SandboxAgentError | None = None
                try:
                    await self._presence.ask(user, record.agent, "session/prompt", params, timeout=None)
                except RemoteError as error:
                    failed = error
                await self._live.folds.current(record)
        answer = messages.answer_to(message_id)
        if answer is None and failed is None:
            messages = Messages(_MESSAGES)
            await self._live.folds.messages(record, messages)
            answer = messages.answer_to(message_id) or messages.newest("assistant")
        if answer is None:
            raise failed or NotFound("the turn left no message")
        await self._live.followers.handed_on()
        return answer

    async def _run_unheard(self, user: User, record: SessionRecord, params: Object) -> None:
        """Nobody waits for the answer: those who follow are told what went wrong."""
        try:
            await self._run(user, record, params)
        except SandboxAgentError as error:
            problem: Object = {"name": "UnknownError", "data": {"message": error.detail}}
            self._live.tell(record, "session.error", error=problem)
            self._live.tell(record, "session.status", status={"type": "idle"})
            self._live.tell(record, "session.idle")


def new_message_id() -> str:
    """For a prompt of a client that gives it none: with it we find the answer."""
    return Ids(secrets.token_hex(8)).next("msg", time.time())
