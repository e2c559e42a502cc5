from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core import frames
from sandbox_agent.core.effects import Observed, Publish, Reply, Resolve, Unparsed
from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.lines import OversizedLine
from sandbox_agent.core.permission_policy import ASK
from sandbox_agent.core.session import Phase
from sandbox_agent.errors import AgentExited, SessionEnded
from support.relay import SESSION, Wire, answer, client, note, refusal, request, update

ALICE, BOB = client("alice"), client("bob")
DEAD = AgentExited("agent 'mock' exited with code 3", exitCode=3)
IDS: list[Any] = [0, -1, 1, "1", "a", 1.5, None]


@pytest.fixture
def wire() -> Wire:
    wire = Wire()
    wire.open(SESSION, ALICE, BOB)
    return wire


@given(st.permutations(range(14)))
def test_equal_ids_of_two_clients_get_their_own_answers_in_any_order(order: list[int]) -> None:
    wire = Wire()
    calls = [(who, key, wire.call(who, request(key, "_vendor/echo"))) for key in IDS for who in (ALICE, BOB)]
    assert len({sent["id"] for sent in wire.sent}) == 14
    for at in order:
        wire.agent(answer(wire.sent[at]["id"], {"n": at}))
    got = {(who, ticket): message for who, ticket, message in wire.replies}
    assert len(wire.replies) == 14
    for at, (who, key, ticket) in enumerate(calls):
        assert got[who.id, ticket] == answer(key, {"n": at})
    assert wire.relay.waiting == 0


def test_a_float_id_comes_back_as_it_was_sent(wire: Wire) -> None:
    wire.call(ALICE, b'{"jsonrpc":"2.0","id":1.0,"method":"_vendor/echo"}')
    effects = wire.agent(answer(wire.sent[0]["id"]))
    assert [e.line for e in effects if isinstance(e, Reply)] == [b'{"jsonrpc":"2.0","id":1.0,"result":{}}']


def test_what_we_do_not_know_passes_untouched_both_ways(wire: Wire) -> None:
    wire.call(ALICE, b'{"jsonrpc":"2.0","x":1.0,"id":"q","method":"_v/x","params":{"n":1e5,"sessionId":"s"}}')
    effects = wire.agent(b'{"jsonrpc":"2.0","id":1,"result":{"n":1e5},"y":[1.0]}')
    assert wire.sent[0] == {**request(1, "_v/x", n=1e5, sessionId="s"), "x": 1.0}
    assert [e.line for e in effects if isinstance(e, Reply)] == [
        b'{"jsonrpc":"2.0","id":"q","result":{"n":1e5},"y":[1.0]}'
    ]


def test_a_request_and_its_answer_stand_in_the_history_of_the_session(wire: Wire) -> None:
    wire.call(ALICE, request("x", "_vendor/do", sessionId=SESSION))
    wire.agent(answer(1, {"done": True}))
    assert wire.history[SESSION] == [request(1, "_vendor/do", sessionId=SESSION), answer(1, {"done": True})]


@pytest.mark.parametrize("key", [7, -1, "1", "zz", None, 1.0])
def test_an_answer_that_nobody_waits_for_is_noted(wire: Wire, key: Any) -> None:
    wire.call(ALICE, request(5, "_vendor/x"))
    wire.agent(answer(key))
    assert wire.replies == []
    assert len(wire.noted) == 1
    wire.agent(answer(1), answer(1))
    assert len(wire.replies) == 1
    assert len(wire.noted) == 2


def test_a_line_that_is_no_message_is_told_with_its_hash_and_the_next_one_comes_through(wire: Wire) -> None:
    effects = wire.agent(update("a"), b"garbage", OversizedLine(99, "cafe"), update("b"))
    assert [type(e) for e in effects] == [Publish, Unparsed, Unparsed, Publish]
    assert [u.raw_hash for u in wire.unparsed] == [hashlib.sha256(b"garbage").hexdigest(), "cafe"]
    assert wire.events["alice"] == [update("a"), update("b")]


def test_updates_go_to_everybody_attached_and_to_nobody_else(wire: Wire) -> None:
    wire.open("t", client("carol"))
    wire.agent(update("1"), update("2"), update("3", "t"), update("4"))
    assert wire.events["alice"] == wire.events["bob"] == [update("1"), update("2"), update("4")]
    assert wire.events["carol"] == [update("3", "t")]
    wire.detach(BOB)
    wire.agent(update("5"))
    assert wire.events["bob"][-1] == update("4")
    assert wire.history[SESSION] == [update(text) for text in "1245"]


