"""What readers of the other version see of a session, kind by kind."""

from __future__ import annotations

import base64
import sys
from typing import Any

from sandbox_agent.core.versions import UpdateTranslator, Version
from sandbox_agent.core.versions.gathering import MAX_GATHERED

V1, V2 = Version.V1, Version.V2
Update = dict[str, Any]


def up() -> UpdateTranslator:
    return UpdateTranslator("s", from_=V1, to=V2)


def down(*, is_replay: bool = False) -> UpdateTranslator:
    return UpdateTranslator("s", from_=V2, to=V1, is_replay=is_replay)


def told(translator: UpdateTranslator, *updates: Update, first: int = 0) -> list[Update]:
    """Entries of a history from `first` on; 0 for what stands in none."""
    places = [first + n if first else 0 for n in range(len(updates))]
    said = [translator.update({"sessionId": "s", "update": one}, at) for one, at in zip(updates, places, strict=True)]
    return [line["update"] for lines in said for line in lines]


def text(words: str) -> Update:
    return {"type": "text", "text": words}


def chunk(kind: str, words: str, **more: Any) -> Update:
    return {"sessionUpdate": f"{kind}_chunk", "content": text(words), **more}


def shown(updates: list[Update]) -> list[Update]:
    """Without those that change nothing for version 1."""
    return [update for update in updates if set(update) != {"sessionUpdate", "_meta"}]


def test_a_run_of_chunks_of_a_kind_is_one_message_and_turns_do_not_share_ids() -> None:
    translator = up()
    translator.prompt_sent(b"1")
    first = told(
        translator,
        chunk("agent_thought", "hm"),
        chunk("agent_message", "a"),
        chunk("agent_message", "b"),
        {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T"},
        chunk("agent_message", "c"),
    )
    ids = [update["messageId"] for update in first if "messageId" in update]
    assert ids[1] == ids[2]
    assert len(set(ids)) == 3
    translator.answered(b"0")  # to something else
    assert told(translator, chunk("agent_message", "still c"))[0]["messageId"] == ids[-1]
    translator.answered(b"1")
    late = told(translator, chunk("agent_message", "late"))[0]["messageId"]
    translator.prompt_sent(b"2")
    assert len({*ids, late, told(translator, chunk("agent_message", "d"))[0]["messageId"]}) == 5


def test_message_ids_are_the_same_for_whoever_reads_the_history_again() -> None:
    said = [chunk("agent_message", "a"), chunk("agent_thought", "b"), chunk("agent_thought", "c")]
    live, later = up(), up()
    assert told(live, *said, first=7) == told(later, *said, first=7)
    assert told(live, chunk("agent_thought", "d"), first=10)[0]["messageId"] == "sandboxagent:s.agent_thought.8"


def test_an_id_of_the_agents_own_is_left_alone() -> None:
    update = chunk("agent_message", "a", messageId="own")
    assert told(up(), update) == [update]


def test_the_first_update_of_a_tool_call_announces_it_to_version_1() -> None:
    translator = down()
    updates = told(
        translator,
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "name": "grep", "status": "pending"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "paused", "title": "Search"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "cancelled"},
    )
    assert [update["sessionUpdate"] for update in updates] == ["tool_call", "tool_call_update", "tool_call_update"]
    assert [update["status"] for update in updates] == ["pending", "in_progress", "failed"]
    assert updates[0]["title"] == "grep"
    assert "paused" in str(updates[1]["_meta"])


def test_tool_content_is_gathered_for_version_1() -> None:
    translator = down()
    items = [{"type": "content", "content": text(word)} for word in ("one", "two")]
    updates = told(
        translator,
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "T", "content": items[:1]},
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": items[1]},
    )
    assert updates[1]["sessionUpdate"] == "tool_call_update"
    assert updates[1]["content"] == items


def test_much_tool_content_is_told_in_growing_steps_and_whole_at_the_end() -> None:
    translator = down()
    item = {"type": "content", "content": text("x" * 1000)}
    piece = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": item}
    updates = told(translator, *[piece] * 150)
    sizes = [len(update["content"]) for update in shown(updates)]
    assert len(updates) == 150
    assert sum(sizes) < 150 * 8
    last = told(translator, {"sessionUpdate": "state_update", "state": "idle"})
    assert len(shown(last)[0]["content"]) == 150


def test_what_an_agent_streams_without_end_takes_bounded_memory_and_output() -> None:
    translator = down()
    big = {"type": "content", "content": text("x" * 10_000)}
    data = base64.b64encode(b"y" * 10_000).decode()
    sent = 0
    for number in range(600):
        sent += sum(
            _length(update)
            for update in told(
                translator,
                {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": big},
                {"sessionUpdate": "terminal_output_chunk", "terminalId": f"t{number}", "data": data},
                {"sessionUpdate": "tool_call_update", "toolCallId": f"call-{number}" * 100, "content": [big]},
                {"sessionUpdate": "agent_message", "messageId": f"m{number}", "content": [text("z")]},
            )
        )
    assert _held(translator) < 64 * 1024 * 1024
    assert sent < 600 * 80_000
    assert _length({"items": shown(told(translator, {"sessionUpdate": "state_update", "state": "idle"}))}) < 64 * (
        MAX_GATHERED * 2
    )


def _length(value: Any) -> int:
    return len(str(value))


def _held(value: Any) -> int:
    """Bytes held by an object and what it refers to."""
    seen: set[int] = set()
    rest, total = [value], 0
    while rest:
        item = rest.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        total += sys.getsizeof(item)
        if isinstance(item, dict):
            rest += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | frozenset | set):
            rest += item
        elif hasattr(item, "__dict__"):
            rest.append(vars(item))
    return total


