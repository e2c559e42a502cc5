"""A conversation with an agent: how one is made or attached to, and what can be done with it.

It outlives the program, the connection and the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from sandbox_agent.client.asking import PermissionHandler, QuestionHandler
from sandbox_agent.client.choices import not_applied
from sandbox_agent.client.connection import AgentConnection
from sandbox_agent.client.inbox import EVENTS, Inbox
from sandbox_agent.client.turn import Turn, prompt_blocks
from sandbox_agent.client.updates import Envelope, read_update
from sandbox_agent.core.frames import META
from sandbox_agent.errors import InvalidParams, NotFound

if TYPE_CHECKING:
    from sandbox_agent.client.updates import Update


class SessionOptions(TypedDict, total=False):
    """What may be wished for a new session. A model or mode that the agent does not have is an error."""

    model: str
    mode: str
    permission_mode: str | Mapping[str, str]
    """`ask`, `allow`, `reject`, a verdict by kind of tool such as `{"edit": "allow", "default": "ask"}`, or a mode."""
    title: str
    session_id: str
    """An alias, by which the session can be found as well."""
    skills: Any
    metadata: Mapping[str, Any]
    agent_version: str


_WISHES = {
    "session_id": "requestedSessionId",
    "title": "title",
    "model": "model",
    "mode": "agentMode",
    "permission_mode": "permissionMode",
    "skills": "skills",
    "metadata": "metadata",
    "agent_version": "agentVersionRequested",
}


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One envelope of a session's history. `sequence` counts from 1 without holes."""

    sequence: int
    time: str
    source: str
    envelope: Envelope


class Session:
    """Made by `SandboxAgent.create_session`, `load_session`, `resume_session`, or `fork`."""

    def __init__(self, connection: AgentConnection, inbox: Inbox, setup: dict[str, Any]) -> None:
        self._connection = connection
        self._inbox = inbox
        self.setup = setup
        """What the agent said of the session: modes, models, config options."""
        self.replayed: list[Envelope] = []
        """As `replay`, but as the raw JSON-RPC messages."""

    @cached_property
    def replay(self) -> list[Update]:
        """After a load: the conversation so far."""
        return [read_update(envelope) for envelope in self.replayed]

    @property
    def id(self) -> str:
        return self._inbox.session_id

    @property
    def agent(self) -> str:
        return self._connection.agent

    @property
    def cwd(self) -> str:
        return self._inbox.cwd

    @property
    def alias(self) -> str | None:
        ours = (self.setup.get("_meta") or {}).get(META) or {}
        alias: str | None = ours.get("alias")
        return alias

    @property
    def is_ended(self) -> bool:
        return self._inbox.ended is not None

    def on_permission(self, handler: PermissionHandler | None) -> None:
        """Let this session's permission requests be answered by `handler`, those that are open too."""
        self._inbox.on_permission = handler
        self._inbox.handler_set.set()

    def on_question(self, handler: QuestionHandler | None) -> None:
        self._inbox.on_question = handler
        self._inbox.handler_set.set()

    def prompt(self, content: str | list[Any]) -> Turn:
        """A turn, ready to be iterated over. Prompts of one session run one after the other."""
        return Turn(self._connection, self._inbox, prompt_blocks(content))

    async def cancel(self) -> None:
        """Ask the agent to end the turn that runs; its iteration goes on to the stop reason `cancelled`."""
        await self._connection.notify("session/cancel", {"sessionId": self.id})

    async def updates(self) -> AsyncIterator[Update]:
        """Every update from now on, whoever prompts, until the session or the connection ends."""
        async for envelope in self.envelopes():
            if envelope["method"] == "session/update" or envelope["method"].endswith("/gap"):
                yield read_update(envelope)

    async def envelopes(self) -> AsyncIterator[Envelope]:
        """As `updates`, but every notification of the session as its raw JSON-RPC message."""
        mailbox = self._inbox.watch()
        try:
            while (envelope := await mailbox.take()) is not None:
                yield envelope
        finally:
            self._inbox.unwatch(mailbox)

    async def set_model(self, model_id: str) -> None:
        await self._call("session/set_model", modelId=model_id)

    async def set_mode(self, mode_id: str) -> None:
        await self._call("session/set_mode", modeId=mode_id)

    async def set_config_option(self, config_id: str, value: str | bool) -> list[dict[str, Any]]:
        """The options as they are now."""
        extra = {"type": "boolean"} if isinstance(value, bool) else {}
        answer = await self._call("session/set_config_option", configId=config_id, value=value, **extra)
        options: list[dict[str, Any]] = answer.get("configOptions") or []
        return options

    async def list_models(self) -> list[dict[str, Any]]:
        models: list[dict[str, Any]] = (await self._call("_sandboxagent/session/list_models"))["availableModels"]
        return models

    async def set_metadata(self, **metadata: Any) -> dict[str, Any]:
        """Merge into the session's metadata; None removes a name. `title` is the session's title."""
        answer = await self._call("_sandboxagent/session/set_metadata", metadata=metadata)
        kept: dict[str, Any] = answer["metadata"]
        return kept

    async def describe(self) -> dict[str, Any]:
        """What the server knows of it: title, cwd, times, how it ended."""
        return await self._call("_sandboxagent/session/get")

    async def fork(self, *, cwd: str | None = None) -> Session:
        """A new session that begins with this one's conversation. Raises AgentUnsupported."""
        answer = await self._call("session/fork", cwd=cwd or self.cwd)
        return Session(self._connection, self._connection.inbox(answer["sessionId"], cwd or self.cwd), answer)

    async def terminate(self) -> None:
        """End it for everybody. Its history stays. Terminating twice is no error."""
        await self._call("_sandboxagent/session/terminate")
        self._inbox.ended = self._inbox.ended or {"message": "terminated by a client"}

    async def delete(self) -> None:
        """End it and forget its history."""
        await self._call("session/delete")
        self._connection.inboxes.pop(self.id, None)

    async def detach(self) -> None:
        """Hear no more of it on this connection; it goes on."""
        await self._call("_sandboxagent/session/detach")
        self._inbox.close()
        self._connection.inboxes.pop(self.id, None)

    async def events(self, *, after: int = 0, limit: int | None = None) -> AsyncIterator[HistoryEvent]:
        """The history after sequence `after`: all of it, or `limit` events."""
        async for event in self._pages(after, limit, "raw"):
            yield HistoryEvent(event["sequence"], event["time"], event["source"], event["envelope"])

    async def legacy_events(self, *, after: int = 0, limit: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """The history as the universal events of the earlier API."""
        async for event in self._pages(after, limit, "legacy"):
            yield event

    async def _pages(
        self, after: int, limit: int | None, form: Literal["raw", "legacy"]
    ) -> AsyncIterator[dict[str, Any]]:
        has_more, left = True, limit
        while has_more and (left is None or left > 0):
            extra = {"format": form} if form == "legacy" else {}
            page = await self._call(EVENTS, after=after, limit=min(left or 1000, 1000), **extra)
            for event in page["events"]:
                yield event
            if not page["events"]:
                return
            after = page["events"][-1]["sequence"]
            left = None if left is None else left - len(page["events"])
            has_more = bool(page.get("hasMore"))

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return await self._connection.call(method, {"sessionId": self.id, **params})

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self.agent}>"


