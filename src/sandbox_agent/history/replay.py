"""What `session/load` replays, out of a session's history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from sandbox_agent.core.frames import META
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import PROMPT, UPDATE
from sandbox_agent.core.speaking import STATE_UPDATE
from sandbox_agent.core.versions import Version
from sandbox_agent.history.entries import HistoryEntry
from sandbox_agent.history.universal import UniversalEvent
from sandbox_agent.history.universal.correlation import correlated
from sandbox_agent.history.wording import Spoken, version_at

_SILENT = frozenset(
    {
        "notice",
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "session_info_update",
        "usage_update",
    }
)
"""Updates that come at any time and do not tell whether the agent echoes the prompt."""


class _Update(msgspec.Struct):
    session_update: Any = msgspec.field(default=None, name="sessionUpdate")


class _UpdateParams(msgspec.Struct):
    update: _Update | None = None


class _UpdateLine(msgspec.Struct):
    method: str | None = None
    params: _UpdateParams | None = None


class _MethodLine(msgspec.Struct):
    method: Any = None


class _PromptParams(msgspec.Struct):
    prompt: list[msgspec.Raw] = []


class _PromptLine(msgspec.Struct):
    method: str | None = None
    params: _PromptParams | None = None


class Replayer:
    """Feed it the history in order: updates come back byte for byte, prompts as user chunks.

    The chunks of a prompt are held until the agent shows whether it echoes the prompt itself; if it does,
    they are dropped. Call `finish` at the end for what is still held.

    `spoken` says in which version what was recorded. What a session did once, as version 2 tells it by
    `state_update`, is not what it does now: that is left out."""

    def __init__(self, session_id: str, spoken: Spoken = ()) -> None:
        self._session_id = session_id
        self._spoken = spoken
        self._held: list[bytes] = []

    def feed(self, entry: HistoryEntry, events: Sequence[UniversalEvent] = ()) -> list[bytes]:
        """`events` are what the earlier API made of the entry: they are told with its lines."""
        if entry.source == "client":
            return self._client_line(entry, [event for event in events if event.type.startswith("item.")])
        return self._update_line(entry.envelope, events, is_ours=entry.source == "server")

    def finish(self) -> list[bytes]:
        held, self._held = self._held, []
        return held

    def _update_line(self, line: bytes, events: Sequence[UniversalEvent], *, is_ours: bool) -> list[bytes]:
        """An update of the agent's; of the server's own only what it told of the title: it may be newer."""
        head = read_json(line, _UpdateLine)
        if head is None:
            method = read_json(line, _MethodLine)
            head = _UpdateLine(method=method.method if method else None)
        if head.method != UPDATE:
            return []
        kind = head.params.update.session_update if head.params and head.params.update else None
        if kind == STATE_UPDATE or (is_ours and kind != "session_info_update"):
            return []
        if kind in ("user_message_chunk", "user_message"):
            self._held = []
        if isinstance(kind, str) and kind in _SILENT:
            return [correlated(line, events)]
        return [*self.finish(), correlated(line, events)]

    def _client_line(self, entry: HistoryEntry, events: Sequence[UniversalEvent]) -> list[bytes]:
        head = read_json(entry.envelope, _PromptLine)
        if head is None or head.method != PROMPT or head.params is None:
            return []
        earlier = self.finish()
        if version_at(self._spoken, entry.sequence) is Version.V1:
            chunks = [{"sessionUpdate": "user_message_chunk", "content": block} for block in head.params.prompt]
            self._held = [self._line(chunk) for chunk in chunks]
        else:
            message = {"messageId": f"prompt_{entry.sequence}", "content": head.params.prompt}
            self._held = [self._line({"sessionUpdate": "user_message", **message})]
        self._held = [correlated(line, events) for line in self._held]
        return earlier

    def _line(self, update: dict[str, Any]) -> bytes:
        return msgspec.json.encode(
            {
                "jsonrpc": "2.0",
                "method": UPDATE,
                "params": {
                    "sessionId": self._session_id,
                    "update": update,
                    "_meta": {META: {"replayed": True}},
                },
            }
        )
