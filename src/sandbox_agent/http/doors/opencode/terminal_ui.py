"""`/tui/*` and `/log`: what a program tells the terminal UIs that follow, and what they tell the server's log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec

from sandbox_agent.errors import InvalidParams
from sandbox_agent.http.doors.opencode import bodies
from sandbox_agent.http.doors.opencode.call import Call, Nothing
from sandbox_agent.http.doors.opencode.live import Live
from sandbox_agent.http.doors.opencode.sessions import Sessions

_log = logging.getLogger(__name__)
_LOGGED_CHARS = 500
_ALIASES = {
    "session_new": "session.new",
    "session_share": "session.share",
    "session_interrupt": "session.interrupt",
    "session_compact": "session.compact",
    "messages_page_up": "session.page.up",
    "messages_page_down": "session.page.down",
    "messages_half_page_up": "session.half.page.up",
    "messages_half_page_down": "session.half.page.down",
    "messages_first": "session.first",
    "messages_last": "session.last",
    "agent_cycle": "agent.cycle",
}


class TerminalUi:
    def __init__(self, live: Live, sessions: Sessions) -> None:
        self._live = live
        self._sessions = sessions

    def command(self, name: str) -> Callable[[Call], Awaitable[bool]]:
        """The handler that has terminal UIs run a command of theirs."""

        async def run(call: Call) -> bool:
            await call.body(Nothing)
            self._live.tell_all("tui.command.execute", {"command": name})
            return True

        return run

    async def execute(self, call: Call) -> bool:
        wanted = (await call.body(bodies.TuiCommand)).command
        if wanted in _ALIASES:
            self._live.tell_all("tui.command.execute", {"command": _ALIASES[wanted]})
        return True

    async def append(self, call: Call) -> bool:
        self._live.tell_all("tui.prompt.append", {"text": (await call.body(bodies.TuiText)).text})
        return True

    async def toast(self, call: Call) -> bool:
        self._live.tell_all("tui.toast.show", msgspec.to_builtins(await call.body(bodies.TuiToast)))
        return True

    async def select(self, call: Call) -> bool:
        wanted = (await call.body(bodies.TuiSession)).session_id
        if not wanted.startswith("ses"):
            raise InvalidParams(f"sessionID must begin with 'ses', not {wanted[:80]!r}")
        await self._sessions.named(wanted)
        self._live.tell_all("tui.session.select", {"sessionID": wanted})
        return True

    async def publish(self, call: Call) -> bool:
        wanted = await call.body(bodies.TuiEvent)
        properties = msgspec.to_builtins(wanted.read())
        self._live.tell_all(wanted.type, properties)
        return True

    async def log(self, call: Call) -> bool:
        line = await call.body(bodies.LogLine)
        _log.debug(
            "opencode client service=%r level=%s message=%r", line.service, line.level, line.message[:_LOGGED_CHARS]
        )
        return True
