"""The end of a turn: an answer in version 1, a state in version 2."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox_agent.core.versions import HeldPrompt, UpdateTranslator, Version, idle_answer

RUNNING = {"sessionUpdate": "state_update", "state": "running"}
IDLE = {"sessionUpdate": "state_update", "state": "idle"}
ENDED = {**IDLE, "stopReason": "end_turn"}
TAKEN = {"sessionUpdate": "user_message", "messageId": "m1", "content": []}


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
def test_idle_answers_a_held_prompt_with_its_reason(reason: str) -> None:
    assert idle_answer({**IDLE, "stopReason": reason}) == {"result": {"stopReason": reason}}


def test_idle_without_a_reason_is_the_usual_end() -> None:
    assert idle_answer(IDLE) == {"result": {"stopReason": "end_turn"}}


def test_an_unknown_reason_is_kept_beside_the_usual_end() -> None:
    answer = idle_answer({**IDLE, "stopReason": "_bored"})
    assert answer is not None
    assert answer["result"]["stopReason"] == "end_turn"
    assert "_bored" in str(answer["result"]["_meta"])


def test_idle_after_an_error_answers_with_the_error() -> None:
    error = {"code": -32000, "message": "log in first"}
    assert idle_answer({**IDLE, "stopReason": "error", "error": error}) == {"error": error}
    made = idle_answer({**IDLE, "stopReason": "error", "error": "oh"})
    assert made is not None
    assert made["error"]["code"] == -32603


@pytest.mark.parametrize("update", [RUNNING, {"sessionUpdate": "agent_message"}, {}, None, []])
def test_nothing_else_answers_a_prompt(update: Any) -> None:
    assert idle_answer(update) is None


def test_a_prompt_is_held_from_its_acknowledgement_to_the_end_of_the_work() -> None:
    held = HeldPrompt()
    assert held.update(TAKEN) is None
    assert held.acknowledged({"messageId": "m1"}) is None
    assert held.message_id == "m1"
    assert held.update(RUNNING) is None
    assert held.update({**IDLE, "stopReason": "cancelled"}) == {"result": {"stopReason": "cancelled"}}


def test_an_end_that_is_told_before_the_acknowledgement_waits_for_it() -> None:
    held = HeldPrompt()
    assert [held.update(update) for update in (TAKEN, RUNNING, ENDED)] == [None, None, None]
    assert held.acknowledged({"messageId": "m1"}) == {"result": {"stopReason": "end_turn"}}


def test_an_idle_of_earlier_work_does_not_end_a_prompt() -> None:
    held = HeldPrompt()
    assert held.update(ENDED) is None
    assert held.acknowledged({"messageId": "m1"}) is None
    assert held.update(IDLE) is None  # a snapshot: no work was seen, and no reason is given
    assert held.update(RUNNING) is None
    assert held.update(IDLE) == {"result": {"stopReason": "end_turn"}}


def test_an_idle_that_is_repeated_for_background_work_ends_nothing() -> None:
    held = HeldPrompt()
    assert held.acknowledged({"messageId": "m1"}) is None
    assert held.update(TAKEN) is None
    assert held.update({**ENDED, "background": [{"type": "terminal", "terminalId": "t"}]}) is None
    assert held.update({**ENDED, "background": []}) is None
    assert held.update({**RUNNING, "background": []}) is None
    assert held.update({**ENDED, "background": []}) == {"result": {"stopReason": "end_turn"}}


@pytest.mark.parametrize("background", [None, "no list", 7])
def test_a_background_that_is_no_list_is_not_reported_at_all(background: Any) -> None:
    held = HeldPrompt()
    assert held.acknowledged({"messageId": "m1"}) is None
    assert held.update({**ENDED, "background": background}) is not None


def test_work_that_was_under_way_when_the_prompt_was_sent_ends_before_it() -> None:
    held = HeldPrompt(is_working=True)
    assert held.update(ENDED) is None
    assert held.acknowledged({"messageId": "m1"}) is None
    assert held.update(RUNNING) is None
    assert held.update(ENDED) is not None
    joined = HeldPrompt(is_working=True)  # it goes on with what it does, and need not say so again
    assert joined.acknowledged({"messageId": "m1"}) is None
    assert joined.update(IDLE) is not None


def test_an_end_that_is_told_before_an_acknowledgement_of_a_prompt_that_was_not_shown_waits_for_it() -> None:
    held = HeldPrompt()
    assert [held.update(update) for update in (RUNNING, ENDED, ENDED)] == [None, None, None]
    assert held.acknowledged({"messageId": "m1"}) is not None


@pytest.mark.parametrize("state", ["unknown", "_dreaming", "requires_action"])
def test_a_state_that_is_not_known_is_not_idle(state: str) -> None:
    held = HeldPrompt()
    assert held.acknowledged({"messageId": "m1"}) is None
    assert held.update({**RUNNING, "state": state}) is None
    assert held.update(IDLE) is not None


def test_an_agent_that_answers_with_a_stop_reason_all_the_same_is_taken_at_its_word() -> None:
    assert HeldPrompt().acknowledged({"stopReason": "refusal"}) == {"result": {"stopReason": "refusal"}}


def test_a_version_2_reader_sees_a_version_1_turn_as_states() -> None:
    translator = UpdateTranslator("s", from_=Version.V1, to=Version.V2)
    block = {"type": "text", "text": "hi"}
    started = translator.prompt_started("m1", [block])
    assert started == [
        {"sessionId": "s", "update": {"sessionUpdate": "user_message", "messageId": "m1", "content": [block]}},
        {"sessionId": "s", "update": RUNNING},
    ]
    assert [line["update"]["state"] for line in translator.ask_opened()] == ["requires_action"]
    assert translator.ask_opened() == []
    assert translator.ask_closed() == []
    assert [line["update"]["state"] for line in translator.ask_closed()] == ["running"]
    usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
    [ended] = translator.prompt_ended(result={"stopReason": "max_tokens", "usage": usage})
    assert ended["update"] == {**IDLE, "stopReason": "max_tokens", "usage": usage}
    assert translator.ask_opened() == []  # nothing runs
    [failed] = translator.prompt_ended(error={"code": 1, "message": "no"})
    assert failed["update"] == {**IDLE, "stopReason": "error", "error": {"code": 1, "message": "no"}}


def test_readers_of_the_agents_own_version_get_no_states_made_up() -> None:
    for from_, to in ((Version.V2, Version.V1), (Version.V2, Version.V2), (Version.V1, Version.V1)):
        translator = UpdateTranslator("s", from_=from_, to=to)
        assert translator.prompt_started("m", []) == translator.prompt_ended(result={}) == translator.ask_opened() == []
