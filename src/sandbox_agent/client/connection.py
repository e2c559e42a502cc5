"""One connection to one agent, and the sessions that are attached to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from sandbox_agent.client.asking import Answering, PermissionHandler, QuestionHandler
from sandbox_agent.client.inbox import Inbox
from sandbox_agent.client.rpc.exchange import Exchange, Message
from sandbox_agent.client.rpc.transport import RpcTransport
from sandbox_agent.client.updates import Envelope
from sandbox_agent.core.frames import META
from sandbox_agent.core.methods import CANCEL_REQUEST, STREAM_GAP
from sandbox_agent.version import __version__

if TYPE_CHECKING:
    import httpx

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
_PROTOCOL_VERSION = 1


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
        self.initialized: Message = {}
        """What the server said of itself and the agent."""
        self.rpc = RpcTransport(http, self._deliver, retry_for=retry_for, on_reopened=self._reopened)
        answering = Answering(on_permission, on_question, self.inboxes)
        self._exchange = Exchange(self.rpc, answering.answer, self._take_notification)
        self._background: set[asyncio.Task[None]] = set()
        self.closing = asyncio.Event()
        """Set when the connection is about to close: background work says what it must and ends."""

    async def open(self) -> None:
        """Raises ConnectionLost, Unauthorized, UnknownAgent, AgentStartFailed."""
        params = {
            "protocolVersion": _PROTOCOL_VERSION,
            "clientCapabilities": {},
            "clientInfo": {"name": "sandbox-agent-python", "version": __version__},
            "_meta": {META: {"agent": self.agent}},
        }
        self.initialized = await self.call("initialize", params)

    @property
    def tells_turns(self) -> bool:
        """Whether the server says which turn runs: those with a feed do."""
        ours = (self.initialized.get("_meta") or {}).get(META) or {}
        return _FEED in (ours.get("extensions") or [])

    async def call(self, method: str, params: Message) -> Message:
        """The result. Raises what went wrong as one of our errors."""
        result = await self._exchange.call(method, params)
        return result if isinstance(result, dict) else {}

    async def notify(self, method: str, params: Message) -> None:
        await self._exchange.notify(method, params)

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
        await self._exchange.close()

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("background work failed agent=%s error=%s", self.agent, error)

    async def _deliver(self, lines: list[bytes]) -> None:
        """Take messages; no more are read until those who read updates have room."""
        self._exchange.take(lines)
        for inbox in list(self.inboxes.values()):
            await inbox.room()

    def _reopened(self) -> None:
        for inbox in list(self.inboxes.values()):
            inbox.lost(None)

    def _take_notification(self, method: str, params: Message) -> None:
        envelope = {"jsonrpc": "2.0", "method": method, "params": params}
        if method == CANCEL_REQUEST:
            self._exchange.withdraw(params.get("requestId"))
        elif method == STREAM_GAP:
            for inbox in list(self.inboxes.values()):
                inbox.lost(envelope)
        elif (of_session := self.inboxes.get(str(params.get("sessionId")))) is not None:
            _OF_SESSION.get(method, Inbox.notice)(of_session, envelope)
