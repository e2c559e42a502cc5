"""One test per row of the event mapping, then what the numbering promises."""

from __future__ import annotations

import inspect
import sys
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from sandbox_agent.history.universal import EVENT_TYPES, EventPage, UniversalEvent, UniversalEvents
from sandbox_agent.history.universal.items import OPEN_LIMIT
from sandbox_agent.store.base import Source
from support.history import (
    SESSION,
    History,
    chunk,
    entries_of,
    error,
    histories,
    notice,
    options,
    prompt,
    request,
    result,
    selected,
    text,
    update,
)

ROWS = (
    "session.started",
    "session.ended",
    "turn.started",
    "turn.ended",
    "item.started",
    "item.delta",
    "item.completed",
    "error",
    "permission.requested",
    "permission.resolved",
    "question.requested",
    "question.resolved",
    "agent.unparsed",
)


@pytest.fixture
def history() -> History:
    return History()


def convert(history: History, **options: Any) -> list[UniversalEvent]:
    converter = UniversalEvents("alias", **options)
    return [event for entry in history.entries for event in converter.feed(entry)]


def of_type(events: list[UniversalEvent], type_: str) -> list[UniversalEvent]:
    return [event for event in events if event.type == type_]


def types(events: list[UniversalEvent]) -> list[str]:
    return [event.type for event in events]


@pytest.mark.parametrize("row", ROWS)
def test_every_row_of_the_mapping_is_an_event_type_with_tests_named_after_it(row: str) -> None:
    assert row in EVENT_TYPES
    prefix = f"test_{row.replace('.', '_')}_"
    names = [name for name, _ in inspect.getmembers(sys.modules[__name__], inspect.isfunction)]
    assert any(name.startswith(prefix) for name in names)


def test_no_event_type_is_outside_the_mapping() -> None:
    assert set(EVENT_TYPES) == set(ROWS)


def test_session_started_is_derived_from_the_answer_to_session_new(history: History) -> None:
    history.client(request(1, "session/new", cwd="/x"))
    history.agent(result(1, {"sessionId": "native-7", "_meta": {"k": 1}}))
    (event,) = convert(history)
    assert (event.type, event.data) == ("session.started", {"metadata": {"k": 1}})
    assert (event.source, event.synthetic, event.native_session_id) == ("daemon", True, "native-7")


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_session_started_is_derived_from_the_answer_to_a_load(history: History, method: str) -> None:
    history.server(request(1, method))
    history.agent(result(1, {}))
    assert types(convert(history)) == ["session.started"]


def test_session_started_comes_from_our_notice_and_only_once(history: History) -> None:
    history.client(request(1, "session/new"))
    history.server(notice("_sandboxagent/session/started", agent="mock"))
    history.agent(result(1, {"sessionId": SESSION}))
    (event,) = convert(history)
    assert event.data == {"metadata": {"agent": "mock"}}
    assert event.synthetic is False


def test_session_started_comes_again_after_an_end(history: History) -> None:
    history.server(notice("_sandboxagent/session/started"))
    history.server(notice("_sandboxagent/session/ended", reason="error"))
    history.server(request(3, "session/load"))
    history.agent(result(3, {}))
    assert types(convert(history)) == ["session.started", "session.ended", "session.started"]


def test_session_ended_carries_reason_culprit_message_exit_code_and_stderr(history: History) -> None:
    stderr = {"head": "a", "tail": "b", "truncated": True, "totalLines": 90}
    history.server(
        notice(
            "_sandboxagent/session/ended",
            reason="error",
            terminatedBy="agent",
            message="it died",
            exitCode=3,
            stderr=stderr,
        )
    )
    (event,) = convert(history)
    assert event.type == "session.ended"
    assert event.data == {
        "reason": "error",
        "terminated_by": "agent",
        "message": "it died",
        "exit_code": 3,
        "stderr": {"head": "a", "tail": "b", "truncated": True, "total_lines": 90},
    }


