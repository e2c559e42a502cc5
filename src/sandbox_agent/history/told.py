"""What those attached to a session were told of its history, out of the record."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox_agent.core import frames
from sandbox_agent.core.echo import Echo
from sandbox_agent.core.methods import PROMPT
from sandbox_agent.core.versions import Version
from sandbox_agent.history.entries import HistoryEntry
from sandbox_agent.history.universal import UniversalEvent
from sandbox_agent.history.universal.correlation import correlated
from sandbox_agent.history.wording import Spoken, version_at

_USER_CHUNK = "user_message_chunk"


class Told:
    """Feed it the history in order: what was told comes back byte for byte. Questions and answers do not.

    Where the agent speaks version 1, a `reader` of version 2 was told each prompt as a message, and not what the agent
    sent back of it."""

    def __init__(self, reader: Version | None = None, spoken: Spoken = ()) -> None:
        self._reader = reader
        self._spoken = spoken
        self._prompt: bytes | None = None
        self._echo: Echo | None = None

    def feed(self, entry: HistoryEntry, events: Sequence[UniversalEvent] = ()) -> list[bytes]:
        frame = frames.parse(entry.envelope)
        if self._reader is Version.V2:
            self._note_turn(frame, entry)
        if entry.source == "client" or frame.is_answer or frame.is_request or self._is_echo(frame, entry.envelope):
            return []
        return [correlated(entry.envelope, events)]

    def _note_turn(self, frame: frames.Frame, entry: HistoryEntry) -> None:
        if entry.source == "client" and frame.method == PROMPT:
            is_told = version_at(self._spoken, entry.sequence) is Version.V1
            self._prompt, self._echo = frame.key, Echo(entry.envelope) if is_told else None
        elif entry.source == "agent" and frame.is_answer and frame.key == self._prompt:
            self._prompt = self._echo = None

    def _is_echo(self, frame: frames.Frame, line: bytes) -> bool:
        update = frame.params.update if frame.params is not None else None
        is_users = update is not None and update.kind == _USER_CHUNK
        return is_users and self._echo is not None and self._echo.takes(line)
