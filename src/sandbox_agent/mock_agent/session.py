"""One conversation: its settings and what it remembers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

MAX_TURNS = 200
"""Turns that a session can replay; older ones are forgotten."""
MAX_PROMPTS = 1000
"""Prompts that `recall` knows; older ones are forgotten."""
MAX_TURN_UPDATES = 200
MAX_TURN_BYTES = 256 * 1024
"""Of each turn only the last updates are kept, bounded in number and bytes: state files stay small."""
MAX_PROMPT_CHARS = 16 * 1024

MODES = {
    "ask": ("Ask", "Asks before it changes anything"),
    "code": ("Code", "Writes and changes code"),
}
MODELS = {
    "mock-small": ("Mock Small", "The quick one"),
    "mock-large": ("Mock Large", "The thorough one"),
}
EFFORTS = {
    "low": ("Low", "Thinks little"),
    "high": ("High", "Thinks much"),
}
CONFIG = {
    "mode": ("Mode", "mode", MODES),
    "model": ("Model", "model", MODELS),
    "effort": ("Effort", "thought_level", EFFORTS),
}
VERBOSE = "verbose"
_DEFAULTS = {"mode": "ask", "model": "mock-small", "effort": "low"}


class TurnRecord(msgspec.Struct):
    """What a turn leaves for a replay: the prompt's text and the tail of its updates."""

    prompt: str
    updates: list[msgspec.Raw] = []
    size: int = 0

    def add(self, updates: Iterable[bytes]) -> None:
        for update in updates:
            if len(update) > MAX_TURN_BYTES:
                continue
            self.updates.append(msgspec.Raw(update))
            self.size += len(update)
        while len(self.updates) > MAX_TURN_UPDATES or self.size > MAX_TURN_BYTES:
            self.size -= len(self.updates.pop(0))


class Session(msgspec.Struct, rename="camel"):
    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str = ""
    config: dict[str, str] = msgspec.field(default_factory=lambda: dict(_DEFAULTS))
    turn_count: int = 0
    prompts: list[str] = []
    turns: list[TurnRecord] = []
    is_verbose: bool = False
    """A choice that only version 2 offers, since only there every client knows booleans."""

    def begin_turn(self, prompt: str) -> TurnRecord:
        prompt = prompt[:MAX_PROMPT_CHARS]
        record = TurnRecord(prompt)
        self.turn_count += 1
        self.prompts = [*self.prompts, prompt][-MAX_PROMPTS:]
        self.turns = [*self.turns, record][-MAX_TURNS:]
        self.touch()
        return record

    def touch(self) -> None:
        self.updated_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def describe_modes(self) -> dict[str, Any]:
        modes = [{"id": key, "name": name, "description": says} for key, (name, says) in MODES.items()]
        return {"currentModeId": self.config["mode"], "availableModes": modes}

    def describe_models(self, suffix: str = "") -> dict[str, Any]:
        models = [{"modelId": key + suffix, "name": name, "description": says} for key, (name, says) in MODELS.items()]
        return {"currentModelId": self.config["model"] + suffix, "availableModels": models}

    def describe_verbose(self) -> dict[str, Any]:
        return {"id": VERBOSE, "name": "Verbose", "type": "boolean", "currentValue": self.is_verbose}

    def describe_config(self) -> list[dict[str, Any]]:
        return [
            {
                "id": key,
                "name": name,
                "category": category,
                "type": "select",
                "currentValue": self.config[key],
                "options": [
                    {"value": value, "name": label, "description": says} for value, (label, says) in values.items()
                ],
            }
            for key, (name, category, values) in CONFIG.items()
        ]
