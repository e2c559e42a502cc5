"""A record of version 2 is read whole by the folds that are written for version 1."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sandbox_agent.history.transcript import MarkdownTranscript, TranscriptHead
from sandbox_agent.history.universal import UniversalEvents
from sandbox_agent.history.version_1 import AsVersion1, ReadEntry

Message = dict[str, Any]


def text(words: str) -> Message:
    return {"type": "text", "text": words}


def update(name: str, /, **members: Any) -> tuple[str, Message]:
    params = {"sessionId": "s", "update": {"sessionUpdate": name, **members}}
    return "agent", {"jsonrpc": "2.0", "method": "session/update", "params": params}


def prompt(key: int, words: str) -> tuple[str, Message]:
    params = {"sessionId": "s", "prompt": [text(words)]}
    return "client", {"jsonrpc": "2.0", "id": key, "method": "session/prompt", "params": params}


def answer(key: int, **result: Any) -> tuple[str, Message]:
    return "agent", {"jsonrpc": "2.0", "id": key, "result": result}


def turn(key: int, *told: tuple[str, Message], **idle: Any) -> list[tuple[str, Message]]:
    """A turn as version 2 has it."""
    return [
        prompt(key, f"question {key}"),
        update("user_message", messageId=f"u{key}", content=[text(f"question {key}")]),
        update("state_update", state="running"),
        answer(key, messageId=f"u{key}"),
        *told,
        update("state_update", state="idle", **idle),
    ]


def entries(said: list[tuple[str, Message]]) -> list[ReadEntry]:
    return [
        ReadEntry(number, 0.0, source, msgspec.json.encode(message)) for number, (source, message) in enumerate(said, 1)
    ]


def transcript(said: list[tuple[str, Message]]) -> str:
    written = MarkdownTranscript(TranscriptHead(session_id="s", agent="a"))
    return "".join([*(written.feed(entry) for entry in entries(said)), written.finish()])


def test_what_was_said_in_version_1_passes_as_it_is() -> None:
    said = [
        prompt(1, 'say "state_update"'),
        update("agent_message_chunk", content=text('"state_update"'), messageId="m"),
        answer(1, stopReason="end_turn"),
    ]
    reader = AsVersion1(is_gathered=True)
    assert [read for entry in entries(said) for read in reader.feed(entry)] == entries(said)


def test_a_turn_ends_with_its_idle_and_not_with_its_acknowledgement() -> None:
    said = turn(1, update("agent_message_chunk", messageId="a", content=text("hi")), stopReason="max_tokens")
    converter = UniversalEvents("s")
    events = {entry.sequence: [event.type for event in converter.feed(entry)] for entry in entries(said)}
    assert "turn.ended" not in events[4]
    assert events[6][-2:] == ["item.completed", "turn.ended"]
    assert "Turn ended: max\\_tokens" in transcript(said)


def test_whole_messages_replace_null_clears_and_chunks_are_joined() -> None:
    written = transcript(
        turn(
            1,
            update("agent_message_chunk", messageId="a", content=text("dra")),
            update("agent_message_chunk", messageId="a", content=text("ft")),
            update("agent_message", messageId="b", content=[text("gone")]),
            update("agent_message", messageId="a", content=[text("final")]),
            update("agent_message_chunk", messageId="a", content=text(" words")),
            update("agent_message", messageId="b", content=None),
        )
    )
    assert "> final words\n" in written
    assert "dra" not in written
    assert "gone" not in written


def test_a_tool_call_is_shown_as_it_stands_at_the_end() -> None:
    written = transcript(
        turn(
            1,
            update("tool_call_update", toolCallId="t", title="Look", kind="read", status="pending"),
            update("tool_call_content_chunk", toolCallId="t", content={"type": "content", "content": text("one ")}),
            update("tool_call_content_chunk", toolCallId="t", content={"type": "content", "content": text("two")}),
            update("tool_call_update", toolCallId="t", status="completed", title="Looked"),
        )
    )
    assert written.count("**Tool:**") == 1
    assert "Looked" in written
    assert "one" in written
    assert "two" in written


def test_the_users_words_stand_once_and_those_of_another_time_too() -> None:
    before = [update("user_message", messageId="u0", content=[text("earlier")]), update("state_update", state="idle")]
    written = transcript([*before, *turn(1)])
    assert written.count("earlier") == 1
    assert written.count("question 1") == 1


def test_plans_and_permissions_are_shown() -> None:
    plan = {"type": "items", "planId": "p", "entries": [{"content": "step", "priority": "high", "status": "pending"}]}
    call = {"toolCallId": "t", "title": "Touch", "kind": "edit"}
    asked: Message = {
        "sessionId": "s",
        "title": "Touch it?",
        "subject": {"type": "tool_call", "toolCall": call},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}],
    }
    chosen = {"outcome": {"outcome": "selected", "optionId": "y"}}
    written = transcript(
        turn(
            1,
            update("plan_update", plan=plan),
            ("agent", {"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": asked}),
            ("client", {"jsonrpc": "2.0", "id": 7, "result": chosen}),
        )
    )
    assert "- [ ] step" in written
    assert "**Permission asked:** Touch" in written
    assert "Yes" in written


@pytest.mark.parametrize("is_gathered", [True, False])
def test_an_error_ends_the_turn_and_a_change_of_version_is_followed(is_gathered: bool) -> None:
    failed = turn(1, stopReason="error", error={"code": -32603, "message": "broke"})
    later = [prompt(2, "again"), update("agent_message_chunk", content=text("old")), answer(2, stopReason="end_turn")]
    reader = AsVersion1(is_gathered=is_gathered)
    read = [msgspec.json.decode(one.envelope) for entry in entries([*failed, *later]) for one in reader.feed(entry)]
    answers = [message for message in read if "method" not in message]
    assert [message.get("error", message.get("result")) for message in answers] == [
        {"code": -32603, "message": "broke"},
        {"stopReason": "end_turn"},
    ]
