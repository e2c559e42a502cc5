"""`/session`: made, listed, described, renamed, forked and deleted. All of it on the sessions that everybody sees."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId, SessionName
from sandbox_agent.core.json_values import as_text
from sandbox_agent.errors import InvalidParams, UnknownSession
from sandbox_agent.history.opencode import Messages
from sandbox_agent.history.opencode.fold import DEFAULT_MODE, DEFAULT_MODEL
from sandbox_agent.history.opencode.ids import read_session_id
from sandbox_agent.http.doors.opencode import bodies, views
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.choices import Choices
from sandbox_agent.http.doors.opencode.errors import missing_session
from sandbox_agent.http.doors.opencode.live import Live
from sandbox_agent.http.doors.opencode.others import Others
from sandbox_agent.http.doors.opencode.presence import Presence
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.base import SessionFilter, SessionRecord

_PAGE = 200
_LISTED = 1000
_DEFAULT_LIMIT = 100
_TITLE_CHARS = 2000


class Sessions:
    def __init__(
        self,
        hub: Hub,
        live: Live,
        presence: Presence,
        choices: Choices,
        others: Others,
        directory: str,
        *,
        timeout: float,
    ) -> None:
        self._hub = hub
        self._live = live
        self._presence = presence
        self._choices = choices
        self._others = others
        self._directory = directory
        self._timeout = timeout

    async def named(self, given: str) -> SessionRecord:
        """The session with this id. Raises NotFound."""
        key = read_session_id(given)
        if key is None:
            raise missing_session(given[:200])
        try:
            record = await self._hub.sessions.resolve(SessionName(key.session, key.agent))
        except UnknownSession:
            raise missing_session(given[:200]) from None
        if record.session_id != key.session or views.id_of(record) != given:
            raise missing_session(given[:200])
        return record

    async def of(self, call: Call) -> SessionRecord:
        return await self.named(call.path["sessionID"])

    def describe(self, record: SessionRecord) -> dict[str, Any]:
        return views.describe(record, self._directory)

    async def listed(self, call: Call) -> list[dict[str, Any]]:
        """Newest first. Without a directory, or for the whole project, the sessions of all directories."""
        directory = None if call.query("scope") == "project" else call.directory
        limit = call.number("limit", low=0, high=_LISTED)
        found = await self._matching(call, directory, _DEFAULT_LIMIT if limit is None else limit)
        return [self.describe(record) for record in found]

    async def all_listed(self, call: Call) -> list[dict[str, Any]]:
        """`/experimental/session`: the same with the project of each."""
        project = {"id": views.PROJECT, "worktree": self._directory}
        return [{**session, "project": project} for session in await self.listed(call)]

    async def _matching(self, call: Call, directory: str | None, limit: int) -> list[SessionRecord]:
        search = (call.query("search") or "").lower()
        start = call.number("start", low=0, high=1 << 53)
        roots = call.query("roots") == "true"
        found: list[SessionRecord] = []
        cursor: str | None = None
        for _ in range(_LISTED // _PAGE):
            page = await self._hub.sessions.page(SessionFilter(cwd=directory), cursor=cursor, limit=_PAGE)
            for record in page.sessions:
                is_old = start is not None and record.updated * 1000 < start
                is_child = roots and views.PARENT in record.metadata
                if len(found) < limit and not is_old and not is_child and search in views.title_of(record).lower():
                    found.append(record)
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                break
        return found

    async def page(self, call: Call, cursor: str | None, limit: int) -> tuple[list[SessionRecord], str | None]:
        """So many, newest first, and where to go on; fewer only at the end. Raises InvalidParams."""
        search, matching = (call.query("search") or "").lower(), SessionFilter(cwd=call.directory)
        found: list[SessionRecord] = []
        for _ in range(_LISTED):
            page = await self._hub.sessions.page(matching, cursor=cursor, limit=limit - len(found))
            found += [record for record in page.sessions if search in views.title_of(record).lower()]
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                break
        return found, cursor

    async def create(self, call: Call) -> dict[str, Any]:
        return await self.make(call, await call.body(bodies.NewSession))

    async def make(self, call: Call, wanted: bodies.NewSession, directory: str | None = None) -> dict[str, Any]:
        agent = AgentId(wanted.model.provider_id) if wanted.model is not None else await self._choices.default(call)
        ours: dict[str, Any] = {"metadata": dict(wanted.metadata)}
        if wanted.title:
            ours["title"] = wanted.title[:_TITLE_CHARS]
        if wanted.parent_id is not None:
            ours["metadata"][views.PARENT] = views.id_of(await self.named(wanted.parent_id))
        if wanted.model is not None and wanted.model.model not in ("", DEFAULT_MODEL):
            ours["model"] = wanted.model.model
        if wanted.agent and wanted.agent != DEFAULT_MODE and await self._choices.has_mode(agent, wanted.agent):
            ours["agentMode"] = wanted.agent
        params = {"cwd": directory or call.directory or self._directory, "mcpServers": [], "_meta": {META: ours}}
        with self._presence.use():
            made = await self._presence.ask(call.user, agent, "session/new", params, timeout=self._timeout)
        record = await self._hub.sessions.resolve(SessionName(as_text(made.get("sessionId")), agent))
        return self.describe(record)

    async def show(self, call: Call) -> dict[str, Any]:
        record = await self.of(call)
        fold = await self._live.folds.current(record)
        return {**self.describe(record), "summary": fold.changes.summary()}

    async def change(self, call: Call) -> dict[str, Any]:
        record, wanted = await self.of(call), await call.body(bodies.SessionChange)
        if wanted.title is not None:
            record.title = wanted.title[:_TITLE_CHARS]
            record.metadata = {**record.metadata, "title": record.title}
        if wanted.metadata is not None:
            record.metadata = {**record.metadata, **wanted.metadata}
        if wanted.time is not None:
            archived = wanted.time.archived
            kept = {name: value for name, value in record.metadata.items() if not name.startswith(views.ARCHIVED)}
            put_away = {views.ARCHIVED: True, views.ARCHIVED_AT: archived}
            record.metadata = kept if archived is None else {**kept, **put_away}
        self._hub.sessions.describe_anew(record)
        return self.describe(record)

    async def delete(self, call: Call) -> bool:
        await self._hub.sessions.end.delete(await self.of(call))
        return True

    async def children(self, call: Call) -> list[dict[str, Any]]:
        parent = views.id_of(await self.of(call))
        page = await self._hub.sessions.page(SessionFilter(), cursor=None, limit=_LISTED)
        return [self.describe(record) for record in page.sessions if record.metadata.get(views.PARENT) == parent]

    async def status(self, call: Call) -> dict[str, Any]:
        """Those that work; all others are idle."""
        busy = await self._others.busy(call)
        for agent in self._hub.agents:
            for session in agent.sessions.values():
                record = self._hub.sessions.held(agent.key(session.id))
                if record is not None and session.running is not None:
                    busy[views.id_of(record)] = {"type": "busy"}
        return busy

    async def todo(self, call: Call) -> list[dict[str, Any]]:
        return (await self._live.folds.current(await self.of(call))).todos

    async def diff(self, call: Call) -> list[dict[str, Any]]:
        """What the session has changed, or the turn of one of its messages."""
        record, message_id = await self.of(call), call.query("messageID")
        if message_id is None:
            return (await self._live.folds.current(record)).changes.listed()
        messages = Messages()
        await self._live.folds.messages(record, messages)
        answer = messages.answer_to(message_id) or messages.get(message_id)
        return [] if answer is None else views.edits_in(answer["parts"])

    async def fork(self, call: Call) -> dict[str, Any]:
        """The whole conversation, or none of it: ACP has no fork from the middle. Raises RemoteError where the agent
        cannot."""
        record, wanted = await self.of(call), await call.body(bodies.Fork)
        if wanted.message_id is not None:
            return await self._fork_before(call, record, wanted.message_id)
        params = {"sessionId": record.session_id, "_meta": {META: {"agent": record.agent}}}
        with self._presence.use():
            made = await self._presence.ask(call.user, record.agent, "session/fork", params, timeout=self._timeout)
        forked = await self._hub.sessions.resolve(SessionName(as_text(made.get("sessionId")), record.agent))
        if forked.title is None:
            forked.title = _fork_title(record)
            self._hub.sessions.describe_anew(forked)
        return self.describe(forked)

    async def _fork_before(self, call: Call, record: SessionRecord, message_id: str) -> dict[str, Any]:
        """As in OpenCode, the message and all that follow are left out: of the first one, that is a new session."""
        messages = Messages()
        await self._live.folds.messages(record, messages)
        if messages.get(message_id) is None:
            raise InvalidParams(f"messageID: no such message in this session: {message_id[:80]!r}")
        if messages.oldest != message_id:
            raise InvalidParams("agents can only fork a whole conversation: fork without messageID")
        model = bodies.ModelWish(provider_id=record.agent, model_id=record.model)
        new = bodies.NewSession(title=_fork_title(record), model=model, agent=record.mode)
        return await self.make(call, new, record.cwd)

    async def abort(self, call: Call) -> bool:
        record = await self.of(call)
        agent = self._hub.agents.found(record.key)
        if agent is not None and record.session_id in agent.sessions:
            agent.cancel(record.session_id, user=call.user.name)
        return True

    async def as_it_is(self, call: Call) -> dict[str, Any]:
        """`unrevert`: nothing was reverted."""
        return self.describe(await self.of(call))


def _fork_title(record: SessionRecord) -> str:
    return f"{views.title_of(record)} (fork)"[:_TITLE_CHARS]