def test_neighbouring_updates_of_one_session_are_published_together(wire: Wire) -> None:
    effects = wire.agent(update("1"), update("2"), update("3"))
    assert len(effects) == 1


def test_what_changes_the_session_is_observed_after_it_was_published_and_in_order(wire: Wire) -> None:
    effects = wire.agent(update("1"), update("2", kind="current_mode_update"), update("3"))
    assert [type(e) for e in effects] == [Publish, Publish, Observed, Publish]
    assert wire.events["alice"] == [update("1"), update("2", kind="current_mode_update"), update("3")]


def test_updates_and_answers_of_one_batch_keep_their_order(wire: Wire) -> None:
    wire.prompt(ALICE, 1)
    effects = wire.agent(update("1"), update("2"), answer(1, {"stopReason": "end_turn"}), update("late"))
    kinds = [type(e).__name__ for e in effects]
    assert kinds == ["Publish", "Record", "Notice", "Reply", "Publish"]
    assert wire.history[SESSION][1:] == [
        update("1"),
        update("2"),
        answer(1, {"stopReason": "end_turn"}),
        update("late"),
    ]


def test_a_carriage_return_between_tokens_does_not_reach_a_stream(wire: Wire) -> None:
    effects = wire.agent(b'{"jsonrpc":"2.0",\r"method":"session/update","params":{"sessionId":"s"}}')
    assert isinstance(effects[0], Publish)
    assert b"\r" not in effects[0].lines[0]


def test_a_notification_without_a_session_goes_to_every_client_of_the_agent(wire: Wire) -> None:
    wire.agent(note("_vendor/news", x=1))
    assert wire.events["*"] == [note("_vendor/news", x=1)]


def test_an_update_of_an_unknown_session_reaches_nobody(wire: Wire) -> None:
    wire.agent(update("lost", "nowhere"))
    assert wire.events == {}
    assert "nowhere" in wire.noted[0]


def test_updates_before_the_answer_that_names_their_session_are_held_and_come_after_it() -> None:
    wire = Wire()
    call = wire.own("session/new")
    wire.agent(update("early", "n1"))
    wire.agent(update("stray", "other"), update("earlier still", "n1"))
    effects = wire.agent(answer(call, {"sessionId": "n1"}), update("after", "n1"))
    made = answer(call, {"sessionId": "n1"})
    assert wire.history["n1"][1:] == [made, update("early", "n1"), update("earlier still", "n1"), update("after", "n1")]
    assert [type(e) for e in effects][-2:] == [Resolve, Publish]
    assert wire.resolved == {call: made}
    assert "other" not in wire.history


def test_early_updates_wait_for_the_right_one_of_several_new_sessions() -> None:
    wire = Wire()
    first, second = wire.own("session/new"), wire.own("session/fork", "p")
    wire.agent(update("2", "n2"), update("1", "n1"))
    wire.agent(answer(second, {"sessionId": "n2"}))
    wire.agent(answer(first, {"sessionId": "n1"}))
    assert wire.history["n1"][-1] == update("1", "n1")
    assert wire.history["n2"][-1] == update("2", "n2")


@pytest.mark.parametrize("result", [{}, {"sessionId": 5}, [], "x"])
def test_a_new_session_without_an_id_is_answered_all_the_same(result: Any) -> None:
    wire = Wire()
    call = wire.own("session/new")
    wire.agent(update("early", "n1"), answer(call, result))
    assert wire.resolved[call]["result"] == result
    assert wire.relay.sessions == {}
    wire.agent(update("later", "n1"))
    assert "unknown session" in wire.noted[-1]


def test_a_refused_new_session_is_answered_with_the_refusal() -> None:
    wire = Wire()
    call = wire.own("session/new")
    wire.agent(refusal(call, -32000, "log in"))
    assert wire.resolved[call] == refusal(call, -32000, "log in")


