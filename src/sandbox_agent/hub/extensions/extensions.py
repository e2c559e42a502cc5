"""Our extension methods, `_sandboxagent/*`, answered by the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sandbox_agent.errors import AgentUnsupported
from sandbox_agent.hub.clients.request import Request

Method = Callable[[Request], Awaitable[Any]]
"""Gives the result of the request. Raises a SandboxAgentError."""


class Extensions:
    def __init__(self, methods: Mapping[str, Method]) -> None:
        self._methods = dict(methods)
        self.names = sorted(methods)

    async def answer(self, request: Request) -> None:
        method = self._methods.get(request.method)
        if method is None:
            known = ", ".join(self.names)
            raise AgentUnsupported(f"no extension {request.method!r}; there are: {known}")
        request.answer(await method(request))

    async def list_sessions(self, request: Request) -> None:
        """ACP's `session/list` and our own are one: the server-wide inventory."""
        request.answer(await self._methods["_sandboxagent/session/list"](request))
