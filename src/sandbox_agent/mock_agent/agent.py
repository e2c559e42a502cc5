"""The agent: takes lines from the client, starts turns, answers."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import msgspec

from sandbox_agent.mock_agent import params
from sandbox_agent.mock_agent.client import Client
from sandbox_agent.mock_agent.conversations import LOGIN, Conversations
from sandbox_agent.mock_agent.params import parse_params
from sandbox_agent.mock_agent.quirks import Quirks
from sandbox_agent.mock_agent.state import StateFolder
from sandbox_agent.mock_agent.stdio import MAX_LINE, Stdout
from sandbox_agent.mock_agent.version2 import UNSUPPORTED_VERSION
from sandbox_agent.mock_agent.wire import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NULL,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    Envelope,
    RpcError,
    error_line,
    parse_line,
    result_line,
)
from sandbox_agent.version import __version__

Handler = Callable[[Any, "Request"], Any]
Method = tuple[type[msgspec.Struct], Handler]

_LACKED = {
    "no_load": "session/load",
    "no_resume": "session/resume",
    "no_list": "session/list",
    "no_set_model": "session/set_model",
    "dead_models": "session/set_model",
    "no_set_mode": "session/set_mode",
    "legacy_models": "session/set_config_option",
}


_INFO = {"name": "mock", "title": "Mock agent", "version": __version__}


class Request(msgspec.Struct, eq=False):
    """One request of the client, until it is answered."""

    id: msgspec.Raw
    session_id: str | None = None
    after_answer: list[Callable[[], None]] = []


class Agent:
    def __init__(self, stdout: Stdout, state: StateFolder, quirks: Quirks) -> None:
        self._stdout = stdout
        self._quirks = quirks
        self._client = Client(stdout, has_uuid_ids=quirks.uuid_ids, leaks=quirks.leak)
        self._conversations = Conversations(self._client, state, quirks)
        self._running: dict[asyncio.Future[Any], Request] = {}
        self._methods = self._methods_of(version=1)

    def take_line(self, line: bytes | None) -> None:
        """One line from the client; None stands for one that was too long."""
        try:
            if line is None:
                raise RpcError(PARSE_ERROR, f"A line is longer than {MAX_LINE} bytes")
            envelope = parse_line(line)
            if envelope.method is None:
                if not envelope.has_id:
                    raise RpcError(INVALID_REQUEST, "Not a JSON-RPC message: neither method nor id")
                self._client.take_answer(envelope)
                return
        except RpcError as error:
            self._stdout.send(error_line(NULL, error))
            return
        if envelope.has_id:
            self._take_request(envelope, envelope.method)
        else:
            self._take_notification(envelope, envelope.method)

    async def end(self, *, grace: float) -> None:
        """Cancel all turns and give their answers `grace` seconds to be made."""
        self._conversations.cancel_all()
        waited = [*self._running, *self._conversations.endings]
        if waited:
            await asyncio.wait(waited, timeout=grace)

    def _take_request(self, envelope: Envelope, method: str) -> None:
        request = Request(envelope.id)
        try:
            if method not in self._methods:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}", {"method": method})
            kind, handler = self._methods[method]
            result = handler(parse_params(envelope.params, kind), request)
        except RpcError as error:
            self._stdout.send(error_line(request.id, error))
            return
        if isawaitable(result):
            task = asyncio.ensure_future(result)
            self._running[task] = request
            task.add_done_callback(self._finish)
        else:
            self._answer(request, result)

    def _finish(self, task: asyncio.Future[Any]) -> None:
        request = self._running.pop(task)
        if task.cancelled():
            self._stdout.send(error_line(request.id, RpcError(REQUEST_CANCELLED, "Request cancelled")))
            return
        error = task.exception()
        if error is None:
            self._answer(request, task.result())
            return
        if not isinstance(error, RpcError):
            traceback.print_exception(error)
            error = RpcError(INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        self._stdout.send(error_line(request.id, error))

    def _answer(self, request: Request, result: Any) -> None:
        self._stdout.send(result_line(request.id, result))
        for act in request.after_answer:
            act()

    def _take_notification(self, envelope: Envelope, method: str) -> None:
        try:
            if method == "session/cancel":
                self._conversations.cancel(parse_params(envelope.params, params.OneSession).session_id)
            elif method == "$/cancel_request":
                self._cancel_request(parse_params(envelope.params, params.CancelRequest).request_id)
        except RpcError:
            return  # a notification has no answer

    def _cancel_request(self, request_id: msgspec.Raw) -> None:
        for task, request in list(self._running.items()):
            if bytes(request.id) != bytes(request_id):
                continue
            if request.session_id is None:
                task.cancel()
            else:
                self._conversations.cancel(request.session_id)

    def _methods_of(self, *, version: int) -> dict[str, Method]:
        talks = self._conversations
        methods: dict[str, Method] = {
            "initialize": (params.Initialize, self._initialize),
            "session/new": (params.NewSession, talks.create),
            "session/fork": (params.StoredSession, talks.fork),
            "session/close": (params.OneSession, talks.close),
            "session/delete": (params.OneSession, talks.delete),
            "session/list": (params.ListSessions, talks.list_page),
            "session/prompt": (params.Prompt, talks.prompt),
        }
        if version == 1:
            methods |= {
                "authenticate": (params.Authenticate, talks.authenticate),
                "logout": (params.Nothing, lambda *_: {}),
                "session/load": (params.StoredSession, talks.load),
                "session/resume": (params.StoredSession, talks.resume),
                "session/set_mode": (params.SetMode, talks.set_mode),
                "session/set_model": (params.SetModel, talks.set_model),
                "session/set_config_option": (params.SetConfigOption, talks.set_config_option),
            }
        else:
            methods |= {
                "auth/login": (params.Authenticate, talks.authenticate),
                "auth/logout": (params.Nothing, lambda *_: {}),
                "session/resume": (params.ResumeSession, talks.resume_replaying),
                "session/set_config_option": (params.SetOption, talks.set_option),
            }
        lacked = {method for quirk, method in _LACKED.items() if getattr(self._quirks, quirk)}
        return {name: method for name, method in methods.items() if name not in lacked}

    def _initialize(self, asked: params.Initialize, request: Request) -> Any:
        self._client.introduced = {"clientInfo": asked.client_info, "clientCapabilities": asked.client_capabilities}
        if self._quirks.fail_initialize:
            raise RpcError(INTERNAL_ERROR, "initialize was refused (--fail-initialize)")
        self._client.version = self._choose_version(asked.protocol_version)
        self._methods = self._methods_of(version=self._client.version)
        described = self._describe()
        if self._client.version == 2:
            self._client.introduced = {"info": asked.info, "capabilities": asked.capabilities}
            described = self._describe_in_version_2()
        if self._quirks.slow_initialize is None:
            return described
        return asyncio.sleep(self._quirks.slow_initialize / 1000, described)

    def _choose_version(self, asked: int) -> int:
        if self._quirks.protocol != 2:
            return 1
        if asked >= 2:
            return 2
        if self._quirks.no_v1:
            data = {"requested": asked, "supported": [2]}
            raise RpcError(UNSUPPORTED_VERSION, f"Unsupported protocol version {asked}; supported: 2", data)
        return 1

    def _describe(self) -> dict[str, Any]:
        optional = ("list", "resume", "fork", "close", "delete")
        return {
            "protocolVersion": 1,
            "agentInfo": _INFO,
            "agentCapabilities": {
                "loadSession": "session/load" in self._methods,
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {name: {} for name in optional if f"session/{name}" in self._methods},
                "auth": {"logout": {}},
            },
            "authMethods": [LOGIN] if self._quirks.needs_auth else [],
        }

    def _describe_in_version_2(self) -> dict[str, Any]:
        session: dict[str, Any] = {
            "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
            "mcp": {"stdio": {}, "http": {}},
            "delete": {},
            "fork": {},
        }
        login = {"type": "agent", "methodId": LOGIN["id"], "name": LOGIN["name"], "description": LOGIN["description"]}
        return {
            "protocolVersion": 2,
            "info": _INFO,
            "capabilities": {"session": session},
            "authMethods": [login] if self._quirks.needs_auth else [],
        }
