"""All routes of the door on one screen, as OpenCode's OpenAPI document names them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sandbox_agent.core.users import Right
from sandbox_agent.errors import InvalidParams
from sandbox_agent.http.asgi.messages import Response
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.choices import Choices
from sandbox_agent.http.doors.opencode.commands import Commands
from sandbox_agent.http.doors.opencode.errors import Style
from sandbox_agent.http.doors.opencode.events import Events
from sandbox_agent.http.doors.opencode.not_served import NOT_SERVED
from sandbox_agent.http.doors.opencode.prompts import Prompts
from sandbox_agent.http.doors.opencode.questions import Questions
from sandbox_agent.http.doors.opencode.second_sessions import SecondSessions
from sandbox_agent.http.doors.opencode.sessions import Sessions
from sandbox_agent.http.doors.opencode.terminal_ui import TerminalUi
from sandbox_agent.http.doors.opencode.terminals import Terminals
from sandbox_agent.http.doors.opencode.version_2 import SecondApi
from sandbox_agent.http.doors.opencode.views import VERSION
from sandbox_agent.http.doors.opencode.workspace import Workspace

_NOT_FOR_READERS = ("/file", "/find", "/vcs", "/api/fs", "/pty", "/api/pty")
Handler = Callable[[Call], Awaitable[Any]]
"""Gives a value to be sent as JSON, a Response, or None when it has answered by itself."""


@dataclass(frozen=True, slots=True)
class Route:
    name: str
    """Method and path."""
    handler: Handler
    style: Style

    @property
    def needs(self) -> Right:
        """As the same things need elsewhere: files, terminals and all that changes anything need more than reading."""
        method, _, path = self.name.partition(" ")
        if method == "DELETE" and path == "/session/{sessionID}":
            return Right.ADMIN
        is_read = method == "GET" and not path.startswith(_NOT_FOR_READERS)
        return Right.READ if is_read else Right.PROMPT


@dataclass(frozen=True, slots=True)
class Handlers:
    sessions: Sessions
    prompts: Prompts
    questions: Questions
    choices: Choices
    commands: Commands
    workspace: Workspace
    events: Events
    terminal_ui: TerminalUi
    terminals: Terminals
    second: SecondApi
    second_sessions: SecondSessions


def routes(handlers: Handlers) -> list[Route]:
    served = {**_first(handlers), **_second(handlers), **{name: _refusing(why) for name, why in NOT_SERVED.items()}}
    return [Route(name, handler, "tagged" if " /api/" in name else "named") for name, handler in served.items()]


def _first(h: Handlers) -> dict[str, Handler]:
    """OpenCode's first API."""
    return {
        "GET /global/health": _always({"healthy": True, "version": VERSION}),
        "GET /global/event": h.events.of_all,
        "GET /global/config": h.choices.config,
        "POST /global/dispose": _always(True),
        "POST /instance/dispose": _always(True),
        "GET /event": h.events.of_directory,
        "GET /config": h.choices.config,
        "GET /config/providers": h.choices.providers,
        "GET /provider": h.choices.all_providers,
        "GET /provider/auth": _always({}),
        "GET /agent": h.choices.agents,
        "GET /command": h.commands.listed,
        "GET /skill": _always([]),
        "GET /lsp": _always([]),
        "GET /formatter": _always([]),
        "GET /mcp": _always({}),
        "GET /path": h.workspace.path,
        "GET /project": h.workspace.projects,
        "GET /project/current": h.workspace.project,
        "GET /project/{projectID}/directories": h.workspace.directories,
        "GET /vcs": h.workspace.vcs,
        "GET /vcs/status": _always([]),
        "GET /vcs/diff": _always([]),
        "GET /find": h.workspace.find_text,
        "GET /find/file": h.workspace.find_files,
        "GET /find/symbol": _always([]),
        "GET /file": h.workspace.listed,
        "GET /file/content": h.workspace.read,
        "GET /file/status": _always([]),
        "GET /session": h.sessions.listed,
        "GET /session/{sessionID}/diff": h.sessions.diff,
        "GET /permission": h.questions.permissions,
        "GET /question": h.questions.questions,
        "GET /pty/shells": h.terminals.shells,
        "GET /pty": h.terminals.listed,
        "GET /pty/{ptyID}": h.terminals.show,
        "DELETE /pty/{ptyID}": h.terminals.delete,
        "POST /pty/{ptyID}/connect-token": h.terminals.ticket,
        "GET /pty/{ptyID}/connect": h.terminals.connect,
        "GET /experimental/capabilities": _always({"backgroundSubagents": False}),
        "GET /experimental/console": _always({"consoleManagedProviders": [], "switchableOrgCount": 0}),
        "GET /experimental/resource": _always({}),
        "GET /experimental/session": h.sessions.all_listed,
        "GET /experimental/workspace": _always([]),
        "GET /experimental/workspace/status": _always([]),
        "POST /tui/open-help": h.terminal_ui.command("help.show"),
        "POST /tui/open-sessions": h.terminal_ui.command("session.list"),
        "POST /tui/open-themes": h.terminal_ui.command("session.list"),
        "POST /tui/open-models": h.terminal_ui.command("model.list"),
        "POST /tui/submit-prompt": h.terminal_ui.command("prompt.submit"),
        "POST /tui/clear-prompt": h.terminal_ui.command("prompt.clear"),
        "POST /tui/show-toast": h.terminal_ui.toast,
        "POST /session": h.sessions.create,
        "GET /session/status": h.sessions.status,
        "GET /session/{sessionID}": h.sessions.show,
        "PATCH /session/{sessionID}": h.sessions.change,
        "DELETE /session/{sessionID}": h.sessions.delete,
        "GET /session/{sessionID}/children": h.sessions.children,
        "GET /session/{sessionID}/todo": h.sessions.todo,
        "GET /session/{sessionID}/message": h.prompts.listed,
        "POST /session/{sessionID}/message": h.prompts.prompt,
        "GET /session/{sessionID}/message/{messageID}": h.prompts.show,
        "POST /session/{sessionID}/prompt_async": h.prompts.prompt_async,
        "POST /session/{sessionID}/command": h.prompts.command,
        "POST /session/{sessionID}/summarize": h.prompts.summarize,
        "POST /session/{sessionID}/init": h.prompts.init,
        "POST /session/{sessionID}/fork": h.sessions.fork,
        "POST /session/{sessionID}/abort": h.sessions.abort,
        "POST /session/{sessionID}/revert": h.prompts.revert,
        "POST /session/{sessionID}/unrevert": h.sessions.as_it_is,
        "POST /session/{sessionID}/permissions/{permissionID}": h.questions.respond_permission,
        "POST /permission/{requestID}/reply": h.questions.reply_permission,
        "POST /question/{requestID}/reply": h.questions.reply_question,
        "POST /question/{requestID}/reject": h.questions.reject_question,
        "POST /pty": h.terminals.create,
        "PUT /pty/{ptyID}": h.terminals.change,
        "GET /experimental/tool": _always([]),
        "GET /experimental/tool/ids": _always([]),
        "GET /experimental/worktree": _always([]),
        "POST /log": h.terminal_ui.log,
        "POST /tui/append-prompt": h.terminal_ui.append,
        "POST /tui/execute-command": h.terminal_ui.execute,
        "POST /tui/publish": h.terminal_ui.publish,
        "POST /tui/select-session": h.terminal_ui.select,
    }