def test_a_prompt_attaches_and_the_others_see_what_was_asked(wire: Wire) -> None:
    carol = client("carol")
    wire.prompt(carol, 1, text="question")
    assert "carol" in wire.relay.sessions[SESSION].attached
    seen = wire.events["alice"]
    assert seen == wire.events["bob"]
    assert seen[0]["params"]["update"]["sessionUpdate"] == "user_message_chunk"
    assert seen[0]["params"]["update"]["content"] == {"type": "text", "text": "question"}
    assert wire.events["carol"] == []


def test_everybody_attached_is_told_how_a_turn_began_and_ended_also_the_one_that_prompted(wire: Wire) -> None:
    carol = client("carol")
    wire.prompt(carol, 1, text="question")
    wire.agent(answer(wire.sent[0]["id"], {"stopReason": "refusal"}))
    assert wire.notices["alice"] == wire.notices["bob"] == wire.notices["carol"]
    began, ended = wire.notices["alice"]
    turn = {"sessionId": SESSION, "promptId": "prompt_1", "promptedBy": "carol", "requestId": 1}
    assert began == note("_sandboxagent/session/turn_started", **turn)
    assert ended == note("_sandboxagent/session/turn_ended", **turn, hasRun=True, result={"stopReason": "refusal"})
    wire.prompt(ALICE, 1, text="again")
    wire.agent(refusal(wire.sent[1]["id"], -32000, "log in"))
    told = wire.notices["alice"][-1]["params"]
    assert told["promptedBy"] == "alice"
    assert told["error"]["message"] == "log in"
    wire.prompt(BOB, 1, text="once more")
    wire.exit(DEAD)
    assert "error" in wire.notices["alice"][-1]["params"]
    assert wire.notices["alice"][-1]["params"]["promptedBy"] == "bob"


def test_a_turn_ends_for_those_who_watch_before_its_prompt_is_answered(wire: Wire) -> None:
    wire.prompt(ALICE, 1)
    effects = wire.agent(answer(1, {"stopReason": "end_turn"}))
    kinds = [type(effect).__name__ for effect in effects]
    assert kinds.index("Notice") < kinds.index("Reply")


def test_a_prompt_that_waits_is_told_with_its_place_and_ends_without_having_run_when_cancelled(
    wire: Wire,
) -> None:
    wire.prompt(ALICE, 1)
    wire.prompt(BOB, 2, text="second")
    wire.prompt(ALICE, 3, text="third")
    queued = [told["params"] for told in wire.notices["alice"] if told["method"].endswith("turn_queued")]
    assert [(one["promptedBy"], one["requestId"], one["position"]) for one in queued] == [
        ("bob", 2, 1),
        ("alice", 3, 2),
    ]
    assert queued[0]["prompt"] == [{"type": "text", "text": "second"}]
    wire.notify(note("session/cancel", sessionId=SESSION))
    ended = [told["params"] for told in wire.notices["bob"] if told["method"].endswith("turn_ended")]
    assert [(one["promptId"], one["hasRun"]) for one in ended] == [("prompt_2", False), ("prompt_3", False)]


def test_one_who_comes_later_is_told_of_the_turn_that_runs_and_of_those_that_wait(wire: Wire) -> None:
    wire.prompt(ALICE, 1)
    wire.prompt(BOB, 2)
    wire.attach(client("carol"))
    assert [told["method"].rpartition("/")[2] for told in wire.notices["carol"]] == ["turn_started", "turn_queued"]
    wire.attach(client("carol"))
    assert len(wire.notices["carol"]) == 2


def test_prompts_of_one_session_run_one_at_a_time_in_order(wire: Wire) -> None:
    tickets = [wire.prompt(ALICE, 1, text="a"), wire.prompt(BOB, 1, text="b"), wire.prompt(ALICE, 2, text="c")]
    for turn in range(3):
        assert len(wire.sent) == turn + 1
        assert wire.sent[turn]["params"]["prompt"][0]["text"] == "abc"[turn]
        wire.agent(update(str(turn)), answer(wire.sent[turn]["id"], {"stopReason": "end_turn"}))
    assert [(who, ticket, message["id"]) for who, ticket, message in wire.replies] == [
        ("alice", tickets[0], 1),
        ("bob", tickets[1], 1),
        ("alice", tickets[2], 2),
    ]


