"""One connection to one agent: ACP's connection over our transport, and the sessions that are attached to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import httpx
from acp import PROTOCOL_VERSION, RequestError, schema
from acp.connection import Connection

from sandbox_agent.client.answering import Answering
from sandbox_agent.client.asking import PermissionHandler, QuestionHandler
from sandbox_agent.client.inbox import Inbox
from sandbox_agent.client.rpc.link import Link, Message
from sandbox_agent.client.rpc.problems import from_rpc
from sandbox_agent.client.rpc.transport import RpcTransport
from sandbox_agent.client.updates import GAP
from sandbox_agent.core.frames import META
from sandbox_agent.core.methods import CANCEL_REQUEST
from sandbox_agent.errors import ConnectionLost
from sandbox_agent.version import __version__

_log = logging.getLogger(__name__)
_ENDED = "_sandboxagent/session/ended"
_LAST_WORDS = 5.0
"""Seconds that cancels under way may take when the connection is closed."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """What the program does when an agent asks. None: see `Answering`."""

    permission: PermissionHandler | None = None
    question: QuestionHandler | None = None


class AskParams(dict[str, Any]):
    """`params` of a request from the agent, with the id that it must be answered under."""

    def __init__(self, params: Message, request_id: Any) -> None:
        super().__init__(params)
        self.request_id = request_id


class AgentConnection:
    def __init__(self, http: httpx.AsyncClient, agent: str, handlers: Handlers, *, retry_for: float) -> None:
        self.agent = agent
        self.inboxes: dict[str, Inbox] = {}
        self.initialized: schema.InitializeResponse | None = None
        self._link = Link(http, retry_for=retry_for)
        self._link.on_reopened = self._attach_again
        self._transport = RpcTransport(self._link, retry_for=retry_for, room=self._room, sift=_with_request_id)
        self._answering = Answering(handlers.permission, handlers.question, self.inboxes)
        self._asked: dict[Any, asyncio.Task[Any]] = {}
        self._connection = Connection(self._take, self._transport)
        self._background: set[asyncio.Task[None]] = set()
        self.closing = asyncio.Event()
        """Set when the connection is about to close: background work says what it must and ends."""
        self._notices: dict[str, Callable[[Message], None]] = {
            "session/update": self._take_update,
            _ENDED: self._take_end,
            GAP: self._take_gap,
            CANCEL_REQUEST: self._take_cancel,
        }

    async def open(self) -> None:
        """Raises ConnectionLost, Unauthorized, UnknownAgent, AgentStartFailed."""
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {},
            "clientInfo": {"name": "sandbox-agent-python", "version": __version__},
            "_meta": {META: {"agent": self.agent}},
        }
        self.initialized = schema.InitializeResponse.model_validate(await self.call("initialize", params))

    async def call(self, method: str, params: Message) -> Message:
        """The result. Raises what went wrong as one of our errors."""
        try:
            result = await self._connection.send_request(method, params)
        except RequestError as error:
            raise from_rpc(error.code, str(error), error.data) from None
        except ConnectionError:
            raise self._transport.failure or ConnectionLost("the connection has been closed") from None
        return result if isinstance(result, dict) else {}

    async def notify(self, method: str, params: Message) -> None:
        try:
            await self._connection.send_notification(method, params)
        except ConnectionError:
            raise self._transport.failure or ConnectionLost("the connection has been closed") from None

    def inbox(self, session_id: str, cwd: str) -> Inbox:
        """Where the messages of this session go from now on."""
        found = self.inboxes.get(session_id)
        if found is None:
            found = self.inboxes[session_id] = Inbox(session_id, cwd, self)
        return found

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for, but that `close` gives a little time to end."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)

    async def close(self) -> None:
        self.closing.set()
        if self._background:
            await asyncio.wait(set(self._background), timeout=_LAST_WORDS)
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        for inbox in self.inboxes.values():
            inbox.close()
        await self._connection.close()

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("background work failed agent=%s error=%s", self.agent, error)

    async def _room(self) -> None:
        for inbox in list(self.inboxes.values()):
            await inbox.room()

    async def _take(self, method: str, params: Any, is_notification: bool) -> Any:
        params = params if isinstance(params, dict) else {}
        if is_notification:
            if (take := self._notices.get(method)) is not None:
                take(params)
            elif (inbox := self.inboxes.get(str(params.get("sessionId")))) is not None:
                inbox.notice(_notification(method, params))
            return None
        request_id = params.request_id if isinstance(params, AskParams) else None
        task = asyncio.ensure_future(self._answering.answer(method, params))
        self._asked[request_id] = task
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            if request_id in self._asked:
                raise
            raise RequestError(-32800, "answered elsewhere") from None
        finally:
            self._asked.pop(request_id, None)

    def _take_update(self, params: Message) -> None:
        inbox = self.inboxes.get(str(params.get("sessionId")))
        if inbox is not None:
            inbox.update(_notification("session/update", params))

    def _take_end(self, params: Message) -> None:
        inbox = self.inboxes.get(str(params.get("sessionId")))
        if inbox is not None:
            inbox.end(params)

    def _take_gap(self, params: Message) -> None:
        for inbox in list(self.inboxes.values()):
            inbox.lost(_notification(GAP, params))

    def _take_cancel(self, params: Message) -> None:
        task = self._asked.pop(params.get("requestId"), None)
        if task is not None:
            task.cancel()

    async def _attach_again(self) -> None:
        """The server gave us a new connection: attach what the old one was attached to."""
        for task in list(self._asked.values()):
            task.cancel()
        self._asked.clear()
        for inbox in list(self.inboxes.values()):
            inbox.lost(None)
            params = {"sessionId": inbox.session_id, "cwd": inbox.cwd, "mcpServers": []}
            answer = await self._link.call("session/resume", params)
            if (error := answer.get("error")) is not None:
                failure = from_rpc(error.get("code", 0), str(error.get("message", "")), error.get("data"))
                _log.warning("session not taken up again session=%s error=%s", inbox.session_id, failure)
        self._transport.renew_requests()


def _notification(method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _with_request_id(message: Message) -> Message:
    if "method" in message and "id" in message and isinstance(message.get("params"), dict):
        message["params"] = AskParams(message["params"], message["id"])
    return message
