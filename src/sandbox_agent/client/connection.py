"""One connection to one agent: ACP's connection over our transport, and the sessions that are attached to it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import msgspec
from acp import PROTOCOL_VERSION, RequestError, schema
from acp.connection import Connection

from sandbox_agent.client.asking import Answering, PermissionHandler, QuestionHandler
from sandbox_agent.client.inbox import Inbox
from sandbox_agent.client.rpc.problems import from_rpc
from sandbox_agent.client.rpc.transport import RpcTransport
from sandbox_agent.client.updates import Envelope
from sandbox_agent.core.frames import META
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import CANCEL_REQUEST, STREAM_GAP
from sandbox_agent.errors import ConnectionLost, SandboxAgentError
from sandbox_agent.version import __version__

_log = logging.getLogger(__name__)
_LAST_WORDS = 5.0
"""Seconds that cancels under way may take when the connection is closed."""
_FEED = "_sandboxagent/feed/follow"
_OF_SESSION: dict[str, Callable[[Inbox, Envelope], None]] = {
    "session/update": Inbox.update,
    "_sandboxagent/session/ended": Inbox.end,
    "_sandboxagent/session/turn_queued": Inbox.turn_queued,
    "_sandboxagent/session/turn_started": Inbox.turn_started,
    "_sandboxagent/session/turn_ended": Inbox.turn_ended,
}
"""Notifications that name a session, and what they are to it; others are only shown to whoever watches."""

Message = dict[str, Any]


class AgentConnection:
    def __init__(
        self,
        http: httpx.AsyncClient,
        agent: str,
        *,
        on_permission: PermissionHandler | None,
        on_question: QuestionHandler | None,
        retry_for: float,
    ) -> None:
        self.agent = agent
        self.inboxes: dict[str, Inbox] = {}
        self.initialized: schema.InitializeResponse | None = None
        self.rpc = RpcTransport(http, self._deliver, retry_for=retry_for, on_reopened=self._reopened)
        self._arrivals = _Arrivals(self.rpc)
        self._answering = Answering(on_permission, on_question, self.inboxes)
        self._asked: dict[Any, asyncio.Task[Any]] = {}
        self._connection = Connection(self._take, self._arrivals)
        self._background: set[asyncio.Task[None]] = set()
        self.closing = asyncio.Event()
        """Set when the connection is about to close: background work says what it must and ends."""

    async def open(self) -> None:
        """Raises ConnectionLost, Unauthorized, UnknownAgent, AgentStartFailed."""
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {},
            "clientInfo": {"name": "sandbox-agent-python", "version": __version__},
            "_meta": {META: {"agent": self.agent}},
        }
        self.initialized = schema.InitializeResponse.model_validate(await self.call("initialize", params))

    @property
    def tells_turns(self) -> bool:
        """Whether the server says which turn runs: those with a feed do."""
        answer = self.initialized.field_meta if self.initialized is not None else None
        return _FEED in (((answer or {}).get(META) or {}).get("extensions") or [])

    async def call(self, method: str, params: Message) -> Message:
        """The result. Raises what went wrong as one of our errors."""
        try:
            result = await self._connection.send_request(method, params)
        except RequestError as error:
            raise from_rpc(error.code, str(error), error.data) from None
        except ConnectionError:
            raise self._lost() from None
        return result if isinstance(result, dict) else {}

    async def notify(self, method: str, params: Message) -> None:
        try:
            await self._connection.send_notification(method, params)
        except ConnectionError:
            raise self._lost() from None

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

    def _lost(self) -> SandboxAgentError:
        return self.rpc.failure or ConnectionLost("the connection has been closed")

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("background work failed agent=%s error=%s", self.agent, error)

    async def _deliver(self, lines: list[bytes]) -> None:
        """Hand messages to ACP's connection; no more are read until those who read updates have room."""
        self._arrivals.put(lines)
        for inbox in list(self.inboxes.values()):
            await inbox.room()

    def _reopened(self) -> None:
        for inbox in list(self.inboxes.values()):
            inbox.lost(None)

    async def _take(self, method: str, params: Any, is_notification: bool) -> Any:
        params = params if isinstance(params, dict) else {}
        if is_notification:
            self._take_notification(method, params)
            return None
        request_id = params.request_id if isinstance(params, _AskParams) else None
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

    def _take_notification(self, method: str, params: Message) -> None:
        envelope = {"jsonrpc": "2.0", "method": method, "params": params}
        if method == CANCEL_REQUEST:
            task = self._asked.pop(params.get("requestId"), None)
            if task is not None:
                task.cancel()
        elif method == STREAM_GAP:
            for inbox in list(self.inboxes.values()):
                inbox.lost(envelope)
        elif (of_session := self.inboxes.get(str(params.get("sessionId")))) is not None:
            _OF_SESSION.get(method, Inbox.notice)(of_session, envelope)


class _Arrivals:
    """The transport as `acp.Connection` wants it: messages instead of bytes, taken one by one."""

    def __init__(self, rpc: RpcTransport) -> None:
        self._rpc = rpc
        self._held: deque[Message] = deque()
        self._arrived = asyncio.Event()
        self._is_closed = False

    def put(self, lines: list[bytes]) -> None:
        for line in lines:
            message = read_json(line)
            if isinstance(message, dict):
                self._held.append(_with_request_id(message))
        self._arrived.set()

    async def send(self, message: Message) -> None:
        if self._is_closed or self._rpc.failure is not None:
            if "method" not in message:
                return  # an answer that nobody waits for any more
            raise ConnectionError("connection closed")
        await self._rpc.send(msgspec.json.encode(message))

    async def receive(self) -> Message | None:
        while not self._held:
            if self._is_closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._held.popleft()

    async def close(self) -> None:
        self._is_closed = True
        self._arrived.set()
        await self._rpc.close()


class _AskParams(dict[str, Any]):
    """`params` of a request from the agent, with the id that it must be answered under."""

    def __init__(self, params: Message, request_id: Any) -> None:
        super().__init__(params)
        self.request_id = request_id


def _with_request_id(message: Message) -> Message:
    if "method" in message and "id" in message and isinstance(message.get("params"), dict):
        message["params"] = _AskParams(message["params"], message["id"])
    return message