@pytest.mark.parametrize(
    ("ours", "legacy"),
    [
        ("completed", "completed"),
        ("terminated", "terminated"),
        ("closed", "completed"),
        ("agent_exited", "error"),
    ],
)
def test_session_ended_has_one_of_three_reasons(history: History, ours: str, legacy: str) -> None:
    history.server(notice("_sandboxagent/session/ended", reason=ours))
    (event,) = convert(history)
    assert event.data["reason"] == legacy
    assert event.data["terminated_by"] == "daemon"


def test_session_ended_completes_what_was_open_as_failed(history: History) -> None:
    history.agent(chunk("half"))
    history.server(notice("_sandboxagent/session/ended", reason="error"))
    events = convert(history)
    assert types(events)[-2:] == ["item.completed", "session.ended"]
    assert events[-2].data["item"]["status"] == "failed"


def test_turn_started_is_derived_from_a_prompt_and_keeps_the_turn_id(history: History) -> None:
    meta = {"sandboxagent.dev": {"turnId": "t-9"}}
    history.client(prompt(1, text("hi"), _meta=meta))
    event = convert(history)[0]
    assert event.type == "turn.started"
    assert event.data == {"phase": "started", "turn_id": "t-9", "metadata": meta}
    assert (event.source, event.synthetic) == ("daemon", True)


def test_turn_started_without_a_turn_id_is_named_after_its_entry(history: History) -> None:
    history.client(prompt(1, text("hi")))
    assert convert(history)[0].data["turn_id"] == "turn_1"


def test_turn_ended_comes_with_the_answer_and_carries_the_stop_reason(history: History) -> None:
    history.client(prompt(1, text("hi")))
    history.agent(result(1, {"stopReason": "max_tokens", "_meta": {"usage": 5}}))
    event = convert(history)[-1]
    assert event.type == "turn.ended"
    assert event.data["phase"] == "ended"
    assert event.data["turn_id"] == "turn_1"
    assert event.data["metadata"] == {"stopReason": "max_tokens", "usage": 5}
    assert (event.source, event.synthetic) == ("agent", False)


def test_turn_ended_follows_the_error_when_the_prompt_fails(history: History) -> None:
    history.client(prompt(1, text("hi")))
    history.server(error(1, -32010, "agent exited"))
    events = convert(history)
    assert types(events)[-2:] == ["error", "turn.ended"]
    assert events[-1].data["metadata"] == {"stopReason": "error"}


def test_item_started_for_a_tool_call_shows_the_call(history: History) -> None:
    history.agent(update("tool_call", toolCallId="c1", title="Read a", kind="read", rawInput={"path": "a"}))
    (event,) = convert(history)
    assert event.type == "item.started"
    assert (event.source, event.synthetic) == ("agent", False)
    assert event.data["item"] == {
        "item_id": "c1",
        "native_item_id": "c1",
        "parent_id": None,
        "kind": "tool_call",
        "role": "tool",
        "content": [{"type": "tool_call", "name": "Read a", "arguments": '{"path":"a"}', "call_id": "c1"}],
        "status": "in_progress",
    }


@pytest.mark.parametrize("kind", ["agent_message_chunk", "agent_thought_chunk"])
def test_item_started_comes_once_with_the_first_chunk(history: History, kind: str) -> None:
    history.agent(chunk("a", kind))
    history.agent(chunk("b", kind))
    events = convert(history)
    assert types(events) == ["item.started", "item.delta", "item.delta"]
    assert events[0].data["item"]["item_id"] == "msg_1"
    assert events[0].data["item"]["status"] == "in_progress"
    assert (events[0].source, events[0].synthetic) == ("daemon", True)


def test_item_started_takes_ids_from_meta(history: History) -> None:
    meta = {"sandboxagent.dev": {"itemId": "i", "nativeItemId": "n", "parentId": "p"}}
    history.agent(chunk("a", _meta=meta))
    item = convert(history)[0].data["item"]
    assert (item["item_id"], item["native_item_id"], item["parent_id"]) == ("i", "n", "p")


def test_item_started_understands_the_older_spelling_of_meta(history: History) -> None:
    history.agent(chunk("a", _meta={"sandbox-agent/itemId": "i"}))
    assert convert(history)[0].data["item"]["item_id"] == "i"


