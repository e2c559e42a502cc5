"""Updates of a session as typed objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from acp import schema
from pydantic import TypeAdapter, ValidationError

from sandbox_agent.core.methods import STREAM_GAP

Envelope = dict[str, Any]
"""One JSON-RPC message as it came."""


@dataclass(frozen=True, slots=True)
class UnknownUpdate:
    """An update that the ACP schema does not know. `raw` is all of it."""

    kind: str
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamGap:
    """Updates are missing here, because the server no longer keeps them."""

    missing: int


Update = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.AgentPlanContentUpdate
    | schema.AgentPlanRemovedUpdate
    | schema.AvailableCommandsUpdate
    | schema.CurrentModeUpdate
    | schema.ConfigOptionUpdate
    | schema.SessionInfoUpdate
    | schema.UsageUpdate
    | UnknownUpdate
    | StreamGap
)

_adapter: TypeAdapter[Any] = TypeAdapter(schema.SessionNotification.model_fields["update"].rebuild_annotation())


def read_update(envelope: Envelope) -> Update:
    """The update in a `session/update` envelope. What does not fit the schema becomes UnknownUpdate."""
    params = envelope.get("params")
    if envelope.get("method") == STREAM_GAP and isinstance(params, dict):
        return StreamGap(int(params.get("toId", 0)) - int(params.get("fromId", 0)) + 1)
    update = params.get("update") if isinstance(params, dict) else None
    raw = update if isinstance(update, dict) else {}
    try:
        typed: Update = _adapter.validate_python(raw)
    except ValidationError:
        return UnknownUpdate(str(raw.get("sessionUpdate", "")), raw)
    return typed


def text_of(update: Update) -> str:
    """The text of a message chunk; empty for anything else."""
    if isinstance(update, schema.AgentMessageChunk) and isinstance(update.content, schema.TextContentBlock):
        return update.content.text
    return ""
