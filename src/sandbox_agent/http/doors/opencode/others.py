"""What other nodes of a cluster say of their own sessions, to one who asks here. Without a cluster, nothing."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.door import PREFIX, AskOthers

Requests = list[dict[str, Any]]
Statuses = dict[str, dict[str, Any]]


class Others:
    def __init__(self, ask: AskOthers) -> None:
        self._ask = ask

    async def busy(self, call: Call) -> Statuses:
        """Sessions that work, with their status."""
        said: dict[str, Statuses] = await self._ask(call.scope, f"{PREFIX}/session/status", Statuses)
        return {session: status for busy in said.values() for session, status in busy.items()}

    async def requests(self, call: Call, path: str, directory: str | None) -> dict[str, Requests]:
        """What agents wait for, in a directory or in all, by node."""
        query = "" if directory is None else "?" + urlencode({"directory": directory})
        return await self._ask(call.scope, f"{PREFIX}{path}{query}", Requests)