def test_while_a_session_closes_prompts_wait_and_are_told_that_they_never_ran(wire: Wire) -> None:
    wire.prompt(ALICE, 1, text="runs")
    wire.relay.closing(SESSION)
    wire.prompt(ALICE, 2, text="waits")
    wire.agent(answer(wire.sent[0]["id"], {"stopReason": "cancelled"}))
    wire.prompt(ALICE, 3, text="comes when nothing runs")
    assert len(wire.sent) == 1
    assert wire.woken == []
    wire.apply(wire.relay.release(SESSION, SessionEnded("closed", sessionId=SESSION)))
    assert len(wire.sent) == 1
    assert [message["id"] for _, _, message in wire.replies] == [1, 2, 3]
    ended = [told["params"] for told in wire.notices["alice"] if told["method"].endswith("turn_ended")]
    assert [(one["requestId"], one["hasRun"]) for one in ended] == [(1, True), (2, False), (3, False)]


def test_prompts_that_waited_for_a_close_run_when_the_agent_refuses_it(wire: Wire) -> None:
    wire.relay.closing(SESSION)
    wire.relay.closing(SESSION)  # a second client asks, too
    wire.prompt(ALICE, 1, text="a")
    wire.prompt(ALICE, 2, text="b")
    wire.apply(wire.relay.kept(SESSION))
    wire.apply(wire.relay.kept(SESSION))
    assert [sent["params"]["prompt"][0]["text"] for sent in wire.sent] == ["a"]
    assert wire.relay.sessions[SESSION].can_begin


def test_a_close_that_fails_with_its_process_wakes_nothing(wire: Wire) -> None:
    wire.relay.closing(SESSION)
    wire.prompt(ALICE, 1)
    wire.exit(AgentExited("dead"))
    wire.apply(wire.relay.kept(SESSION))
    assert not wire.sent
    assert len(wire.replies) == 1
    assert wire.relay.sessions[SESSION].phase is Phase.DORMANT


def test_prompts_of_different_sessions_run_at_the_same_time(wire: Wire) -> None:
    wire.open("t")
    wire.prompt(ALICE, 1)
    wire.prompt(ALICE, 2, "t")
    assert [sent["params"]["sessionId"] for sent in wire.sent] == ["s", "t"]


def test_an_error_ends_a_turn_too(wire: Wire) -> None:
    wire.prompt(ALICE, 1)
    wire.prompt(ALICE, 2)
    wire.agent(refusal(1))
    assert [message["id"] for _, _, message in wire.replies] == [1]
    assert len(wire.sent) == 2


def test_prompts_over_the_bound_are_refused_as_busy_and_the_others_stay() -> None:
    wire = Wire(queued_prompts=2)
    wire.open(SESSION)
    for key in range(4):
        wire.prompt(ALICE, key)
    assert [(message["id"], message["error"]["code"]) for _, _, message in wire.replies] == [(3, -32001)]
    for call in (1, 2, 3):
        wire.agent(answer(call))
    assert [message["id"] for _, _, message in wire.replies] == [3, 0, 1, 2]


def test_cancel_ends_queued_prompts_at_once_and_tells_the_agent(wire: Wire) -> None:
    for key in range(3):
        wire.prompt(ALICE, key)
    wire.notify(note("session/cancel", sessionId=SESSION))
    cancelled = {"stopReason": "cancelled"}
    assert [message for _, _, message in wire.replies] == [answer(1, cancelled), answer(2, cancelled)]
    assert [e.has_run for e in wire.effects if isinstance(e, Reply)] == [False, False]
    assert wire.sent[-1] == note("session/cancel", sessionId=SESSION)
    wire.agent(answer(1, cancelled))
    assert wire.replies[-1] == ("alice", 1, answer(0, cancelled))
    assert len(wire.sent) == 2
    wire.prompt(BOB, 9)
    assert wire.sent[-1]["method"] == "session/prompt"


def test_a_queued_request_is_taken_back_without_the_agent_knowing(wire: Wire) -> None:
    wire.prompt(ALICE, 1)
    wire.prompt(BOB, "q")
    ticket = wire.prompt(ALICE, "q")
    wire.take_back(ALICE, "q")
    assert [(who, at, message["error"]["code"]) for who, at, message in wire.replies] == [("alice", ticket, -32800)]
    wire.agent(answer(1))
    assert len(wire.sent) == 2
    wire.agent(answer(2))
    assert wire.replies[-1][0] == "bob"