async def create(
    connection: AgentConnection, cwd: str, mcp_servers: list[dict[str, Any]], wishes: Mapping[str, Any]
) -> Session:
    """Raises InvalidParams for a model or mode that the agent does not have; the session is ended then."""
    unknown = sorted(wishes.keys() - _WISHES.keys())
    if unknown:
        raise InvalidParams(f"create_session does not know {', '.join(unknown)}; it knows {', '.join(_WISHES)}")
    params: dict[str, Any] = {"cwd": cwd, "mcpServers": mcp_servers}
    if wishes:
        params["_meta"] = {META: {_WISHES[name]: value for name, value in wishes.items()}}
    answer = await connection.call("session/new", params)
    session = Session(connection, connection.inbox(answer["sessionId"], cwd), answer)
    refused = not_applied(answer, session.agent, wishes)
    if refused is not None:
        await session.terminate()
        raise refused
    return session


async def load(connection: AgentConnection, session_id: str, cwd: str) -> Session:
    session_id, cwd = await _named(connection, session_id, cwd)
    inbox = connection.inbox(session_id, cwd)
    inbox.replay = []
    try:
        answer = await connection.call("session/load", {"sessionId": session_id, "cwd": cwd, "mcpServers": []})
        replayed = inbox.replay
    except BaseException:
        connection.inboxes.pop(session_id, None)
        raise
    finally:
        inbox.replay = None
    session = Session(connection, inbox, answer)
    session.replayed = replayed
    return session


async def resume(connection: AgentConnection, session_id: str, cwd: str) -> Session:
    session_id, cwd = await _named(connection, session_id, cwd)
    is_new = session_id not in connection.inboxes
    inbox = connection.inbox(session_id, cwd)
    try:
        answer = await connection.call("session/resume", {"sessionId": session_id, "cwd": cwd, "mcpServers": []})
    except BaseException:
        if is_new:
            connection.inboxes.pop(session_id, None)
        raise
    return Session(connection, inbox, answer)


async def refer(connection: AgentConnection, session_id: str) -> Session:
    """A session that is not attached: no updates come."""
    known = await connection.call("_sandboxagent/session/get", {"sessionId": session_id})
    return Session(connection, Inbox(known["sessionId"], known.get("cwd") or "/", connection), known)


async def _named(connection: AgentConnection, name: str, cwd: str) -> tuple[str, str]:
    """The id that the session's updates carry, and its cwd; `name` may be an alias, or known to the agent only."""
    try:
        known = await connection.call("_sandboxagent/session/get", {"sessionId": name})
    except NotFound:
        return name, cwd
    return str(known["sessionId"]), str(known.get("cwd") or cwd)
