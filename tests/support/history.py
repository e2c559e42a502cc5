"""Histories for tests: entries numbered and timed one second apart."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from sandbox_agent.store.base import Entry, Source

START = 1_700_000_000.0
SESSION = "s-1"


class History:
    """Collects entries: `history.agent(update(...))`."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, source: Source, message: Any) -> Entry:
        line = message if isinstance(message, bytes) else msgspec.json.encode(message)
        sequence = len(self.entries) + 1
        entry = Entry(sequence, START + sequence, source, line)
        self.entries.append(entry)
        return entry

    def client(self, message: Any) -> Entry:
        return self.add("client", message)

    def agent(self, message: Any) -> Entry:
        return self.add("agent", message)

    def server(self, message: Any) -> Entry:
        return self.add("server", message)


def request(id_: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {"sessionId": SESSION, **params}}


def notice(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {"sessionId": SESSION, **params}}


def result(id_: Any, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": value}


def error(id_: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message, "data": data}}


def update(variant: str, /, **fields: Any) -> dict[str, Any]:
    return notice("session/update", update={"sessionUpdate": variant, **fields})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def chunk(value: str, variant: str = "agent_message_chunk", **fields: Any) -> dict[str, Any]:
    return update(variant, content=text(value), **fields)


def prompt(id_: Any, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return request(id_, "session/prompt", prompt=list(blocks), **fields)


def options(*kinds: str) -> list[dict[str, str]]:
    return [{"optionId": f"id-{kind}", "name": f"Name {kind}", "kind": kind} for kind in kinds]


def selected(option_id: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)

_WORDS = [
    "sessionUpdate", "content", "type", "text", "toolCallId", "status", "title", "kind", "rawInput",
    "rawOutput", "messageId", "_meta", "sandboxagent.dev", "item", "item_id", "options", "optionId",
    "outcome",
    "toolCall", "prompt", "entries", "path", "oldText", "newText", "locations", "stderr", "reason", "data",
    "resource", "answers", "update", "legacyEvent", "requestId", "name",
]  # fmt: skip
_VALUES = [
    "agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update",
    "plan",
    "text", "image", "resource", "resource_link", "diff", "content", "terminal", "completed", "failed",
    "selected", "read", "allow_once",
]  # fmt: skip
_METHODS = [
    "session/prompt", "session/update", "session/new", "session/request_permission",
    "$/cancel_request",
    "_sandboxagent/session/request_question", "_sandboxagent/session/started", "_sandboxagent/session/ended",
    "_sandboxagent/error", "_sandboxagent/agent/unparsed", "_sandboxagent/item/completed",
]  # fmt: skip

_near_values = st.recursive(
    st.sampled_from(_VALUES) | json_values,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), children, max_size=5),
    max_leaves=12,
)
_objects = st.dictionaries(st.sampled_from(_WORDS), _near_values, max_size=6)
_params = st.builds(lambda update, rest: {**rest, "update": update}, _objects, _objects) | _near_values
_ids = st.integers(0, 3) | st.text(max_size=2) | json_values
messages = (
    st.fixed_dictionaries({"method": st.sampled_from(_METHODS), "params": _params}, optional={"id": _ids})
    | st.fixed_dictionaries({"id": _ids, "result": _near_values})
    | st.fixed_dictionaries({"id": _ids, "error": _near_values})
    | json_values
)
"""JSON that is nearly, or not at all, what our readers expect."""

histories = st.lists(
    st.tuples(
        st.sampled_from(["client", "agent", "server"]),
        messages.map(msgspec.json.encode) | st.binary(max_size=20),
    ),
    max_size=12,
)


def entries_of(drawn: list[tuple[Source, bytes]]) -> list[Entry]:
    history = History()
    for source, line in drawn:
        history.add(source, line)
    return history.entries