def test_item_started_comes_again_after_a_tool_call_and_when_reasoning_turns_to_speech(
    history: History,
) -> None:
    history.agent(chunk("hm", "agent_thought_chunk"))
    history.agent(chunk("a"))
    history.agent(update("tool_call", toolCallId="c1", title="t"))
    history.agent(chunk("b"))
    assert len(of_type(convert(history), "item.started")) == 4


def test_item_started_comes_once_per_message_id(history: History) -> None:
    history.agent(chunk("a", messageId="m1"))
    history.agent(update("tool_call", toolCallId="c1", title="t"))
    history.agent(chunk("b", messageId="m1"))
    history.agent(chunk("c", messageId="m2"))
    started = of_type(convert(history), "item.started")
    assert [event.data["item"]["native_item_id"] for event in started] == ["m1", "c1", "m2"]


def test_item_started_comes_again_when_meta_says_so(history: History) -> None:
    history.agent(chunk("a"))
    history.agent(chunk("b", _meta={"sandboxagent.dev": {"phase": "started"}}))
    assert len(of_type(convert(history), "item.started")) == 2


def test_item_started_is_made_up_for_an_update_of_an_unknown_tool_call(history: History) -> None:
    history.agent(update("tool_call_update", toolCallId="c9", status="in_progress"))
    (event,) = convert(history)
    assert (event.type, event.synthetic) == ("item.started", True)


@pytest.mark.parametrize("kind", ["agent_message_chunk", "agent_thought_chunk"])
def test_item_delta_carries_the_text_of_a_chunk(history: History, kind: str) -> None:
    history.agent(chunk("hello", kind, messageId="m"))
    event = convert(history)[-1]
    assert event.type == "item.delta"
    assert event.data == {"item_id": "msg_1", "native_item_id": "m", "delta": "hello"}
    assert (event.source, event.synthetic) == ("agent", False)


def test_item_delta_of_a_tool_carries_only_what_its_content_gained(history: History) -> None:
    def output(value: str) -> dict[str, Any]:
        content = [{"type": "content", "content": text(value)}]
        return update("tool_call_update", toolCallId="c1", content=content)

    history.agent(update("tool_call", toolCallId="c1", title="t"))
    history.agent(output("one"))
    history.agent(output("one two"))
    history.agent(output("one two"))
    history.agent(output("anew"))
    deltas = of_type(convert(history), "item.delta")
    assert [event.data["delta"] for event in deltas] == ["one", " two", "anew"]


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_item_completed_comes_with_the_status_of_a_tool(history: History, status: str) -> None:
    history.agent(update("tool_call", toolCallId="c1", title="t", rawInput={"a": 1}))
    history.agent(update("tool_call_update", toolCallId="c1", status=status, rawOutput="done"))
    event = convert(history)[-1]
    assert event.type == "item.completed"
    assert (event.source, event.synthetic) == ("agent", False)
    assert event.data["item"]["status"] == status
    assert event.data["item"]["content"] == [
        {"type": "tool_call", "name": "t", "arguments": '{"a":1}', "call_id": "c1"},
        {"type": "tool_result", "call_id": "c1", "output": "done"},
    ]


