"""The door behind its import: finds the handler of a request, and tells what failed in OpenCode's words."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.parse import unquote

from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import MethodNotAllowed, NotFound, OwnerGone, SessionElsewhere
from sandbox_agent.http.asgi.exchange import user_of
from sandbox_agent.http.asgi.messages import Receive, Response, Scope, Send, json_response, send_response
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.choices import Choices
from sandbox_agent.http.doors.opencode.commands import Commands
from sandbox_agent.http.doors.opencode.door import AGENTS, PREFIX, OpenCodeParts
from sandbox_agent.http.doors.opencode.errors import failure
from sandbox_agent.http.doors.opencode.events import Events
from sandbox_agent.http.doors.opencode.live import Live
from sandbox_agent.http.doors.opencode.others import Others
from sandbox_agent.http.doors.opencode.presence import Presence
from sandbox_agent.http.doors.opencode.prompts import Prompts
from sandbox_agent.http.doors.opencode.questions import Questions
from sandbox_agent.http.doors.opencode.second_sessions import SecondSessions
from sandbox_agent.http.doors.opencode.sessions import Sessions
from sandbox_agent.http.doors.opencode.table import Handlers, Route, routes
from sandbox_agent.http.doors.opencode.terminal_ui import TerminalUi
from sandbox_agent.http.doors.opencode.terminals import Terminals
from sandbox_agent.http.doors.opencode.version_2 import SecondApi
from sandbox_agent.http.doors.opencode.workspace import Workspace

_Segments = tuple[str, ...]


class OpenCodeApp:
    def __init__(self, parts: OpenCodeParts) -> None:
        self._body_limit = parts.body_limit
        self._forward = parts.forward
        self._routes: dict[str, list[tuple[_Segments, Route]]] = {}
        for route in sorted(routes(build_handlers(parts)), key=lambda route: route.name.count("{")):
            method, _, path = route.name.partition(" ")
            self._routes.setdefault(method, []).append((tuple(path.strip("/").split("/")), route))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["failure"] = partial(failure, style="named")
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        segments = raw.decode("latin-1").removeprefix(PREFIX).strip("/").split("/")
        agent: AgentId | None = None
        if segments[0] == AGENTS.strip("/") and len(segments) > 1:
            agent, segments = AgentId(unquote(segments[1])), segments[2:]
        route, path = self._find(scope.get("method", "GET"), segments)
        scope["failure"] = partial(failure, style=route.style)
        user_of(scope).require(route.needs, route.name)
        try:
            value = await route.handler(Call(scope, receive, send, path, agent, self._body_limit))
        except SessionElsewhere as error:  # before anything was read of its body
            if isinstance(error, OwnerGone) or not await self._forward(
                str(error.data.get("node")), scope, receive, send
            ):
                raise
            return
        if value is not None:
            response = value if isinstance(value, Response) else json_response(value)
            await send_response(response, scope, send)

    def _find(self, method: str, segments: list[str]) -> tuple[Route, dict[str, str]]:
        """Raises NotFound, MethodNotAllowed."""
        wanted = "GET" if method == "HEAD" else method
        for template, route in self._routes.get(wanted, ()):
            path = _match(template, segments)
            if path is not None:
                return route, path
        shown = "/".join(segments)[:200]
        if any(_match(template, segments) is not None for every in self._routes.values() for template, _ in every):
            raise MethodNotAllowed(f"{method} is not allowed at /{shown}")
        raise NotFound(f"no such endpoint: /{shown}")


def _match(template: _Segments, segments: list[str]) -> dict[str, str] | None:
    if template[-1] == "*":
        template, segments = template[:-1], segments[: len(template) - 1]
    if len(template) != len(segments):
        return None
    path: dict[str, str] = {}
    for part, segment in zip(template, segments, strict=True):
        if part.startswith("{"):
            if not segment:
                return None
            path[part[1:-1]] = unquote(segment)
        elif part != segment:
            return None
    return path


def build_handlers(parts: OpenCodeParts) -> Handlers:
    """Everything that routes lead to, put together."""
    hub, directory = parts.hub, str(Path.cwd())
    presence = Presence(hub)
    live = Live(hub, presence, directory, stream_bytes=parts.stream_bytes, sessions=parts.sessions_held)
    choices = Choices(parts.catalog, hub.probe, presence, default_agent=parts.default_agent)
    others = Others(parts.ask_others)
    sessions = Sessions(hub, live, presence, choices, others, directory, timeout=parts.request_timeout)
    commands = Commands(hub, live, choices)
    terminals = Terminals(hub.processes, live.followers, directory, parts.issue_ticket, parts.ticket_seconds)
    live.on_process = terminals.heard
    workspace = Workspace(parts.files, directory, str(Path.home()))
    prompts = Prompts(sessions, live, presence, choices, hub.tasks)
    questions = Questions(hub, sessions, live, presence, others)
    return Handlers(
        sessions=sessions,
        prompts=prompts,
        questions=questions,
        choices=choices,
        commands=commands,
        workspace=workspace,
        events=Events(hub, live, others),
        terminal_ui=TerminalUi(live, sessions),
        terminals=terminals,
        second=SecondApi(workspace, choices, commands),
        second_sessions=SecondSessions(sessions, prompts, questions, live),
    )