def test_a_whole_message_is_told_as_chunks_only_if_nothing_of_it_was_told() -> None:
    translator = down()
    whole = {"sessionUpdate": "agent_message", "messageId": "m", "content": [text("a"), text("b")]}
    first = told(translator, whole)
    assert [(u["sessionUpdate"], u["content"], u["messageId"]) for u in first] == [
        ("agent_message_chunk", text("a"), "m"),
        ("agent_message_chunk", text("b"), "m"),
    ]
    assert shown(told(translator, whole)) == []
    told(translator, chunk("agent_thought", "hm", messageId="t"))
    assert shown(told(translator, {"sessionUpdate": "agent_thought", "messageId": "t", "content": [text("hm")]})) == []


def test_a_prompt_is_shown_to_version_1_on_replay_and_not_live() -> None:
    said = {"sessionUpdate": "user_message", "messageId": "m", "content": [text("hi")]}
    assert shown(told(down(), said)) == []
    assert shown(told(down(), chunk("user_message", "hi", messageId="m"))) == []
    [replayed] = told(down(is_replay=True), said)
    assert (replayed["sessionUpdate"], replayed["content"]) == ("user_message_chunk", text("hi"))


def test_a_terminal_of_the_agents_own_is_text_in_the_tool_call_that_shows_it() -> None:
    translator = down()
    told(
        translator,
        {"sessionUpdate": "terminal_update", "terminalId": "t", "command": "make"},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "title": "Build",
            "content": [{"type": "terminal", "terminalId": "t"}],
        },
    )
    data = base64.b64encode("fertig ✓\n".encode()).decode()
    told(translator, {"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": data})
    [last] = told(translator, {"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {"exitCode": 0}})
    assert last["toolCallId"] == "c"
    assert [item["content"] for item in last["content"]] == [text("$ make\nfertig ✓\n\n[exit code 0]")]


def test_a_change_of_mode_is_told_in_the_readers_words() -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}
    translator = up()
    translator.session_opened({"sessionId": "s", "modes": modes})
    [update] = told(translator, {"sessionUpdate": "current_mode_update", "currentModeId": "code"})
    assert update["sessionUpdate"] == "config_option_update"
    [option] = update["configOptions"]
    assert (option["configId"], option["category"], option["currentValue"]) == ("mode", "mode", "code")

    translator = down()
    translator.session_opened({"configOptions": [{**option, "currentValue": "ask"}]})
    updates = told(translator, {"sessionUpdate": "config_option_update", "configOptions": [option]})
    assert [update["sessionUpdate"] for update in updates] == ["config_option_update", "current_mode_update"]
    assert updates[0]["configOptions"][0]["id"] == "mode"
    assert updates[1]["currentModeId"] == "code"


def test_the_plan_of_version_1_is_the_main_plan_of_version_2() -> None:
    entries = [{"content": "do it", "priority": "high", "status": "pending"}]
    [update] = told(up(), {"sessionUpdate": "plan", "entries": entries})
    assert update == {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "main", "entries": entries}}
    assert told(down(), update) == [{"sessionUpdate": "plan", "entries": entries}]
    [removed] = told(down(), {"sessionUpdate": "plan_removed", "planId": "main"})
    assert (removed["sessionUpdate"], removed["entries"]) == ("plan", [])


def test_commands_of_a_version_2_answer_are_told_to_version_1_as_an_update() -> None:
    command = {"type": "command", "name": "go", "description": "Goes", "input": {"type": "text", "hint": "where"}}
    [line] = down().session_opened({"sessionId": "s", "availableCommands": [command]})
    assert line["update"]["sessionUpdate"] == "available_commands_update"
    assert line["update"]["availableCommands"] == [{"name": "go", "description": "Goes", "input": {"hint": "where"}}]


def test_unknown_kinds_pass_unchanged() -> None:
    update = {"sessionUpdate": "_dance", "steps": [1, 2]}
    params = {"sessionId": "s", "update": update, "extra": 1}
    for translator in (up(), down()):
        assert translator.update(params) == [params]


def test_what_params_have_beside_the_update_stays_with_it() -> None:
    whole = {"sessionUpdate": "agent_message", "messageId": "m", "content": [text("a"), text("b")]}
    lines = down().update({"sessionId": "s", "update": whole, "_meta": {"at": 1}})
    assert [line.get("_meta") for line in lines] == [{"at": 1}, None]


def test_arguments_are_not_changed() -> None:
    item = {"type": "diff", "path": "/a", "oldText": "x", "newText": "y"}
    update = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "content": [item]}
    before = repr(update)
    told(up(), update)
    told(down(), {"sessionUpdate": "config_option_update", "configOptions": [{"configId": "a", "type": "odd"}]})
    assert repr(update) == before


def test_commands_that_the_answer_has_listed_are_not_told_again_to_version_1() -> None:
    commands = [{"type": "command", "name": "ls", "description": "List"}]
    translator = down()
    opened = translator.session_opened({"availableCommands": commands})
    assert [line["update"]["sessionUpdate"] for line in opened] == ["available_commands_update"]
    again = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
    fewer = {**again, "availableCommands": []}
    kinds = [update["sessionUpdate"] for update in told(translator, again, fewer, again)]
    assert kinds == ["session_info_update", "available_commands_update", "available_commands_update"]