def test_a_queued_prompt_is_taken_back_by_its_name_whoever_sent_it(wire: Wire) -> None:
    wire.prompt(ALICE, 1)
    ticket = wire.prompt(BOB, "q")
    (told,) = [told["params"] for told in wire.notices["alice"] if told["method"].endswith("turn_queued")]
    wire.apply(wire.relay.take_back(SESSION, told["promptId"]))
    assert [(who, at, message["error"]["code"]) for who, at, message in wire.replies] == [("bob", ticket, -32800)]
    assert wire.relay.take_back(SESSION, told["promptId"]) == []
    assert wire.relay.take_back(SESSION, "prompt_1") == [], "it runs already"
    assert wire.relay.take_back(SessionId("nothing"), "prompt_1") == []


@pytest.mark.parametrize("key", [0, "x", None, -3])
def test_a_request_under_way_is_taken_back_under_the_id_that_the_agent_knows(wire: Wire, key: Any) -> None:
    wire.call(BOB, request(key, "_vendor/slow"))
    wire.call(ALICE, request(key, "_vendor/slow"))
    wire.take_back(ALICE, key)
    assert wire.sent[-1] == note("$/cancel_request", requestId=2)
    wire.agent(refusal(2, -32800))
    assert wire.replies == [("alice", 2, refusal(key, -32800))]


def test_a_request_that_the_server_makes_for_a_client_can_be_taken_back_by_it_alone(wire: Wire) -> None:
    call = wire.own("session/new", on_behalf=(ALICE, b'"n"'))
    wire.take_back(BOB, "n")
    assert len(wire.sent) == 1
    wire.take_back(ALICE, "n")
    assert wire.sent[-1] == note("$/cancel_request", requestId=call)
    wire.agent(refusal(call, -32800))
    assert wire.resolved == {call: refusal(call, -32800)}


def test_a_cancel_that_names_nothing_changes_nothing(wire: Wire) -> None:
    wire.take_back(ALICE, 77)
    wire.apply(wire.relay.cancel_request(ALICE.id, b'{"jsonrpc":"2.0","method":"$/cancel_request","params":[1]}'))
    wire.apply(wire.relay.cancel_request(ALICE.id, b'{"jsonrpc":"2.0","method":"$/cancel_request"}'))
    wire.agent(b'{"jsonrpc":"2.0","method":"$/cancel_request"}')
    assert wire.sent == []
    assert len(wire.noted) == 3


def test_notifications_of_clients_are_passed_on_and_recorded(wire: Wire) -> None:
    wire.notify(note("_vendor/hint", sessionId=SESSION, x=1))
    wire.notify(note("_vendor/hint", x=2))
    assert wire.sent == [note("_vendor/hint", sessionId=SESSION, x=1), note("_vendor/hint", x=2)]
    assert wire.history[SESSION] == [note("_vendor/hint", sessionId=SESSION, x=1)]


def test_a_closed_connection_leaves_its_turn_running_and_its_sessions(wire: Wire) -> None:
    wire.open("t", ALICE)
    wire.prompt(ALICE, 1)
    wire.apply(wire.relay.connection_closed(ALICE.id))
    wire.agent(update("x"), update("y", "t"), answer(1))
    assert wire.events["alice"] == []
    assert wire.events["bob"][-1] == update("x")
    assert wire.notices["bob"][-1]["params"]["promptedBy"] == "alice"
    assert wire.history[SESSION][-1] == answer(1)


def test_a_prompt_wakes_a_dormant_session_once_and_runs_when_it_is_awake() -> None:
    wire = Wire()
    wire.open(SESSION, is_live=False)
    wire.prompt(ALICE, 1)
    wire.prompt(BOB, 2)
    assert (wire.woken, wire.sent) == ([SESSION], [])
    wire.wake()
    assert len(wire.sent) == 1
    wire.agent(answer(1))
    assert len(wire.sent) == 2


def test_a_session_that_cannot_be_woken_refuses_its_prompts_and_the_next_one_tries_again() -> None:
    wire = Wire()
    wire.open(SESSION, is_live=False)
    wire.prompt(ALICE, 1)
    wire.prompt(BOB, 2)
    wire.apply(wire.relay.wake_failed(SESSION, SessionEnded("gone")))
    assert [(who, message["error"]["message"]) for who, _, message in wire.replies] == [
        ("alice", "gone"),
        ("bob", "gone"),
    ]
    wire.prompt(ALICE, 3)
    assert wire.woken == [SESSION, SESSION]


