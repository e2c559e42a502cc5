from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sandbox_agent.history.transcript import MarkdownTranscript, TranscriptHead, jsonl_line
from sandbox_agent.store.base import Entry, Source
from support.history import (
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

HEAD = TranscriptHead(session_id="s-1", agent="mock", title="My *title*", cwd="/work dir", created=1_700_000_000.0)


@pytest.fixture
def history() -> History:
    return History()


def markdown(history: History, head: TranscriptHead = HEAD) -> str:
    transcript = MarkdownTranscript(head)
    pieces = [transcript.feed(entry) for entry in history.entries]
    return "".join(pieces) + transcript.finish()


def tokens(page: str) -> list[Token]:
    return MarkdownIt("commonmark").parse(page)


def flat(page: str) -> list[Token]:
    return [inner for token in tokens(page) for inner in (token, *(token.children or []))]


def headings(page: str) -> list[str]:
    found = tokens(page)
    opened = [i for i, token in enumerate(found) if token.type == "heading_open" and token.level == 0]
    return ["".join(child.content for child in found[i + 1].children or []) for i in opened]


def code_blocks(page: str) -> list[tuple[str, str]]:
    return [(token.info, token.content) for token in tokens(page) if token.type == "fence"]


def test_jsonl_has_the_envelope_byte_for_byte(history: History) -> None:
    entry = history.agent(b'{ "jsonrpc":"2.0","method":"x","params":{"n":1.50,"s":"\\ud83d"} }')
    assert jsonl_line(entry) == (
        b'{"sequence":1,"time":"2023-11-14T22:13:21.000Z","source":"agent","envelope":' + entry.envelope + b"}\n"
    )


def test_jsonl_keeps_an_envelope_with_line_breaks_on_one_line() -> None:
    line = jsonl_line(Entry(7, 0.0, "client", b'{\r\n "a":\n "b\\n" }\n'))
    assert line.count(b"\n") == 1
    assert msgspec.json.decode(line)["envelope"] == {"a": "b\n"}


def test_the_head_names_title_agent_directory_and_creation(history: History) -> None:
    page = markdown(history)
    assert headings(page) == ["My *title*"]
    for fact in (
        "- Session: `s-1`",
        "- Agent: `mock`",
        "- Directory: `/work dir`",
        "- Created: `2023-11-14T22:13:20.000Z`",
    ):
        assert fact in page


def test_a_session_without_a_title_has_a_heading(history: History) -> None:
    assert headings(markdown(history, TranscriptHead(session_id="s", agent="a"))) == ["Session"]


def test_a_turn_shows_prompt_joined_answer_thoughts_and_stop_reason(history: History) -> None:
    history.client(prompt(1, text("What is\nthis?")))
    history.agent(chunk("let me ", "agent_thought_chunk"))
    history.agent(chunk("see", "agent_thought_chunk"))
    for piece in ("It ", "is ", "**it**."):
        history.agent(chunk(piece))
    history.agent(result(1, {"stopReason": "end_turn"}))
    page = markdown(history)
    assert headings(page)[1:] == ["Turn 1"]
    assert "**User**\n\n> What is\n> this?\n" in page
    assert "**Thought**\n\n> let me see\n" in page
    assert "**Agent**\n\n> It is **it**.\n" in page
    assert "*Turn ended: end\\_turn, 2023-11-14T22:13:27.000Z*" in page


def test_the_agents_echo_of_the_prompt_is_not_shown_twice(history: History) -> None:
    history.client(prompt(1, text("only once")))
    history.agent(chunk("only once", "user_message_chunk"))
    assert markdown(history).count("only once") == 1


def test_pieces_come_while_the_history_is_fed(history: History) -> None:
    transcript = MarkdownTranscript(HEAD)
    assert transcript.feed(history.client(prompt(1, text("first")))).endswith("> first\n\n")
    assert transcript.feed(history.agent(chunk("a"))) == ""
    written = transcript.feed(history.agent(update("tool_call", toolCallId="c", title="t")))
    assert written == "**Agent**\n\n> a\n\n"


def test_a_tool_call_shows_kind_status_input_output_and_diff(history: History) -> None:
    history.agent(update("tool_call", toolCallId="c", title="Edit a", kind="edit", rawInput={"path": "/a"}))
    content = [
        {"type": "content", "content": text("done\n")},
        {"type": "diff", "path": "/a", "oldText": "x\n", "newText": "y\n"},
    ]
    history.agent(update("tool_call_update", toolCallId="c", status="completed", content=content))
    page = markdown(history)
    assert "**Tool:** Edit a (`edit`, `completed`)" in page
    assert code_blocks(page) == [
        ("json", '{\n  "path": "/a"\n}\n'),
        ("", "done\n"),
        ("diff", "--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y\n"),
    ]


def test_a_tool_call_without_content_shows_its_raw_output(history: History) -> None:
    history.agent(update("tool_call", toolCallId="c", title="t", rawOutput={"code": 0}, status="failed"))
    page = markdown(history)
    assert "`failed`" in page
    assert code_blocks(page) == [("json", '{\n  "code": 0\n}\n')]


def test_a_tool_call_that_never_ended_is_shown_at_the_turns_end(history: History) -> None:
    history.client(prompt(1, text("go")))
    history.agent(update("tool_call", toolCallId="c", title="Sleep", status="in_progress"))
    history.agent(result(1, {"stopReason": "cancelled"}))
    page = markdown(history)
    assert page.index("Sleep") < page.index("Turn ended: cancelled")


def test_a_plan_is_a_checklist(history: History) -> None:
    entries = [
        {"content": "read", "status": "completed"},
        {"content": "write", "status": "in_progress"},
        {"content": "test", "status": "pending"},
    ]
    history.agent(update("plan", entries=entries))
    assert "**Plan**\n\n- [x] read\n- [ ] write (in progress)\n- [ ] test\n" in markdown(history)


def test_a_permission_shows_who_answered_and_how(history: History) -> None:
    asked = {
        "toolCall": {"toolCallId": "c", "title": "Run make", "kind": "execute"},
        "options": options("allow_once"),
    }
    history.agent(request(0, "session/request_permission", **asked))
    history.client(result(0, selected("id-allow_once")))
    history.agent(request(1, "session/request_permission", **asked))
    automatic = {**selected("id-allow_once"), "_meta": {"sandboxagent.dev": {"reason": "policy"}}}
    history.server(result(1, automatic))
    page = markdown(history)
    assert page.count("**Permission asked:** Run make (`execute`)") == 2
    assert "**Permission answered** by a client, Run make: Name allow\\_once (`allow_once`)\n" in page
    assert "**Permission answered** automatically by the server, Run make: Name" in page
    assert "(`allow_once`): policy\n" in page


def test_a_question_and_its_answer_are_shown(history: History) -> None:
    history.agent(request(3, "_sandboxagent/session/request_question", prompt="Which?", options=["a", "b"]))
    history.client(result(3, {"outcome": "answered", "answers": [["a"]]}))
    page = markdown(history)
    assert "> Which?\n\n- a\n- b\n" in page
    assert '**Question answered:** `[["a"]]`' in page


def test_errors_ends_and_unreadable_lines_are_shown(history: History) -> None:
    history.client(prompt(1, text("go")))
    history.agent(error(1, -32000, "no login", {"hint": "log in"}))
    history.server(notice("_sandboxagent/error", code="disk", message="full"))
    history.server(notice("_sandboxagent/agent/unparsed", error="not JSON", location="stdout"))
    history.server(notice("_sandboxagent/session/ended", reason="terminated", message="by hand"))
    page = markdown(history)
    assert "**Error** `-32000` no login" in page
    assert code_blocks(page) == [("json", '{\n  "hint": "log in"\n}\n')]
    assert "**Error** `disk` full" in page
    assert "**Unreadable line from the agent:** not JSON" in page
    assert "**Session ended:** terminated: by hand" in page


def test_a_fence_is_longer_than_any_inside(history: History) -> None:
    hostile = "a\n```\n# out\n``````\n<script>"
    content = [{"type": "content", "content": text(hostile)}]
    history.agent(update("tool_call", toolCallId="c", title="t", status="completed", content=content))
    page = markdown(history)
    assert code_blocks(page) == [("", f"{hostile}\n")]
    assert headings(page) == ["My *title*"]


def test_code_in_the_agents_text_is_kept_as_written(history: History) -> None:
    history.agent(chunk("See:\n```ts\nconst a: Map<string, X> = b[0]: c\n```\nafter <b>"))
    page = markdown(history)
    assert code_blocks(page) == [("ts", "const a: Map<string, X> = b[0]: c\n")]
    assert "> after &lt;b>" in page


def test_a_code_block_left_open_ends_with_the_text(history: History) -> None:
    history.agent(chunk("```\nstill code"))
    history.server(notice("_sandboxagent/error", message="outside"))
    page = markdown(history)
    assert code_blocks(page) == [("", "still code\n")]
    assert "\n**Error** outside" in page


HOSTILE = [
    "# heading", "</details>", "<script>alert(1)</script>", "<!--", "```", "~~~", "~~~ `x`", "````md",
    "> quote", "- item", "1. one", "    indented", "\t", "\n", "\r", "\r\n", "\x00", "\x0b", "---", "===",
    "[x]: http://evil", "[a](b)", "`", "``", "<div>", "<?php", "<![CDATA[", "\\", "&lt;", "| a |", "**",
    "\u2028", "word", " ", "  ", "- ```", "> ~~~", "\u0085",
]  # fmt: skip
hostile_text = st.lists(st.sampled_from(HOSTILE), max_size=14).map("\n".join) | st.lists(
    st.sampled_from(HOSTILE), max_size=10
).map("".join)


def hostile_history(evil: str, other: str) -> History:
    history = History()
    history.client(prompt(1, text(evil), {"type": "resource_link", "uri": other, "name": evil}))
    history.agent(chunk(other, "agent_thought_chunk"))
    history.agent(chunk(evil))
    history.agent(update("plan", entries=[{"content": other, "status": evil}]))
    content: list[dict[str, Any]] = [
        {"type": "content", "content": text(other)},
        {"type": "diff", "path": evil, "oldText": other, "newText": evil},
        {"type": "terminal", "terminalId": evil},
    ]
    call = {"title": evil, "kind": other, "rawInput": {"a": evil}, "locations": [{"path": evil}]}
    history.agent(update("tool_call", toolCallId="c", status="completed", content=content, **call))
    asked = {
        "toolCall": {"title": evil, "kind": other},
        "options": [{"optionId": evil, "name": other, "kind": evil}],
    }
    history.agent(request(0, "session/request_permission", **asked))
    history.client(result(0, selected(evil)))
    history.agent(request(1, "_sandboxagent/session/request_question", prompt=evil, options=[other]))
    history.client(result(1, {"outcome": evil}))
    history.agent(error(1, -1, evil, other))
    history.server(notice("_sandboxagent/error", message=evil, code=other, details=evil))
    history.client(prompt(2, text(other)))
    history.agent(result(2, {"stopReason": evil}))
    history.server(notice("_sandboxagent/session/ended", reason=evil, message=other))
    return history


@settings(max_examples=150, deadline=None)
@given(hostile_text, hostile_text)
def test_hostile_content_makes_no_heading_no_html_and_no_link_of_ours(evil: str, other: str) -> None:
    head = TranscriptHead(session_id=evil, agent=other, title="Title", cwd=evil)
    page = markdown(hostile_history(evil, other), head)
    assert headings(page) == ["Title", "Turn 1", "Turn 2"]
    assert not [token for token in flat(page) if token.type in ("html_block", "html_inline")]
    environment: dict[str, Any] = {}
    MarkdownIt("commonmark").parse(page, environment)
    assert not environment.get("references")
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", page)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30))
def test_any_title_stays_one_line(title: str) -> None:
    page = markdown(History(), TranscriptHead(session_id="s", agent="a", title=title))
    assert len(headings(page)) == 1


@settings(max_examples=150, deadline=None)
@given(histories)
def test_any_history_has_a_transcript(drawn: list[tuple[Source, bytes]]) -> None:
    history = History()
    history.entries = entries_of(drawn)
    assert markdown(history).startswith("# My")
    for entry in history.entries:
        assert jsonl_line(entry).count(b"\n") == 1
