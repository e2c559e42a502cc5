"""`/command`: the slash commands of agents, as they were told in the newest session or to one who asked."""

from __future__ import annotations

from typing import Any

from sandbox_agent.history.opencode.infos import slash_command
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.choices import Choices
from sandbox_agent.http.doors.opencode.live import Live
from sandbox_agent.hub.hub import Hub
from sandbox_agent.store.base import SessionFilter


class Commands:
    """OpenCode has one list for all sessions; ours is that of the client's default agent."""

    def __init__(self, hub: Hub, live: Live, choices: Choices) -> None:
        self._hub = hub
        self._live = live
        self._choices = choices

    async def listed(self, call: Call) -> list[dict[str, Any]]:
        agent = await self._choices.default(call)
        page = await self._hub.sessions.page(SessionFilter(agent=agent), cursor=None, limit=3)
        for record in page.sessions:
            fold = await self._live.folds.current(record)
            if fold.commands:
                return fold.commands
        return [slash_command(command) for command in await self._choices.commands(agent)]