def test_a_wake_that_fails_late_changes_nothing_for_a_new_session_that_has_the_id_meanwhile() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    wire.prompt(ALICE, 1)
    wire.apply(wire.relay.forget(SESSION, SessionEnded("deleted", sessionId=SESSION)))
    wire.open(SESSION, ALICE)
    wire.prompt(ALICE, 2, text="runs")
    wire.prompt(ALICE, 3, text="waits")
    wire.apply(wire.relay.wake_failed(SESSION, SessionEnded("gone", sessionId=SESSION)))
    assert [message["id"] for _, _, message in wire.replies] == [1]
    assert [call.key for call in wire.relay.sessions[SESSION].queue] == [b"3"]


def test_cancel_reaches_prompts_that_wait_for_a_session_to_wake() -> None:
    wire = Wire()
    wire.open(SESSION, is_live=False)
    wire.prompt(ALICE, 1)
    wire.notify(note("session/cancel", sessionId=SESSION))
    assert wire.replies[0][2] == answer(1, {"stopReason": "cancelled"})
    wire.wake()
    assert wire.sent == []


def test_what_an_agent_replays_while_it_wakes_is_not_told_again() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    wire.relay.wake(SESSION, ASK, SESSION)
    call = wire.own("session/load", SESSION)
    wire.agent(update("old"), update("older"))
    assert wire.events["alice"] == []
    assert wire.history[SESSION] == []
    wire.agent(answer(call))
    wire.apply(wire.relay.woken(SESSION))
    wire.agent(update("new"))
    assert wire.events["alice"] == wire.history[SESSION] == [update("new")]


def test_a_replay_that_comes_after_its_session_was_closed_is_not_recorded_again() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    wire.relay.wake(SESSION, ASK, SESSION)
    call = wire.own("session/load", SESSION)
    wire.apply(wire.relay.release(SESSION, SessionEnded("closed", sessionId=SESSION)))
    wire.agent(update("old"), answer(call), update("old, replayed late"))
    assert wire.history[SESSION] == []
    wire.relay.wake(SESSION, ASK, SESSION)
    call = wire.own("session/load", SESSION)
    wire.agent(update("old"), answer(call))
    wire.apply(wire.relay.woken(SESSION))
    wire.agent(update("new"))
    assert wire.events["alice"] == wire.history[SESSION] == [update("new")]


def test_a_replay_that_comes_after_its_session_has_ended_is_not_recorded_again() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    wire.relay.wake(SESSION, ASK, SESSION)
    wire.own("session/load", SESSION)
    wire.apply(wire.relay.wake_failed(SESSION, SessionEnded("timed out", sessionId=SESSION)))
    wire.apply(wire.relay.end(SESSION, SessionEnded("ended", sessionId=SESSION)))
    wire.agent(update("old, replayed late"))
    assert wire.history[SESSION] == wire.events["alice"] == []


@pytest.mark.parametrize("is_closed", [False, True], ids=["waking", "closed meanwhile"])
def test_a_name_given_to_a_new_session_while_an_older_one_is_taken_up_by_it_is_nobodys(*, is_closed: bool) -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    wire.prompt(ALICE, "p")
    wire.relay.wake(SESSION, ASK, SESSION)
    resume = wire.own("session/load", SESSION)
    make = wire.own("session/new")
    if is_closed:
        wire.apply(wire.relay.release(SESSION, SessionEnded("closed", sessionId=SESSION)))
    wire.agent(update("the new one is born"), answer(make, {"sessionId": SESSION}))
    assert "as one that it was asked to resume" in wire.resolved[make]["error"]["message"]
    assert "error" in wire.replies[0][2]
    mode = note("session/update", sessionId=SESSION, update={"sessionUpdate": "current_mode_update"})
    wire.agent(update("whose?"), mode, answer(resume), update("whose?"))
    assert wire.relay.sessions[SESSION].phase is Phase.ENDED
    assert wire.relay.holds(SESSION)
    again = wire.own("session/new")
    wire.agent(update("whose?"), answer(again, {"sessionId": SESSION}))
    assert "error" in wire.resolved[again]
    assert [m for m in wire.history[SESSION] if "method" in m] == []
    assert wire.events["alice"] == []
    wire.exit(DEAD)
    make = wire.own("session/new")
    wire.agent(answer(make, {"sessionId": SESSION}))
    assert wire.resolved[make]["result"]["sessionId"] == "s~2"


