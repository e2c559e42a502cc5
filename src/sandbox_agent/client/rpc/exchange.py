"""JSON-RPC over the transport: our requests and their answers, the server's requests and notifications.

What came first is taken first: whoever gets an answer has been told everything that was sent before it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from sandbox_agent.client.rpc.problems import from_rpc
from sandbox_agent.client.rpc.transport import RpcTransport
from sandbox_agent.core import frames
from sandbox_agent.core.json_values import read_json
from sandbox_agent.errors import ConnectionLost, RequestCancelled, SandboxAgentError

_log = logging.getLogger(__name__)
_INTERNAL = -32603

Message = dict[str, Any]


class Exchange:
    """`take` is given every message that arrives; `answer` answers a request, `notified` hears a notification."""

    def __init__(
        self,
        rpc: RpcTransport,
        answer: Callable[[str, Message], Awaitable[Any]],
        notified: Callable[[str, Message], None],
    ) -> None:
        self._rpc = rpc
        self._answer = answer
        self._notified = notified
        self._numbers = itertools.count()
        self._open: dict[int, asyncio.Future[Message]] = {}
        self._asked: dict[Any, asyncio.Task[None]] = {}
        """Requests of the server that are being answered, by their id."""
        self._is_closed = False

    async def call(self, method: str, params: Message) -> Any:
        """The result. Raises what went wrong as one of our errors."""
        self._check()
        number = next(self._numbers)
        answered = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            await self._rpc.send(frames.request(b"%d" % number, method, params))
            answer = await answered
        finally:
            self._open.pop(number, None)
        if "error" not in answer:
            return answer.get("result")
        error = answer["error"] if isinstance(answer["error"], dict) else {}
        raise from_rpc(error.get("code", _INTERNAL), str(error.get("message", "Error")), error.get("data"))

    async def notify(self, method: str, params: Message) -> None:
        """Raises ConnectionLost."""
        self._check()
        await self._rpc.send(frames.notification(method, params))

    def take(self, lines: list[bytes]) -> None:
        for line in lines:
            message = read_json(line)
            if not isinstance(message, dict):
                continue
            if "method" not in message:
                self._take_answer(message)
            elif "id" in message:
                self._take_request(message)
            else:
                self._take_notification(message)

    def withdraw(self, request_id: Any) -> None:
        """Somebody else has answered it."""
        task = self._asked.pop(request_id, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Whoever waits for an answer is told that there will be none."""
        self._is_closed = True
        for answered in self._open.values():
            if not answered.done():
                answered.set_exception(self._lost())
        await self._rpc.close()
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _lost(self) -> SandboxAgentError:
        return self._rpc.failure or ConnectionLost("the connection has been closed")

    def _check(self) -> None:
        if self._is_closed or self._rpc.failure is not None:
            raise self._lost()

    def _take_answer(self, message: Message) -> None:
        number = message.get("id")
        answered = self._open.get(number) if isinstance(number, int) else None
        if answered is not None and not answered.done():
            answered.set_result(message)

    def _take_request(self, message: Message) -> None:
        request_id = message["id"]
        task = self._asked[request_id] = asyncio.create_task(self._respond(request_id, message))
        task.add_done_callback(lambda ended: self._ended(request_id, ended))

    def _take_notification(self, message: Message) -> None:
        try:
            self._notified(str(message["method"]), _params(message))
        except Exception:  # noqa: BLE001 - one that cannot be understood must not end the connection
            _log.exception("notification not taken method=%s", message["method"])

    async def _respond(self, request_id: Any, message: Message) -> None:
        key = msgspec.json.encode(request_id)
        try:
            line = frames.result(key, await self._answer(str(message["method"]), _params(message)))
        except asyncio.CancelledError:
            if request_id in self._asked:
                raise
            line = frames.failure(key, RequestCancelled("answered elsewhere"))
        except SandboxAgentError as error:
            line = frames.failure(key, error)
        except Exception as error:  # noqa: BLE001 - the program's own handler; the agent must not wait for ever
            _log.exception("request not answered method=%s", message["method"])
            line = frames.failure(key, SandboxAgentError(str(error) or type(error).__name__))
        if not self._is_closed and self._rpc.failure is None:
            await self._rpc.send(line)

    def _ended(self, request_id: Any, task: asyncio.Task[None]) -> None:
        if self._asked.get(request_id) is task:
            del self._asked[request_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("answer not sent error=%s", error)


def _params(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}
