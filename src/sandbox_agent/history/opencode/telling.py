"""What is told of a session, in OpenCode's words: the type of an event and its properties."""

from __future__ import annotations

from typing import Any, NamedTuple

from sandbox_agent.core.json_values import Object


class Told(NamedTuple):
    type: str
    properties: Object


class Telling:
    """Gathers what is to be told of one session, in order."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self._told: list[Told] = []

    def take(self) -> list[Told]:
        told, self._told = self._told, []
        return told

    def tell(self, type_: str, **properties: Any) -> None:
        self._told.append(Told(type_, {"sessionID": self.session_id, **properties}))

    def message(self, info: Object) -> None:
        """The message as it stands: later changes of `info` do not change what was told."""
        self.tell("message.updated", info={**info, "time": {**info["time"]}})

    def part(self, part: Object, now: int) -> None:
        self.tell("message.part.updated", part=part, time=now)

    def delta(self, message_id: str, part_id: str, text: str) -> None:
        self.tell("message.part.delta", messageID=message_id, partID=part_id, field="text", delta=text)

    def of_no_session(self, type_: str, **properties: Any) -> None:
        self._told.append(Told(type_, properties))


def milliseconds(time: float) -> int:
    """Cut off as in our own timestamps, so that both say the same of one moment."""
    return round(time * 1_000_000) // 1000