def test_a_session_that_was_taken_up_while_a_new_one_got_its_name_ends_with_that_answer() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    make = wire.own("session/new")
    wire.relay.wake(SESSION, ASK, SESSION)
    resume = wire.own("session/resume", SESSION)
    wire.agent(answer(resume))
    assert wire.relay.sessions[SESSION].is_live
    wire.agent(answer(make, {"sessionId": SESSION}), update("whose?"))
    assert "error" in wire.resolved[make]
    assert wire.relay.sessions[SESSION].phase is Phase.ENDED
    assert wire.history[SESSION] == []


def test_a_session_that_was_taken_up_before_keeps_its_name() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    wire.relay.wake(SESSION, ASK, SESSION)
    wire.agent(answer(wire.own("session/resume", SESSION)))
    make = wire.own("session/new")
    wire.agent(answer(make, {"sessionId": SESSION}), update("hers"))
    assert "as one that is under way" in wire.resolved[make]["error"]["message"]
    assert wire.events["alice"] == [update("hers")]


def test_the_name_of_a_session_that_the_agent_refused_to_take_up_is_free_for_another() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    wire.relay.wake(SESSION, ASK, SESSION)
    make = wire.own("session/new")
    wire.agent(refusal(wire.own("session/resume", SESSION)))
    wire.apply(wire.relay.wake_failed(SESSION, SessionEnded("refused", sessionId=SESSION)))
    mode = note("session/update", sessionId=SESSION, update={"sessionUpdate": "current_mode_update"})
    wire.agent(mode, answer(make, {"sessionId": SESSION}))
    assert wire.events["alice"] == wire.history[SESSION] == []
    assert wire.resolved[make]["result"]["sessionId"] == "s~2"
    assert wire.history["s~2"][-1]["params"]["update"] == {"sessionUpdate": "current_mode_update"}


def test_exit_answers_every_waiting_request_with_agent_exited(wire: Wire) -> None:
    running = wire.prompt(ALICE, "p")
    queued = wire.prompt(BOB, "q")
    called = wire.call(BOB, request("p", "_vendor/x"))
    own = wire.own("session/new")
    wire.open("t", is_live=False)
    waking = wire.prompt(ALICE, "w", "t")
    wire.agent(update("held", "early"))
    wire.exit(DEAD)
    error = {"code": -32010, "message": DEAD.detail}
    assert {(who, ticket, message["id"]) for who, ticket, message in wire.replies} == {
        ("alice", running, "p"),
        ("bob", queued, "q"),
        ("bob", called, "p"),
        ("alice", waking, "w"),
    }
    for message in [*(m for _, _, m in wire.replies), wire.resolved[own]]:
        assert message["error"] | error == message["error"]
        assert message["error"]["data"]["exitCode"] == 3
    assert wire.relay.waiting == 0
    assert wire.history[SESSION][-1]["id"] == 1


def test_after_exit_sessions_are_dormant_keep_their_clients_and_can_be_woken(wire: Wire) -> None:
    wire.prompt(ALICE, 1)
    wire.exit(DEAD)
    wire.agent(answer(1))
    assert len(wire.replies) == 1
    wire.prompt(ALICE, 2)
    assert wire.woken == [SESSION]
    wire.wake()
    wire.agent(update("again"))
    assert wire.events["bob"][-1] == update("again")


def test_a_notice_of_our_own_goes_to_everybody_attached(wire: Wire) -> None:
    line = frames.notification("_sandboxagent/session/ended", {"sessionId": SESSION})
    wire.apply(wire.relay.publish(SESSION, line))
    wire.apply(wire.relay.publish(SessionId("unknown"), line))
    assert len(wire.events["alice"]) == len(wire.events["bob"]) == len(wire.history[SESSION]) == 1
    assert len(wire.history["unknown"]) == 1


def test_what_follows_the_answer_that_wakes_a_session_is_told_before_anybody_says_woken() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    wire.relay.wake(SESSION, ASK, SESSION)
    call = wire.own("session/load", SESSION)
    news = update("commands", kind="available_commands_update")
    wire.agent(update("old"), answer(call), update("old, replayed late"), news)
    assert wire.events["alice"] == wire.history[SESSION] == [news]
    wire.apply(wire.relay.woken(SESSION))
    wire.agent(update("new"))
    assert wire.history[SESSION][1:] == [update("new")]


