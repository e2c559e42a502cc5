"""What `session/load` replays, out of a session's history."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.core.frames import META
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import PROMPT, UPDATE
from sandbox_agent.history.entries import HistoryEntry

_SILENT = frozenset(
    {
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
    """Feed it the history in order: the agent's updates come back byte for byte, prompts as user chunks.

    The chunks of a prompt are held until the agent shows whether it echoes the prompt itself; if it does,
    they are dropped. Call `finish` at the end for what is still held."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._held: list[bytes] = []

    def feed(self, entry: HistoryEntry) -> list[bytes]:
        if entry.source == "agent":
            return self._agent_line(entry.envelope)
        if entry.source == "client":
            return self._client_line(entry.envelope)
        return []

    def finish(self) -> list[bytes]:
        held, self._held = self._held, []
        return held

    def _agent_line(self, line: bytes) -> list[bytes]:
        head = read_json(line, _UpdateLine)
        if head is None:
            method = read_json(line, _MethodLine)
            head = _UpdateLine(method=method.method if method else None)
        if head.method != UPDATE:
            return []
        kind = head.params.update.session_update if head.params and head.params.update else None
        if kind == "user_message_chunk":
            self._held = []
        if isinstance(kind, str) and kind in _SILENT:
            return [line]
        return [*self.finish(), line]

    def _client_line(self, line: bytes) -> list[bytes]:
        head = read_json(line, _PromptLine)
        if head is None or head.method != PROMPT or head.params is None:
            return []
        earlier = self.finish()
        self._held = [self._chunk(block) for block in head.params.prompt]
        return earlier

    def _chunk(self, block: msgspec.Raw) -> bytes:
        return msgspec.json.encode(
            {
                "jsonrpc": "2.0",
                "method": UPDATE,
                "params": {
                    "sessionId": self._session_id,
                    "update": {"sessionUpdate": "user_message_chunk", "content": block},
                    "_meta": {META: {"replayed": True}},
                },
            }
        )