def test_item_completed_of_a_message_comes_at_the_turn_end_with_all_its_text(history: History) -> None:
    history.client(prompt(1, text("hi")))
    for value in ("a", "b", "c"):
        history.agent(chunk(value))
    history.agent(result(1, {"stopReason": "end_turn"}))
    events = convert(history)
    assert types(events)[-2:] == ["item.completed", "turn.ended"]
    assert events[-2].synthetic is True
    item = events[-2].data["item"]
    assert (item["kind"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert item["content"] == [text("abc")]


def test_item_completed_is_failed_when_the_turn_was_cancelled(history: History) -> None:
    history.client(prompt(1, text("hi")))
    history.agent(update("tool_call", toolCallId="c1", title="t"))
    history.agent(result(1, {"stopReason": "cancelled"}))
    assert convert(history)[-2].data["item"]["status"] == "failed"


def test_item_completed_shows_the_prompt_as_a_user_message(history: History) -> None:
    history.client(prompt(1, text("hi"), {"type": "resource_link", "uri": "file:///a.txt", "name": "a"}))
    history.agent(chunk("hi", "user_message_chunk"))
    events = convert(history)
    assert types(events) == ["turn.started", "item.started", "item.completed"]
    item = events[-1].data["item"]
    assert item["role"] == "user"
    assert item["content"] == [
        text("hi"),
        {"type": "file_ref", "path": "/a.txt", "action": "read", "diff": None},
    ]


def test_item_completed_notice_of_the_server_replaces_our_own(history: History) -> None:
    snapshot = {"item_id": "msg_2", "kind": "message", "role": "assistant", "content": [text("all")]}
    history.client(prompt(1, text("hi")))
    history.agent(chunk("al"))
    history.server(notice("_sandboxagent/item/completed", item=snapshot))
    history.agent(result(1, {"stopReason": "end_turn"}))
    history.server(notice("_sandboxagent/item/completed", item=snapshot))
    completed = [e for e in of_type(convert(history), "item.completed") if e.data["item"]["role"] != "user"]
    assert [event.data["item"]["content"] for event in completed] == [[text("all")]]


def test_error_comes_from_an_error_answer_with_code_and_details(history: History) -> None:
    history.client(request(4, "session/set_mode", modeId="x"))
    history.agent(error(4, -32602, "no such mode", {"known": ["a"]}))
    (event,) = convert(history)
    assert event.type == "error"
    assert event.data == {"message": "no such mode", "code": "-32602", "details": {"known": ["a"]}}
    assert event.source == "agent"


def test_error_prefers_the_old_string_type(history: History) -> None:
    history.client(request(4, "session/set_mode"))
    history.agent(error(4, -32000, "no", {"_meta": {"sandbox-agent/errorType": "timeout"}}))
    assert convert(history)[0].data["code"] == "timeout"


def test_error_comes_from_our_runtime_notice(history: History) -> None:
    history.server(notice("_sandboxagent/error", message="disk full", code="store_failed", details={"a": 1}))
    (event,) = convert(history)
    assert event.data == {"message": "disk full", "code": "store_failed", "details": {"a": 1}}
    assert event.source == "daemon"


def test_error_is_not_made_of_a_client_refusing_the_agents_file_read(history: History) -> None:
    history.agent(request(1, "fs/read_text_file", path="/none"))
    history.client(error(1, -32000, "not found"))
    assert convert(history) == []


def test_permission_requested_names_the_request_and_what_the_agent_wants(history: History) -> None:
    offered = options("allow_once")
    history.agent(
        request(0, "session/request_permission", toolCall={"toolCallId": "c", "title": "rm"}, options=offered)
    )
    (event,) = convert(history)
    assert event.type == "permission.requested"
    assert event.data == {
        "permission_id": "0",
        "action": "rm",
        "status": "requested",
        "metadata": {"toolCall": {"toolCallId": "c", "title": "rm"}, "options": offered},
    }


def test_permission_requested_with_only_a_call_id_remembers_the_tools_title(history: History) -> None:
    history.agent(update("tool_call", toolCallId="c", title="Run make", kind="execute"))
    history.agent(request(5, "session/request_permission", toolCall={"toolCallId": "c"}, options=[]))
    assert convert(history)[-1].data["action"] == "Run make"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("allow_once", "accept"),
        ("allow_always", "accept_for_session"),
        ("reject_once", "reject"),
        ("reject_always", "reject"),
    ],
)
def test_permission_resolved_has_the_status_of_the_chosen_options_kind(
    history: History, kind: str, status: str
) -> None:
    offered = options("allow_once", "allow_always", "reject_once", "reject_always")
    history.agent(request(5, "session/request_permission", toolCall={"title": "rm"}, options=offered))
    history.client(result(5, selected(f"id-{kind}")))
    event = convert(history)[-1]
    assert event.type == "permission.resolved"
    assert (event.data["permission_id"], event.data["action"], event.data["status"]) == ("5", "rm", status)
    assert event.data["metadata"] == {"outcome": "selected", "optionId": f"id-{kind}", "optionKind": kind}
    assert event.source == "daemon"


