"""A history as OpenCode's events and messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.errors import InvalidParams
from sandbox_agent.history.opencode import Messages, SessionFold, SessionView, Told
from sandbox_agent.history.opencode.asks import Permission, Question
from sandbox_agent.history.opencode.blocks import block_of, part_of
from sandbox_agent.history.opencode.ids import Ids, read_session_id, session_id
from sandbox_agent.history.opencode.limits import OUTPUT_CHARS, TEXT_CHARS
from support.history import START, History, error, notice, request, result, text, update

VIEW = SessionView("ses_0123", "session:mock:s-1", "mock", "/work")


def fold(history: History) -> list[Told]:
    folding = SessionFold(VIEW)
    return [told for entry in history.entries for told in folding.feed(entry)]


def messages(history: History) -> list[dict[str, Any]]:
    collected = Messages()
    collected.apply(fold(history))
    return collected.listed()


def prompted(words: str = "hello", **meta: Any) -> History:
    history = History()
    more = {"_meta": {"sandboxagent.dev": {"opencode": meta}}} if meta else {}
    history.client(request(1, "session/prompt", prompt=[text(words)], **more))
    return history


def say(history: History, *chunks: str) -> None:
    for chunk in chunks:
        history.agent(update("agent_message_chunk", content=text(chunk)))


def end(history: History, **more: Any) -> None:
    history.agent(result(1, {"stopReason": "end_turn", **more}))


def tool_states(told: list[Told]) -> list[tuple[str, str]]:
    parts = [one.properties["part"] for one in told if one.type == "message.part.updated"]
    return [(part["id"], part["state"]["status"]) for part in parts if part["type"] == "tool"]


def test_a_turn_is_told_in_the_order_that_the_terminal_ui_expects() -> None:
    history = prompted()
    say(history, "Good ", "day")
    end(history)
    assert [one.type for one in fold(history)] == [
        "message.updated",
        "message.part.updated",
        "session.status",
        "message.updated",
        "message.part.updated",  # step-start
        "message.part.updated",  # an empty text, so that the deltas have a place
        "message.part.delta",
        "message.part.delta",
        "message.part.updated",  # the whole text
        "message.part.updated",  # step-finish
        "message.updated",
        "message.updated",  # the user's, with what the turn has changed
        "session.status",
        "session.idle",
    ]


def test_text_is_told_empty_then_by_deltas_then_whole() -> None:
    history = prompted()
    say(history, "Good ", "day")
    end(history)
    told = fold(history)
    texts = [
        one.properties["part"]["text"]
        for one in told
        if one.type == "message.part.updated" and one.properties["part"]["type"] == "text"
    ]
    assert texts == ["hello", "", "Good day"]
    assert [one.properties["delta"] for one in told if one.type == "message.part.delta"] == ["Good ", "day"]


def test_the_same_history_gives_the_same_ids_and_they_ascend() -> None:
    history = prompted()
    say(history, "a")
    history.agent(update("agent_thought_chunk", content=text("b")))
    history.agent(update("tool_call", toolCallId="c", title="Run", kind="execute", status="completed"))
    end(history)
    once, again = messages(history), messages(history)
    assert once == again
    ids = [part["id"] for message in once for part in message["parts"]]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert once[0]["info"]["id"] < once[1]["info"]["id"]
    other = SessionFold(SessionView("ses_0123", "session:mock:s-2", "mock", "/work"))
    elsewhere = [told.properties["info"]["id"] for told in other.feed(history.entries[0]) if "info" in told.properties]
    assert elsewhere[0] != once[0]["info"]["id"]


def test_thoughts_are_reasoning_and_not_text() -> None:
    history = prompted()
    history.agent(update("agent_thought_chunk", content=text("hm")))
    say(history, "yes")
    end(history)
    parts = messages(history)[1]["parts"]
    assert [(part["type"], part.get("text")) for part in parts[1:3]] == [("reasoning", "hm"), ("text", "yes")]
    assert parts[1]["time"]["end"] >= parts[1]["time"]["start"]


def test_a_tool_call_is_one_part_from_its_announcement_to_its_end() -> None:
    history = prompted()
    call = {"toolCallId": "c1", "title": "Run ls", "kind": "execute", "rawInput": {"command": ["ls", "-l a"]}}
    history.agent(update("tool_call", status="pending", **call))
    history.agent(update("tool_call_update", toolCallId="c1", status="in_progress"))
    content = [{"type": "content", "content": text("one file")}]
    history.agent(update("tool_call_update", toolCallId="c1", status="completed", content=content))
    end(history)
    states = tool_states(fold(history))
    assert [status for _, status in states] == ["pending", "running", "completed"]
    assert len({part for part, _ in states}) == 1
    part = messages(history)[1]["parts"][1]
    assert part["tool"] == "bash"
    assert part["callID"] == "c1"
    assert part["state"]["input"]["command"] == "ls '-l a'"
    assert part["state"]["output"] == part["state"]["metadata"]["output"] == "one file"


@pytest.mark.parametrize(
    ("call", "tool", "given"),
    [
        ({"kind": "read", "locations": [{"path": "/a"}]}, "read", {"filePath": "/a"}),
        ({"kind": "read", "rawInput": {"file_path": "/b", "offset": 2}}, "read", {"filePath": "/b", "offset": 2}),
        ({"kind": "search", "rawInput": {"pattern": "x"}}, "grep", {"pattern": "x"}),
        ({"kind": "fetch", "rawInput": {"url": "http://h/"}}, "webfetch", {"url": "http://h/"}),
        ({"kind": "fetch", "rawInput": {"query": "q"}}, "websearch", {"query": "q"}),
        ({"kind": "execute", "title": "make"}, "bash", {"command": "make"}),
        ({"kind": "edit", "rawInput": {"path": "/c"}}, "edit", {"filePath": "/c"}),
        ({"title": "Ask a friend"}, "Ask a friend", {}),
        ({"_meta": {"claudeCode": {"toolName": "Task"}}, "title": "x"}, "Task", {}),
        ({"rawInput": "no object", "kind": 7, "title": None, "locations": "no list", "content": 3}, "tool", {}),
    ],
)
def test_tools_have_the_names_and_inputs_that_opencode_draws(call: Any, tool: str, given: dict[str, Any]) -> None:
    history = prompted()
    history.agent(update("tool_call", toolCallId="c", **call))
    part = messages(history)[1]["parts"][1]
    assert part["tool"] == tool
    assert given.items() <= part["state"]["input"].items()


def test_a_diff_is_an_edit_with_a_patch_and_counts_among_the_changes() -> None:
    history = prompted()
    diff = {"type": "diff", "path": "/work/a.txt", "oldText": "one\ntwo\n", "newText": "one\n2\n"}
    history.agent(update("tool_call", toolCallId="c", kind="edit", status="pending", content=[diff]))
    history.agent(update("tool_call_update", toolCallId="c", status="completed", content=[diff]))
    end(history)
    folding = SessionFold(VIEW)
    told = [one for entry in history.entries for one in folding.feed(entry)]
    part = messages(history)[1]["parts"][1]
    assert part["tool"] == "edit"
    assert part["state"]["input"]["filePath"] == "/work/a.txt"
    assert "-two" in part["state"]["metadata"]["diff"]
    (changed,) = folding.changes.listed()
    assert (changed["file"], changed["additions"], changed["deletions"]) == ("/work/a.txt", 1, 1)
    assert Told("file.edited", {"file": "/work/a.txt"}) in told
    assert [one.type for one in told].count("session.diff") == 1
    (changed,) = messages(history)[0]["info"]["summary"]["diffs"]
    assert (changed["file"], changed["additions"], changed["deletions"]) == ("/work/a.txt", 1, 1)


def test_a_plan_is_the_todo_list() -> None:
    history = prompted()
    entry = {"content": "Look", "priority": "high", "status": "in_progress"}
    history.agent(update("plan", entries=[entry, {"content": 3}, "nonsense"]))
    told = next(one for one in fold(history) if one.type == "todo.updated")
    assert told.properties["todos"][0] == {"content": "Look", "priority": "high", "status": "in_progress"}
    assert all(set(todo) == {"content", "priority", "status"} for todo in told.properties["todos"])


def test_usage_becomes_tokens_and_cost() -> None:
    history = prompted()
    history.agent(update("usage_update", used=1000, size=2000, cost={"amount": 0.5, "currency": "USD"}))
    end(history, usage={"inputTokens": 5, "outputTokens": 40, "thoughtTokens": 2})
    info = messages(history)[1]["info"]
    assert info["cost"] == 0.5
    assert info["tokens"] == {
        "total": 1000,
        "input": 958,
        "output": 40,
        "reasoning": 2,
        "cache": {"read": 0, "write": 0},
    }
    assert messages(history)[1]["parts"][-1]["tokens"] == info["tokens"]


def asking(history: History, *kinds: str) -> Permission:
    options = [{"optionId": f"o-{kind}", "name": kind, "kind": kind} for kind in kinds]
    call = {"toolCallId": "c", "title": "Run ls", "kind": "execute", "rawInput": {"command": "ls"}}
    history.agent(update("tool_call", status="pending", **call))
    history.agent(request(9, "session/request_permission", toolCall=call, options=options))
    folding = SessionFold(VIEW)
    for entry in history.entries:
        folding.feed(entry)
    (asked,) = folding.asks.values()
    assert isinstance(asked, Permission)
    return asked


def test_a_permission_names_its_tool_call_and_what_may_be_chosen() -> None:
    history = prompted()
    asked = asking(history, "allow_once", "allow_always", "reject_once")
    told = next(one.properties for one in fold(history) if one.type == "permission.asked")
    assert told == asked.request
    assert told["id"].startswith("per_")
    assert (told["permission"], told["patterns"], told["always"]) == ("bash", ["ls"], ["*"])
    message = messages(history)[1]
    assert told["tool"] == {"messageID": message["info"]["id"], "callID": "c"}
    assert message["parts"][1]["state"]["status"] == "running"
    assert asked.result("always")["outcome"]["optionId"] == "o-allow_always"
    assert asked.result("reject")["outcome"]["optionId"] == "o-reject_once"


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (result(9, {"outcome": {"outcome": "selected", "optionId": "o-allow_once"}}), "once"),
        (result(9, {"outcome": {"outcome": "selected", "optionId": "o-allow_always"}}), "always"),
        (result(9, {"outcome": {"outcome": "selected", "optionId": "o-reject_once"}}), "reject"),
        (result(9, {"outcome": {"outcome": "cancelled"}}), "reject"),
        (result(9, "nonsense"), "reject"),
        (error(9, -1, "no"), "reject"),
    ],
)
def test_whoever_answers_a_permission_it_is_told_as_a_reply(answer: Any, reply: str) -> None:
    history = prompted()
    asking(history, "allow_once", "allow_always", "reject_once")
    history.client(answer)
    told = [one for one in fold(history) if one.type == "permission.replied"]
    assert [one.properties["reply"] for one in told] == [reply]


def test_a_permission_without_an_allowing_option_cannot_be_allowed() -> None:
    asked = asking(prompted(), "reject_once")
    with pytest.raises(InvalidParams, match="offers no option to allow"):
        asked.result("once")
    assert asking(prompted()).result("reject") == {"outcome": {"outcome": "cancelled"}}


def test_a_permission_that_is_withdrawn_is_closed() -> None:
    history = prompted()
    asking(history, "allow_once")
    history.agent(notice("$/cancel_request", requestId=9))
    assert [one.properties["reply"] for one in fold(history) if one.type == "permission.replied"] == ["reject"]


def test_a_question_is_asked_by_labels_and_answered_by_ids() -> None:
    history = prompted()
    options = [{"id": "r", "label": "Red"}, {"id": "g", "label": "Green", "description": "as grass"}]
    history.agent(request(9, "_sandboxagent/session/request_question", prompt="Which?", options=options))
    folding = SessionFold(VIEW)
    for entry in history.entries:
        folding.feed(entry)
    (asked,) = folding.asks.values()
    assert isinstance(asked, Question)
    (info,) = asked.request["questions"]
    assert [option["label"] for option in info["options"]] == ["Red", "Green"]
    answer = asked.result([["Green"]])
    assert answer["answers"] == [["g"]]
    history.client(result(9, answer))
    (told,) = [one for one in fold(history) if one.type == "question.replied"]
    assert told.properties["answers"] == [["Green"]]
    with pytest.raises(InvalidParams, match="1 questions were asked"):
        asked.result([])


def test_a_form_is_one_question_a_field_and_its_answers_are_of_the_fields_types() -> None:
    fields = {
        "name": {"type": "string", "title": "Name"},
        "age": {"type": "integer"},
        "sure": {"type": "boolean"},
        "hues": {"type": "array", "items": {"enum": ["red", "blue"]}},
    }
    history = prompted()
    history.agent(request(9, "elicitation/create", message="Who?", requestedSchema={"properties": fields}))
    folding = SessionFold(VIEW)
    for entry in history.entries:
        folding.feed(entry)
    (asked,) = folding.asks.values()
    assert isinstance(asked, Question)
    assert [info["multiple"] for info in asked.request["questions"]] == [False, False, False, True]
    answer = asked.result([["Ann"], ["7"], ["Yes"], ["red", "blue"]])
    assert answer == {"action": "accept", "content": {"name": "Ann", "age": 7, "sure": True, "hues": ["red", "blue"]}}
    with pytest.raises(InvalidParams, match="must be a number"):
        asked.result([["Ann"], ["seven"], ["Yes"], []])
    history.client(result(9, answer))
    (told,) = [one for one in fold(history) if one.type == "question.replied"]
    assert told.properties["answers"] == [["Ann"], ["7"], ["Yes"], ["red", "blue"]]


def test_a_cancelled_turn_is_aborted_and_its_tools_with_it() -> None:
    history = prompted()
    history.agent(update("tool_call", toolCallId="c", status="in_progress", kind="execute"))
    history.client(notice("session/cancel"))
    history.agent(result(1, {"stopReason": "cancelled"}))
    told = fold(history)
    assert [status for _, status in tool_states(told)] == ["running", "error"]
    info = messages(history)[1]["info"]
    assert info["error"]["name"] == "MessageAbortedError"
    assert "session.error" in [one.type for one in told]


def test_a_failed_turn_says_why() -> None:
    history = prompted()
    history.agent(error(1, -32000, "out of credit"))
    info = messages(history)[1]["info"]
    assert info["error"] == {"name": "UnknownError", "data": {"message": "out of credit"}}
    assert info["time"]["completed"]


def test_a_turn_that_nobody_ended_looks_the_same_before_and_after_the_next_prompt() -> None:
    history = prompted()
    say(history, "half a wo")
    folding, collected = SessionFold(VIEW), Messages()
    for entry in history.entries:
        collected.apply(folding.feed(entry))
    assert folding.is_open
    collected.apply(folding.interrupted())
    before = collected.listed()
    history.client(request(1, "session/prompt", prompt=[text("again")]))
    assert messages(history)[:2] == before
    assert before[1]["info"]["error"]["name"] == "MessageAbortedError"


def test_an_echo_of_the_prompt_is_not_a_message_but_a_loaded_conversation_is() -> None:
    history = prompted("hello")
    history.agent(update("user_message_chunk", content=text("hello")))
    end(history)
    assert len(messages(history)) == 2
    loaded = History()
    loaded.agent(update("user_message_chunk", content=text("once")))
    loaded.agent(update("agent_message_chunk", content=text("upon")))
    loaded.agent(update("user_message_chunk", content=text("a time")))
    told = messages(loaded)
    assert [message["info"]["role"] for message in told] == ["user", "assistant", "user"]
    assert told[1]["info"]["time"]["completed"]
    assert told[1]["info"]["parentID"] == told[0]["info"]["id"]


def test_a_tool_that_ends_after_its_turn_changes_its_own_part() -> None:
    history = prompted()
    history.agent(update("tool_call", toolCallId="c", kind="execute", status="in_progress"))
    end(history)
    history.agent(update("tool_call_update", toolCallId="c", status="completed"))
    states = tool_states(fold(history))
    assert [status for _, status in states] == ["running", "error", "completed"]
    assert len({part for part, _ in states}) == 1
    assert len(messages(history)) == 2


def test_call_ids_that_come_again_in_the_next_turn_are_other_parts() -> None:
    history = prompted()
    history.agent(update("tool_call", toolCallId="c", status="completed"))
    end(history)
    history.client(request(1, "session/prompt", prompt=[text("again")]))
    history.agent(update("tool_call", toolCallId="c", status="completed"))
    assert len({part for part, _ in tool_states(fold(history))}) == 2


def test_what_is_printed_in_a_terminal_is_the_output_of_its_tool_call() -> None:
    history = prompted()
    history.server(notice("_sandboxagent/terminal/output", terminalId="t", output="early "))
    content = [{"type": "terminal", "terminalId": "t"}]
    history.agent(update("tool_call", toolCallId="c", kind="execute", status="in_progress", content=content))
    history.server(notice("_sandboxagent/terminal/output", terminalId="t", output="late"))
    part = messages(history)[1]["parts"][1]
    assert part["state"]["metadata"]["output"] == "early late"


def test_the_clients_own_message_id_is_taken_if_it_fits_between_its_neighbours() -> None:
    good = Ids("elsewhere").next("msg", START + 2)
    assert messages(prompted(messageID=good))[0]["info"]["id"] == good
    for bad in ("msg_x", "ses_0123", 7, None, Ids("x").next("msg", START - 10**6), Ids("x").next("msg", START + 10**6)):
        assert messages(prompted(messageID=bad))[0]["info"]["id"] != bad
    history = prompted(messageID=good)
    end(history)
    meta = {"sandboxagent.dev": {"opencode": {"messageID": good}}}
    history.client(request(2, "session/prompt", prompt=[text("twice")], _meta=meta))
    ids = [message["info"]["id"] for message in messages(history)]
    assert len(set(ids)) == 4
    assert ids == sorted(ids)


def test_long_texts_and_outputs_are_bounded() -> None:
    history = prompted()
    for _ in range(3):
        say(history, "x" * (TEXT_CHARS // 2 + 1))
    content = [{"type": "content", "content": text("y" * (OUTPUT_CHARS * 3))}]
    big = {"content": "z" * 10**6}
    history.agent(update("tool_call", toolCallId="c", status="completed", content=content, rawInput=big))
    end(history)
    parts = messages(history)[1]["parts"]
    texts = [part for part in parts if part["type"] == "text"]
    assert len(texts) == 2
    assert sum(len(part["text"]) for part in texts) == 3 * (TEXT_CHARS // 2 + 1)
    tool = next(part for part in parts if part["type"] == "tool")
    assert len(tool["state"]["output"]) < OUTPUT_CHARS + 100
    assert len(tool["state"]["input"]["content"]) < 30_000


def test_the_newest_messages_and_those_before_one() -> None:
    history = History()
    for number in range(1, 4):
        history.client(request(number, "session/prompt", prompt=[text(str(number))]))
        history.agent(result(number, {"stopReason": "end_turn"}))
    told = fold(history)
    every = messages(history)
    newest = Messages(2)
    newest.apply(told)
    assert newest.listed() == every[-2:]
    assert newest.has_earlier
    earlier = Messages(2, before=every[-2]["info"]["id"])
    earlier.apply(told)
    assert earlier.listed() == every[2:4]


def test_a_history_of_version_2_reads_the_same() -> None:
    history = History()
    history.client(request(1, "session/prompt", prompt=[text("hello")]))
    history.agent(result(1, {"messageId": "m1"}))
    history.agent(update("state_update", state="running"))
    history.agent(update("agent_message_chunk", messageId="a1", content=text("Good day")))
    history.agent(update("state_update", state="idle", stopReason="end_turn"))
    told = messages(history)
    assert [message["info"]["role"] for message in told] == ["user", "assistant"]
    assert [part.get("text") for part in told[1]["parts"] if part["type"] == "text"] == ["Good day"]
    assert told[1]["info"]["finish"] == "stop"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "hello"},
        {"type": "text", "text": "a note", "synthetic": True},
        {"type": "file", "mime": "text/plain", "filename": "a b.txt", "url": "file:///work/a%20b.txt"},
        {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"},
    ],
)
def test_parts_of_a_prompt_come_back_as_they_were_sent(part: dict[str, Any]) -> None:
    assert part_of(block_of(part)) == part


@pytest.mark.parametrize("part", [{"type": "video"}, {}, {"type": "file", "mime": "image/png", "url": "data:nonsense"}])
def test_parts_that_cannot_be_sent_are_refused(part: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        block_of(part)


@given(agent=st.text("abcdefghijklmnop-", min_size=1), session=st.text(min_size=1, max_size=80), time=st.floats(0, 4e9))
def test_a_session_id_leads_back_to_its_session(agent: str, session: str, time: float) -> None:
    try:
        session.encode()
    except UnicodeEncodeError:
        return
    key = SessionKey(AgentId(agent), SessionId(session))
    assert read_session_id(session_id(key, time)) == key


@given(st.text(max_size=100))
def test_what_is_no_session_id_names_nothing_or_something_and_never_fails(given_id: str) -> None:
    read_session_id(given_id)
    read_session_id(f"ses_0123456789ab{given_id}")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "path", "x"]), inner),
    max_leaves=6,
)
KINDS = st.sampled_from(
    "agent_message_chunk agent_thought_chunk user_message_chunk tool_call tool_call_update plan usage_update "
    "available_commands_update current_mode_update config_option_update nonsense".split()
)
FIELDS = st.dictionaries(
    st.sampled_from(
        ["content", "toolCallId", "title", "kind", "status", "rawInput", "rawOutput", "locations", "entries", "used"]
    ),
    ANYTHING,
)
ENTRIES = st.lists(
    st.one_of(
        st.builds(lambda kind, fields: ("agent", update(kind, **fields)), KINDS, FIELDS),
        st.builds(lambda key, value: ("agent", result(key, value)), st.integers(0, 3), ANYTHING),
        st.builds(
            lambda key, value: ("client", request(key, "session/prompt", prompt=value)), st.integers(0, 3), ANYTHING
        ),
        st.builds(
            lambda key, method, params: ("agent", request(key, method, **params)),
            st.integers(0, 3),
            st.sampled_from(
                ["session/request_permission", "elicitation/create", "_sandboxagent/session/request_question"]
            ),
            st.dictionaries(st.sampled_from(["toolCall", "options", "requestedSchema", "prompt", "message"]), ANYTHING),
        ),
        st.builds(lambda params: ("server", notice("$/cancel_request", requestId=params)), ANYTHING),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(ENTRIES)
def test_whatever_agents_and_clients_say_the_fold_goes_on_and_its_ids_are_unique(entries: Any) -> None:
    history = History()
    for source, message in entries:
        history.add(source, message)
    told = fold(history)
    collected = Messages()
    for one in told:
        collected.apply([one])
    listed = collected.listed()
    assert listed == messages(history)
    ids = [message["info"]["id"] for message in listed] + [p["id"] for message in listed for p in message["parts"]]
    assert len(set(ids)) == len(ids)
    begun = set()
    for one in told:
        if one.type == "message.part.updated":
            begun.add(one.properties["part"]["id"])
        if one.type == "message.part.delta":
            assert one.properties["partID"] in begun  # the terminal UI drops a delta of a part that it does not know


def test_a_message_that_was_left_out_does_not_come_back_when_its_turn_is_over() -> None:
    history = prompted()
    say(history, "Good day")
    end(history)
    newest = Messages(1)
    newest.apply(fold(history))
    assert [message["info"]["role"] for message in newest.listed()] == ["assistant"]