def test_what_follows_the_answer_to_a_resume_is_told_whatever_it_is() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, is_live=False)
    wire.relay.wake(SESSION, ASK, SESSION)
    call = wire.own("session/resume", SESSION)
    wire.agent(update("old"), answer(call), update("new"))
    assert wire.events["alice"] == [update("new")]


def test_a_new_session_with_the_name_of_a_dormant_one_is_another_session() -> None:
    wire = Wire()
    wire.open("n1", ALICE, is_live=False)
    call = wire.own("session/new")
    wire.agent(update("early", "n1"), answer(call, {"sessionId": "n1"}))
    assert wire.resolved[call]["result"] == {"sessionId": "n1~2"}
    wire.attach(BOB, "n1~2")
    wire.agent(update("news", "n1"), request(7, "session/request_permission", sessionId="n1"))
    told, asked = wire.events["bob"]
    assert told == update("news", "n1~2")
    assert asked["params"]["sessionId"] == "n1~2"
    assert wire.events["alice"] == []
    assert wire.history["n1"] == []
    assert update("early", "n1~2") in wire.history["n1~2"]


def test_what_goes_to_the_agent_has_its_own_name_for_the_session() -> None:
    wire = Wire()
    wire.open("n1", is_live=False)
    call = wire.own("session/new")
    wire.agent(answer(call, {"sessionId": "n1"}))
    wire.prompt(BOB, 1, "n1~2")
    wire.call(BOB, request(2, "_vendor/x", sessionId="n1~2"))
    wire.own("session/set_mode", "n1~2")
    wire.notify(note("_vendor/y", sessionId="n1~2"))
    wire.notify(note("session/cancel", sessionId="n1~2"))
    assert [message["params"]["sessionId"] for message in wire.sent[1:]] == ["n1"] * 5
    assert [m["params"]["sessionId"] for m in wire.history["n1~2"] if "sessionId" in m.get("params", {})] == [
        "n1~2"
    ] * 4


def test_a_prompt_that_waits_for_a_session_whose_name_was_given_away_is_told_so() -> None:
    wire = Wire()
    wire.open("n1", ALICE, is_live=False)
    ticket = wire.prompt(ALICE, 1, "n1")
    call = wire.own("session/new")
    wire.agent(answer(call, {"sessionId": "n1"}))
    with pytest.raises(SessionEnded, match="to a newer one") as refused:
        wire.relay.wake(SessionId("n1"), ASK, "n1")
    wire.apply(wire.relay.wake_failed(SessionId("n1"), refused.value))
    assert [(who, at, message["error"]["code"]) for who, at, message in wire.replies] == [("alice", ticket, -32009)]
    wire.notify(note("_vendor/y", sessionId="n1"))
    assert wire.sent[-1]["method"] == "session/new", "the agent would take it for the newer one's"


def test_a_session_that_is_under_way_is_not_made_anew() -> None:
    wire = Wire()
    wire.open("n1", ALICE)
    wire.prompt(ALICE, 1, "n1")
    wire.prompt(ALICE, 2, "n1")
    call = wire.own("session/new")
    wire.agent(answer(call, {"sessionId": "n1"}), update("x", "n1"), answer(1))
    assert "as one that is under way" in wire.resolved[call]["error"]["message"]
    assert wire.events["alice"] == [update("x", "n1")]
    assert wire.sent[-1]["method"] == "session/prompt"
    wire.agent(answer(2))
    assert [message["id"] for _, _, message in wire.replies] == [1, 2]


def test_an_agents_cancel_is_translated_also_when_it_names_a_session(wire: Wire) -> None:
    wire.agent(request(40, "session/request_permission", sessionId=SESSION))
    asked = wire.events["alice"][0]["id"]
    assert asked != 40
    wire.agent(note("$/cancel_request", requestId=40, sessionId=SESSION))
    assert wire.events["alice"][1:] == [note("$/cancel_request", requestId=asked)]


def test_a_second_exit_finds_nobody_waiting(wire: Wire) -> None:
    wire.prompt(ALICE, 1)
    wire.prompt(BOB, 2)
    wire.own("session/new")
    wire.exit(DEAD)
    told = len(wire.effects)
    wire.exit(DEAD)
    assert len(wire.effects) == told