@pytest.mark.parametrize("answer", [result(5, {"outcome": {"outcome": "cancelled"}}), error(5, -32800, "gone")])
def test_permission_resolved_is_a_reject_when_cancelled_or_refused(history: History, answer: Any) -> None:
    history.agent(request(5, "session/request_permission", toolCall={}, options=options("allow_once")))
    history.server(answer)
    events = convert(history)
    assert types(events) == ["permission.requested", "permission.resolved"]
    assert events[-1].data["status"] == "reject"


def test_permission_resolved_comes_when_the_agent_withdraws_it_and_not_again(history: History) -> None:
    history.agent(request(5, "session/request_permission", toolCall={}, options=options("allow_once")))
    history.agent(notice("$/cancel_request", requestId=5))
    history.client(result(5, selected("id-allow_once")))
    events = convert(history)
    assert types(events) == ["permission.requested", "permission.resolved"]
    assert events[-1].data["status"] == "reject"


def test_permission_resolved_is_told_from_a_prompt_with_the_same_id(history: History) -> None:
    history.client(prompt(5, text("hi")))
    history.agent(request(5, "session/request_permission", toolCall={}, options=options("allow_once")))
    history.server(result(5, selected("id-allow_once")))
    history.agent(result(5, {"stopReason": "end_turn"}))
    assert types(convert(history))[-2:] == ["permission.resolved", "turn.ended"]


def test_question_requested_carries_prompt_and_options(history: History) -> None:
    history.agent(request(7, "_sandboxagent/session/request_question", prompt="Which?", options=["a", {"label": "b"}]))
    (event,) = convert(history)
    assert event.type == "question.requested"
    assert event.data == {
        "question_id": "7",
        "prompt": "Which?",
        "options": ["a", "b"],
        "response": None,
        "status": "requested",
    }


def test_question_resolved_keeps_the_multi_select_shape(history: History) -> None:
    history.agent(request(7, "_sandboxagent/session/request_question", question_id="q1", prompt="Which?"))
    meta = {"sandboxagent.dev": {"answers": [["a", "b"], ["c"]]}}
    history.client(result(7, {"outcome": "answered", "_meta": meta}))
    event = convert(history)[-1]
    assert event.type == "question.resolved"
    assert event.data["question_id"] == "q1"
    assert (event.data["status"], event.data["response"]) == ("answered", "a, b, c")
    assert event.data["answers"] == [["a", "b"], ["c"]]


@pytest.mark.parametrize("outcome", ["rejected", {"outcome": "rejected"}, {"outcome": "cancelled"}])
def test_question_resolved_may_be_a_rejection(history: History, outcome: Any) -> None:
    history.agent(request(7, "_sandboxagent/session/request_question", prompt="Which?"))
    history.client(result(7, {"outcome": outcome}))
    event = convert(history)[-1]
    assert (event.type, event.data["status"], event.data["response"]) == (
        "question.resolved",
        "rejected",
        None,
    )


def test_agent_unparsed_carries_error_location_and_hash(history: History) -> None:
    history.server(notice("_sandboxagent/agent/unparsed", error="not JSON", location="stdout", raw_hash="ab"))
    (event,) = convert(history)
    assert event.type == "agent.unparsed"
    assert event.data == {"error": "not JSON", "location": "stdout", "raw_hash": "ab"}


def completed_content(history: History) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = of_type(convert(history), "item.completed")[-1].data["item"]["content"]
    return content


def tool_done(**fields: Any) -> dict[str, Any]:
    return update("tool_call_update", toolCallId="c1", status="completed", **fields)


def message_with(history: History, block: dict[str, Any]) -> list[dict[str, Any]]:
    history.client(prompt(1, text("hi")))
    history.agent(update("agent_message_chunk", content=block))
    history.agent(result(1, {"stopReason": "end_turn"}))
    return completed_content(history)


def test_part_text(history: History) -> None:
    assert message_with(history, text("x")) == [{"type": "text", "text": "x"}]


def test_part_json_from_an_embedded_resource(history: History) -> None:
    resource = {"uri": "x:", "mimeType": "application/json", "text": '{"a":[1]}'}
    assert message_with(history, {"type": "resource", "resource": resource}) == [{"type": "json", "json": {"a": [1]}}]


