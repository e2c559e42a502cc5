"""docs/migration.md maps everything that the previous API had, with the names that the code has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from sandbox_agent.core import methods
from sandbox_agent.history.universal import UniversalEvents, events
from sandbox_agent.history.universal.correlation import correlated
from sandbox_agent.http.api.removed import REMOVED
from sandbox_agent.http.asgi.routes import Door, Endpoint
from support.history import History, chunk, notice, options, prompt, request, result, selected, text, update
from support.pages import require_part, table
from support.previous_api import (
    ELSEWHERE,
    ENDPOINTS,
    EVENT_FIELDS,
    EVENT_TYPES,
    LIVE,
    MOVED,
    SAME,
    TYPES,
    fields_of,
)
from support.surface import route_table

META = "sandboxagent.dev"


def test_every_old_endpoint_is_there_or_has_a_replacement() -> None:
    removed = {f"{method} {path}": replacement for method, path, replacement in REMOVED}
    served: set[str] = set()
    for entry in route_table():
        if isinstance(entry, Door):
            served |= {f"{method} {entry.path}" for method in entry.methods}
        elif isinstance(entry, Endpoint):
            served.add(f"{entry.method} {entry.path}")
    assert set(ENDPOINTS) == (set(ENDPOINTS) & served) | removed.keys()
    rows = [(f"`{old}`", f"`{removed[old]}`" if old in removed else "unchanged") for old in ENDPOINTS]
    require_part("migration.md", "endpoints", table(("Previous endpoint", "Now"), rows))


def conversation() -> Iterator[tuple[str, History]]:
    """Every message that the converter knows, named as the page names it, after what has to come before it."""
    history = History()

    def told(name: str) -> tuple[str, History]:
        return name, history

    history.client(request(1, "session/new"))
    history.agent(result(1, {"sessionId": "s-1"}))
    yield told("response to `session/new`")
    history.client(prompt(2, text("hello")))
    yield told("`session/prompt`")
    for kind in ("agent_thought_chunk", "agent_message_chunk"):
        history.agent(chunk("x", kind))
        yield told(f"first `{kind}`")
        history.agent(chunk("y", kind))
        yield told(f"further `{kind}`")
    history.agent(update("tool_call", toolCallId="c", title="Run"))
    yield told("`tool_call`")
    content = [{"type": "content", "content": text("output")}]
    history.agent(update("tool_call_update", toolCallId="c", content=content))
    yield told("`tool_call_update` with content")
    history.agent(update("tool_call_update", toolCallId="c", status="completed"))
    yield told("`tool_call_update` with status `completed` or `failed`")
    history.agent(request(10, methods.PERMISSION, toolCall={"toolCallId": "c"}, options=options("allow_once")))
    yield told(f"`{methods.PERMISSION}`")
    history.client(result(10, selected("id-allow_once")))
    yield told(f"response to `{methods.PERMISSION}`")
    history.agent(request(11, methods.QUESTION, question_id="q", prompt="?", options=["a"]))
    yield told(f"`{methods.QUESTION}`")
    history.client(result(11, {"outcome": "answered", "answers": [["a"]]}))
    yield told(f"response to `{methods.QUESTION}`")
    history.server(notice(methods.UNPARSED, error="x", location="stdout", raw_hash="h"))
    yield told(f"`{methods.UNPARSED}`")
    history.server(notice(methods.RUNTIME_ERROR, code="x", message="x"))
    yield told(f"`{methods.RUNTIME_ERROR}`")
    history.agent(result(2, {"stopReason": "end_turn"}))
    yield told("response to `session/prompt`")
    stderr = {"head": ["x"], "tail": ["y"], "truncated": False, "totalLines": 2}
    history.server(notice(methods.SESSION_ENDED, reason="error", terminatedBy="agent", exitCode=3, stderr=stderr))
    yield told(f"`{methods.SESSION_ENDED}`")


def test_every_old_event_is_made_from_the_messages_that_the_page_names() -> None:
    found: dict[str, list[str]] = {kind: [] for kind in events.EVENT_TYPES}
    for name, history in conversation():
        converter = UniversalEvents("s-1")
        made = [converter.feed(entry) for entry in history.entries][-1]
        for kind in dict.fromkeys(event.type for event in made):
            found[kind].append(name)
    assert all(found.values()), found
    rows = [(f"`{kind}`", ", ".join(sources)) for kind, sources in found.items()]
    require_part("migration.md", "events", table(("Previous event", "ACP messages that say it now"), rows))


def place_of(kind: str, name: str) -> str:
    """Where a field is now, proven by the type that has it."""
    field = f"{kind}.{name}"
    if field in MOVED:
        where, struct, now = MOVED[field]
        assert now in fields_of(struct), field
        return f"`{now}`" if where == "the same type" else f"`{now}` in `{where}`".replace("`_meta of ", "`_meta` of `")
    if field in ELSEWHERE:
        return ELSEWHERE[field]
    assert name in fields_of(SAME[kind]), f"{field} is nowhere"
    return "unchanged"


def test_every_old_field_has_its_place() -> None:
    known = {f"{kind}.{name}" for kind, names in TYPES.items() for name in names}
    assert MOVED.keys() | ELSEWHERE.keys() | LIVE.keys() <= known
    rows = []
    for kind in [kind for kind in TYPES if kind not in EVENT_TYPES]:
        places: dict[str, list[str]] = {}
        for name in TYPES[kind]:
            places.setdefault(place_of(kind, name), []).append(f"`{name}`")
        rows += [(f"`{kind}`", ", ".join(names), place) for place, names in places.items()]
    require_part("migration.md", "fields", table(("Previous type", "Field", "Now"), rows))


def legacy_events() -> Iterator[dict[str, Any]]:
    for _, history in conversation():
        converter = UniversalEvents("s-1")
        yield from map(msgspec.to_builtins, [converter.feed(entry) for entry in history.entries][-1])


def test_every_field_of_the_old_events_is_in_the_legacy_format() -> None:
    assert set(TYPES["UniversalEvent"]) == EVENT_FIELDS
    data = [event["data"] for event in legacy_events()]
    items = [one["item"] for one in data if "item" in one]
    outputs = [one["stderr"] for one in data if "stderr" in one]
    seen = {name for one in [*data, *items, *outputs] for name in one}
    for kind in EVENT_TYPES[1:]:
        assert set(TYPES[kind]) <= seen, kind


def test_every_field_that_is_told_live_is_where_the_page_says() -> None:
    told: set[str] = set()
    for _, history in conversation():
        converter = UniversalEvents("s-1")
        *_, last = ((entry.envelope, converter.feed(entry)) for entry in history.entries)
        told |= set(_paths(msgspec.json.decode(correlated(*last))))
    assert set(LIVE.values()) <= told
    rows = [
        (f"`{kind}`", f"`{name}`", f"`{LIVE[f'{kind}.{name}']}`" if f"{kind}.{name}" in LIVE else "")
        for kind in EVENT_TYPES
        for name in TYPES[kind]
    ]
    require_part("migration.md", "correlation", table(("Previous type", "Field", "Live, in `_meta`"), rows))


def _paths(message: Any) -> Iterator[str]:
    """The names under our key anywhere in the message, one level deep."""
    if not isinstance(message, dict):
        return
    for name, value in message.items():
        if name == META and isinstance(value, dict):
            for field, inner in value.items():
                yield field
                yield from (f"{field}.{below}" for below in (inner if isinstance(inner, dict) else ()))
        else:
            yield from _paths(value)
