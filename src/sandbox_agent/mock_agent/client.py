"""The client as the agent sees it: somebody to tell and to ask."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from sandbox_agent.mock_agent.stdio import Stdout
from sandbox_agent.mock_agent.version2 import spoken, spoken_raw
from sandbox_agent.mock_agent.wire import (
    Envelope,
    Refusal,
    encode,
    notification_line,
    parse_refusal,
    request_line,
)

RequestId = int | str


class Client:
    def __init__(self, stdout: Stdout, *, has_uuid_ids: bool, leaks: bool) -> None:
        self.stdout = stdout
        self._leaks = leaks
        self._told: dict[str, None] = {}
        self.introduced: dict[str, Any] = {}
        self.version = 1
        counter = itertools.count()
        self._next_id: Callable[[], RequestId] = (lambda: str(uuid.uuid4())) if has_uuid_ids else counter.__next__
        self._waiting: dict[bytes, asyncio.Future[Any]] = {}

    def notify(self, method: str, params: Any) -> None:
        self.stdout.send(notification_line(method, params))

    def update(self, session_id: str, update: dict[str, Any] | msgspec.Raw) -> None:
        """Tell of one update, given in version 1's words, in the version that is spoken."""
        told: Any = update
        if self.version == 2:
            told = spoken_raw(update) if isinstance(update, msgspec.Raw) else spoken(update)
        if told is None:
            return
        self._told[session_id] = None
        for session in self._told if self._leaks else (session_id,):
            self.notify("session/update", {"sessionId": session, "update": told})

    def ask(self, method: str, params: Any) -> tuple[RequestId, asyncio.Future[Any]]:
        """Send a request; the future gives its result, or raises Refusal.

        There is no deadline, since a person may be answering: a cancelled turn or the end of stdin ends it.
        """
        request_id = self._next_id()
        key = encode(request_id)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[key] = answer
        answer.add_done_callback(lambda _: self._waiting.pop(key, None))
        self.stdout.send(request_line(request_id, method, params))
        return request_id, answer

    def take_answer(self, envelope: Envelope) -> None:
        """Late and unknown answers are ignored, as agents must."""
        answer = self._waiting.pop(bytes(envelope.id), None)
        if answer is None or answer.done():
            return
        if bytes(envelope.error):
            answer.set_exception(parse_refusal(envelope.error))
            return
        try:
            answer.set_result(msgspec.json.decode(envelope.result))
        except (msgspec.DecodeError, RecursionError):
            answer.set_exception(Refusal(0, "an answer without a result"))

    def withdraw(self, request_id: RequestId) -> None:
        self._waiting.pop(encode(request_id), None)
        self.notify("$/cancel_request", {"requestId": request_id})