def test_part_tool_call_prefers_the_tool_name_of_meta(history: History) -> None:
    meta = {"sandboxagent.dev": {"toolName": "read_file"}}
    history.agent(update("tool_call", toolCallId="c1", title="Read a", rawInput={"p": "ä"}, _meta=meta))
    history.agent(tool_done())
    assert completed_content(history)[0] == {
        "type": "tool_call",
        "name": "read_file",
        "arguments": '{"p":"ä"}',
        "call_id": "c1",
    }


def test_part_tool_result_falls_back_to_the_text_of_the_content(history: History) -> None:
    history.agent(tool_done(content=[{"type": "content", "content": text("out")}]))
    assert completed_content(history)[1] == {"type": "tool_result", "call_id": "c1", "output": "out"}


@pytest.mark.parametrize(
    ("old", "action", "diff"),
    [
        (None, "write", "--- /dev/null\n+++ /a\n@@ -0,0 +1 @@\n+new"),
        ("old\n", "patch", "--- /a\n+++ /a\n@@ -1 +1 @@\n-old\n+new"),
    ],
)
def test_part_file_ref_from_a_diff(history: History, old: str | None, action: str, diff: str) -> None:
    change = {"type": "diff", "path": "/a", "oldText": old, "newText": "new\n"}
    history.agent(tool_done(kind="edit", content=[change]))
    assert completed_content(history)[-1] == {
        "type": "file_ref",
        "path": "/a",
        "action": action,
        "diff": diff,
    }


def test_part_file_ref_from_a_read(history: History) -> None:
    history.agent(tool_done(kind="read", locations=[{"path": "/a", "line": 3}]))
    assert completed_content(history)[-1] == {
        "type": "file_ref",
        "path": "/a",
        "action": "read",
        "diff": None,
    }


@pytest.mark.parametrize("visibility", ["public", "private"])
def test_part_reasoning(history: History, visibility: str) -> None:
    block = {**text("hm"), "_meta": {"sandboxagent.dev": {"reasoningVisibility": visibility}}}
    history.client(prompt(1, text("hi")))
    history.agent(update("agent_thought_chunk", content=block))
    history.agent(result(1, {"stopReason": "end_turn"}))
    assert completed_content(history) == [{"type": "reasoning", "text": "hm", "visibility": visibility}]


def test_part_image(history: History) -> None:
    block = {"type": "image", "uri": "/tmp/a.png", "mimeType": "image/png", "data": "AA=="}
    assert message_with(history, block) == [{"type": "image", "path": "/tmp/a.png", "mime": "image/png"}]


def test_part_image_without_an_address_is_a_data_uri(history: History) -> None:
    parts = message_with(history, {"type": "image", "mimeType": "image/png", "data": "AA=="})
    assert parts[0]["path"] == "data:image/png;base64,AA=="


def test_part_status(history: History) -> None:
    meta = {"sandboxagent.dev": {"status": {"label": "Running tests", "detail": "3 of 10"}}}
    history.agent(update("session_info_update", _meta=meta))
    events = convert(history)
    assert types(events) == ["item.started", "item.completed"]
    assert events[-1].data["item"]["kind"] == "status"
    assert events[-1].data["item"]["content"] == [{"type": "status", "label": "Running tests", "detail": "3 of 10"}]


def test_the_envelope_of_an_event_has_every_field(history: History) -> None:
    history.agent(chunk("a"))
    history.server(notice("_sandboxagent/error", message="x"))
    event = convert(history, native_session_id="n")[-1]
    assert msgspec.json.decode(msgspec.json.encode(event)) == {
        "event_id": "evt_2001",
        "sequence": 2001,
        "time": "2023-11-14T22:13:22.000Z",
        "session_id": "alias",
        "native_session_id": "n",
        "source": "daemon",
        "synthetic": False,
        "type": "error",
        "data": {"message": "x", "code": None, "details": None},
    }