def _second(h: Handlers) -> dict[str, Handler]:
    """OpenCode's second API."""
    return {
        "GET /api/health": _always({"healthy": True}),
        "GET /api/location": h.workspace.location,
        "GET /api/agent": h.second.agents,
        "GET /api/model": h.second.models,
        "GET /api/provider": h.second.providers,
        "GET /api/provider/{providerID}": h.second.provider,
        "GET /api/integration": h.second.nothing,
        "GET /api/reference": h.second.nothing,
        "GET /api/command": h.second.commands,
        "GET /api/skill": h.second.nothing,
        "GET /api/fs/find": h.second.find,
        "GET /api/session": h.second_sessions.listed,
        "POST /api/session": h.second_sessions.create,
        "GET /api/session/active": h.second_sessions.active,
        "GET /api/session/{sessionID}": h.second_sessions.show,
        "POST /api/session/{sessionID}/agent": h.second_sessions.switch_agent,
        "POST /api/session/{sessionID}/model": h.second_sessions.switch_model,
        "POST /api/session/{sessionID}/prompt": h.second_sessions.prompt,
        "POST /api/session/{sessionID}/interrupt": h.second_sessions.interrupt,
        "GET /api/session/{sessionID}/message": h.second_sessions.messages,
        "GET /api/session/{sessionID}/message/{messageID}": h.second_sessions.message,
        "GET /api/session/{sessionID}/permission": h.second_sessions.permissions_of,
        "GET /api/session/{sessionID}/permission/{requestID}": h.second_sessions.permission,
        "POST /api/session/{sessionID}/permission/{requestID}/reply": h.second_sessions.reply_permission,
        "GET /api/session/{sessionID}/question": h.second_sessions.questions_of,
        "POST /api/session/{sessionID}/question/{requestID}/reply": h.second_sessions.reply_question,
        "POST /api/session/{sessionID}/question/{requestID}/reject": h.second_sessions.reject_question,
        "GET /api/permission/request": h.second.located(h.second_sessions.permissions),
        "GET /api/permission/saved": _always({"data": []}),
        "GET /api/question/request": h.second.located(h.questions.questions),
        "GET /api/pty": h.second.located(h.terminals.listed),
        "POST /api/pty": h.second.located(h.terminals.create),
        "GET /api/pty/{ptyID}": h.second.located(h.terminals.show),
        "PUT /api/pty/{ptyID}": h.second.located(h.terminals.change),
        "DELETE /api/pty/{ptyID}": _silent(h.terminals.delete),
        "POST /api/pty/{ptyID}/connect-token": h.second.located(h.terminals.ticket),
        "GET /api/pty/{ptyID}/connect": h.terminals.connect,
    }


def _always(value: Any) -> Handler:
    async def answer(call: Call) -> Any:
        return value

    return answer


def _silent(handler: Handler) -> Handler:
    """The same, answered with 204."""

    async def answer(call: Call) -> Response:
        await handler(call)
        return Response(204)

    return answer


def _refusing(reason: str) -> Handler:
    async def refuse(call: Call) -> None:
        raise InvalidParams(f"{call.method} {call.scope['path']} is not served: {reason}")

    return refuse
