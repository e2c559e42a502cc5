"""Updates of a session: as they came, and as typed objects. ACP's types take long to load, so only to make one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.methods import STREAM_GAP

if TYPE_CHECKING:
    from acp import schema
    from pydantic import TypeAdapter

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


if TYPE_CHECKING:
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


def update_in(envelope: Envelope) -> dict[str, Any]:
    """The update of a `session/update`, as it came; empty for anything else."""
    return as_object(as_object(envelope.get("params")).get("update"))


def missing_in(envelope: Envelope) -> int | None:
    """How many updates the server no longer keeps, if that is what it says."""
    if envelope.get("method") != STREAM_GAP:
        return None
    params = as_object(envelope.get("params"))
    return int(params.get("toId", 0)) - int(params.get("fromId", 0)) + 1


def said_in(envelope: Envelope) -> str:
    """The text of the agent's message in it, if there is any."""
    match update_in(envelope):
        case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(text)}}:
            return text
        case _:
            return ""


def read_update(envelope: Envelope) -> Update:
    """The update in a `session/update` envelope. What does not fit the schema becomes UnknownUpdate."""
    from pydantic import ValidationError  # noqa: PLC0415

    missing = missing_in(envelope)
    if missing is not None:
        return StreamGap(missing)
    raw = update_in(envelope)
    try:
        typed: Update = _adapter().validate_python(raw)
    except ValidationError:
        return UnknownUpdate(str(raw.get("sessionUpdate", "")), raw)
    return typed


def text_of(update: Update) -> str:
    """The text of a message chunk; empty for anything else."""
    from acp import schema  # noqa: PLC0415

    if isinstance(update, schema.AgentMessageChunk) and isinstance(update.content, schema.TextContentBlock):
        return update.content.text
    return ""


@cache
def _adapter() -> TypeAdapter[Any]:
    from acp import schema  # noqa: PLC0415
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(schema.SessionNotification.model_fields["update"].rebuild_annotation())


def __getattr__(name: str) -> Any:
    if name != "Update":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from acp import schema  # noqa: PLC0415

    return schema.SessionNotification.model_fields["update"].annotation | UnknownUpdate | StreamGap
