"""A turn read from the session's history, after its stream had a gap or the connection was replaced."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sandbox_agent.client.updates import GAP, Envelope
from sandbox_agent.core.frames import META
from sandbox_agent.errors import AgentUnsupported, NotFound

if TYPE_CHECKING:
    from sandbox_agent.client.connection import AgentConnection
    from sandbox_agent.client.inbox import TurnBox

EVENTS = "_sandboxagent/session/events"
_PAGE = 1000


class Recovery:
    """From now on the live stream only says that there is more; the updates themselves come from history.

    So there is nothing to match up: the turn's updates follow its prompt in the history, and `seen` of them are
    there already."""

    def __init__(self, session_id: str, turn: TurnBox, gap: Envelope | None) -> None:
        self._session_id = session_id
        self._turn = turn
        self._gap = gap
        self._more = asyncio.Event()
        self._after = 0
        self._position: int | None = None
        """How many of the turn's updates have been passed; None until its prompt has been found."""

    def poke(self) -> None:
        self._more.set()

    async def run(self, connection: AgentConnection) -> None:
        try:
            is_answered = False
            while not is_answered:
                is_answered = self._turn.answered.is_set()  # before we read, so that one more read follows the answer
                self._more.clear()
                await self._read_on(connection)
                if not is_answered:
                    await self._more.wait()
        except (AgentUnsupported, NotFound):  # no history to read: say so, and go on with what comes
            self._turn.put(self._gap or _gap(1))
            self._turn.recovery = None
        finally:
            if self._turn.answered.is_set():
                self._turn.mailbox.close()

    async def _read_on(self, connection: AgentConnection) -> None:
        has_more = True
        while has_more:
            wanted = {"sessionId": self._session_id, "after": self._after, "limit": _PAGE}
            page = await connection.call(EVENTS, wanted)
            for event in page.get("events", []):
                self._pass(int(event["sequence"]), event["envelope"])
            await self._turn.mailbox.room()
            has_more = bool(page.get("hasMore"))

    def _pass(self, sequence: int, envelope: Envelope) -> None:
        missing = sequence - self._after - 1
        self._after = sequence
        if self._position is None:
            if _turn_id(envelope) == self._turn.turn_id:
                self._position = 0
            return
        if missing > 0:
            self._turn.put(_gap(missing))
        if is_counted(envelope):
            self._position += 1
            if self._position > self._turn.seen:
                self._turn.put(envelope)


def is_counted(envelope: Envelope) -> bool:
    """Updates that stand in the history just as they are delivered. The user's own words are told to others only."""
    if envelope.get("method") != "session/update":
        return False
    update = envelope["params"].get("update")
    return not isinstance(update, dict) or update.get("sessionUpdate") != "user_message_chunk"


def _turn_id(envelope: Envelope) -> Any:
    if envelope.get("method") != "session/prompt":
        return None
    params: Any = envelope.get("params")
    for name in ("_meta", META):
        params = params.get(name) if isinstance(params, dict) else None
    return params.get("turnId") if isinstance(params, dict) else None


def _gap(missing: int) -> Envelope:
    return {"jsonrpc": "2.0", "method": GAP, "params": {"fromId": 1, "toId": missing}}
