"""What the earlier API would have said of a message, in the message's own `_meta`: event, item, turn, question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sandbox_agent.core.frames import META
from sandbox_agent.core.json_values import Object, as_object, read_json
from sandbox_agent.core.methods import UPDATE
from sandbox_agent.history.universal.events import UniversalEvent


def correlated(line: bytes, events: Sequence[UniversalEvent]) -> bytes:
    """The message with what its events say of it. What it says itself under our key stays.

    Of an update, the item is told in the update's `_meta` and the event beside the update, as ACP's own fields are."""
    message = read_json(line) if events else None
    if not isinstance(message, dict):
        return line
    said = {"legacyEvent": legacy_event(events[0])}
    about = _about(events)
    params, result, error = message.get("params"), message.get("result"), message.get("error")
    if message.get("method") == UPDATE and isinstance(params, dict):
        update = as_object(params.get("update"))
        message["params"] = _with_meta({**params, "update": _with_meta(update, about)} if update else params, said)
    elif isinstance(params, dict):
        message["params"] = _with_meta(params, {**said, **about})
    elif isinstance(result, dict):
        message["result"] = _with_meta(result, {**said, **about})
    elif isinstance(error, dict) and isinstance(error.get("data"), dict | None):
        message["error"] = {**error, "data": _with_meta(as_object(error.get("data")), {**said, **about})}
    return msgspec.json.encode(message)


def legacy_event(event: UniversalEvent) -> Object:
    """The envelope of an event, without its data."""
    return {
        "eventId": event.event_id,
        "sequence": event.sequence,
        "type": event.type,
        "time": event.time,
        "source": event.source,
        "synthetic": event.synthetic,
        "nativeSessionId": event.native_session_id,
    }


def _about(events: Sequence[UniversalEvent]) -> Object:
    """What the last event that is about something tells of it; of a turn, if one starts or ends."""
    turns = [event for event in events if event.type.startswith("turn.")]
    for event in reversed(turns or events):
        tell = _TELLING.get(event.type)
        if tell is not None:
            return tell(event.data, events)
    return {}


def _item(data: Object, events: Sequence[UniversalEvent]) -> Object:
    """An item: it has started with this message, grown, or is complete, with all of it."""
    snapshot = as_object(data.get("item"))
    item_id = snapshot.get("item_id", data.get("item_id"))
    own = [event for event in events if _item_id(event) == item_id]
    phases = {event.type.partition(".")[2] for event in own}
    told: Object = {
        "itemId": item_id,
        "nativeItemId": snapshot.get("native_item_id", data.get("native_item_id")),
        "phase": next(phase for phase in ("completed", "started", "delta") if phase in phases),
    }
    for event in own:
        if "item" in event.data:
            item = event.data["item"]
            told |= {"parentId": item["parent_id"], "kind": item["kind"], "role": item["role"]}
    return {**told, "item": snapshot} if told["phase"] == "completed" else told


def _item_id(event: UniversalEvent) -> Any:
    return as_object(event.data.get("item")).get("item_id", event.data.get("item_id"))


def _turn(data: Object, _: Sequence[UniversalEvent]) -> Object:
    return {"turn": {"turnId": data["turn_id"]}, "phase": data["phase"]}


def _permission(data: Object, _: Sequence[UniversalEvent]) -> Object:
    told = {"permissionId": data["permission_id"], "status": data["status"]}
    option = as_object(data.get("metadata")).get("optionId")
    return told if option is None else {**told, "optionId": option}


def _question(data: Object, _: Sequence[UniversalEvent]) -> Object:
    return {"questionId": data["question_id"], "status": data["status"], "response": data["response"]}


_TELLING: dict[str, Callable[[Object, Sequence[UniversalEvent]], Object]] = {
    "item.started": _item,
    "item.delta": _item,
    "item.completed": _item,
    "turn.started": _turn,
    "turn.ended": _turn,
    "permission.requested": _permission,
    "permission.resolved": _permission,
    "question.requested": _question,
    "question.resolved": _question,
}


def _with_meta(holder: Object, told: Object) -> Object:
    if not told:
        return holder
    meta = as_object(holder.get("_meta"))
    return {**holder, "_meta": {**meta, META: {**told, **as_object(meta.get(META))}}}