def test_raw_is_the_envelope_when_asked_for(history: History) -> None:
    entry = history.agent(chunk("a"))
    for event in convert(history, include_raw=True):
        assert isinstance(event.raw, msgspec.Raw)
        assert bytes(event.raw) == entry.envelope


def test_a_carried_legacy_event_keeps_its_id_and_native_session(history: History) -> None:
    legacy = {"eventId": "evt_old", "sequence": 42, "synthetic": True, "nativeSessionId": "thread"}
    history.server(notice("_sandboxagent/error", message="x", _meta={"sandboxagent.dev": {"legacyEvent": legacy}}))
    (event,) = convert(history)
    assert (event.event_id, event.native_session_id, event.synthetic) == ("evt_old", "thread", True)
    assert event.sequence == 1001


def test_half_a_surrogate_pair_in_a_chunk_still_makes_a_delta(history: History) -> None:
    line = msgspec.json.encode(chunk("MARK")).replace(b"MARK", rb"ok \ud83d \\ud83d")
    history.agent(line)
    assert convert(history)[-1].data["delta"] == "ok \ufffd \\ud83d"


@pytest.mark.parametrize("depth", [900, 990, 100_000])
def test_a_payload_nested_deep_neither_raises_nor_stops_what_follows(history: History, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    history.agent(b'{"method":"_sandboxagent/error","params":{"message":"x","details":%s}}' % deep)
    history.agent(chunk("after"))
    events = convert(history)
    assert events[-1].data["delta"] == "after"
    msgspec.json.encode(events)


def long_history() -> History:
    history = History()
    for turn in range(5):
        history.client(prompt(turn, text("hi")))
        history.agent(chunk("a"))
        history.agent(update("tool_call", toolCallId=f"c{turn}", title="t"))
        history.agent(tool_done(rawOutput=1))
        history.agent(chunk("b"))
        history.agent(result(turn, {"stopReason": "end_turn"}))
    return history


def test_the_same_history_gives_the_same_events() -> None:
    assert convert(long_history()) == convert(long_history())


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
def test_paging_by_the_last_sequence_gives_every_event_once(limit: int) -> None:
    history = long_history()
    everything = convert(history)
    got: list[UniversalEvent] = []
    has_more = True
    while has_more:
        page = EventPage(UniversalEvents("alias"), after=got[-1].sequence if got else 0, limit=limit)
        for entry in history.entries:
            if not page.feed(entry):
                break
        assert len(page.events) <= limit
        got += page.events
        has_more = page.has_more
    assert got == everything


def test_a_page_beyond_the_end_is_empty() -> None:
    page = EventPage(UniversalEvents("alias"), after=10**9, limit=5)
    for entry in long_history().entries:
        assert page.feed(entry) is True
    assert (page.events, page.has_more) == ([], False)


def test_sequences_do_not_move_when_the_beginning_of_a_history_is_gone() -> None:
    history = long_history()
    whole = {event.event_id: event.type for event in convert(history)}
    history.entries = history.entries[6:]
    trimmed = {event.event_id: event.type for event in convert(history)}
    assert trimmed
    assert trimmed.items() <= whole.items()


def test_more_open_items_than_the_limit_still_number_strictly_upwards(history: History) -> None:
    history.client(prompt(1, text("hi")))
    for index in range(OPEN_LIMIT + 50):
        history.agent(update("tool_call", toolCallId=f"c{index}", title="t"))
    history.agent(result(1, {"stopReason": "end_turn"}))
    events = convert(history)
    sequences = [event.sequence for event in events]
    assert all(a < b for a, b in pairwise(sequences))
    assert len(of_type(events, "item.completed")) == OPEN_LIMIT + 51


@settings(max_examples=150, deadline=None)
@given(histories)
def test_any_history_converts_to_events_that_encode_and_number_upwards(
    drawn: list[tuple[Source, bytes]],
) -> None:
    converter = UniversalEvents("alias", include_raw=True)
    last = 0
    for entry in entries_of(drawn):
        for event in converter.feed(entry):
            assert event.type in EVENT_TYPES
            assert event.sequence > last
            last = event.sequence
            msgspec.json.decode(msgspec.json.encode(event), type=UniversalEvent)
