from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from sandbox_agent.core.methods import ELICITATION, HOST_METHODS, PERMISSION, QUESTION
from sandbox_agent.errors import AgentExited
from support.relay import SESSION, Wire, answer, client, note, refusal, request

ALICE, BOB, CAROL = client("alice"), client("bob"), client("carol")
CHOSEN = {"outcome": {"outcome": "selected", "optionId": "yes"}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


def files(name: str) -> Any:
    return client(name, "fs/read_text_file")


def terminals(name: str) -> Any:
    return client(name, "terminal/create")


@pytest.fixture
def wire() -> Wire:
    wire = Wire()
    wire.open(SESSION, ALICE, BOB)
    return wire


def ask(wire: Wire, key: Any = 0, method: str = PERMISSION, **params: Any) -> None:
    wire.agent(request(key, method, **{"sessionId": SESSION, **params}))


def last_id(wire: Wire, name: str) -> int:
    return int(wire.events[name][-1]["id"])


@pytest.mark.parametrize("key", [0, 7, "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "", None, -1])
def test_the_first_answer_wins_and_goes_back_under_the_agents_id(wire: Wire, key: Any) -> None:
    ask(wire, key, options=[1.5])
    asked = last_id(wire, "alice")
    assert wire.events["alice"] == wire.events["bob"] == [request(asked, PERMISSION, sessionId=SESSION, options=[1.5])]
    wire.answer(BOB, answer(asked, CHOSEN))
    assert wire.sent == [answer(key, CHOSEN)]
    assert wire.events["alice"][1:] == [note("$/cancel_request", requestId=asked)]
    assert len(wire.events["bob"]) == 1
    wire.answer(ALICE, answer(asked, CANCELLED))
    wire.answer(BOB, answer(asked, CHOSEN))
    assert len(wire.sent) == 1
    assert len(wire.noted) == 2


def test_question_and_answer_stand_in_the_history_under_one_id(wire: Wire) -> None:
    ask(wire, 9)
    asked = last_id(wire, "alice")
    wire.answer(ALICE, answer(asked, CHOSEN))
    assert wire.history[SESSION] == [request(asked, PERMISSION, sessionId=SESSION), answer(asked, CHOSEN)]


def test_an_answer_may_spell_the_id_as_text(wire: Wire) -> None:
    ask(wire, 9)
    wire.answer(ALICE, answer(str(last_id(wire, "alice")), CHOSEN))
    assert wire.sent == [answer(9, CHOSEN)]


@pytest.mark.parametrize("key", [99, "x", None, -1, 1.5])
def test_an_answer_to_nothing_is_noted(wire: Wire, key: Any) -> None:
    ask(wire)
    wire.answer(ALICE, answer(key))
    assert wire.sent == []
    assert len(wire.noted) == 1


def test_who_was_not_asked_cannot_answer(wire: Wire) -> None:
    wire.open("t", CAROL)
    ask(wire)
    wire.answer(CAROL, answer(last_id(wire, "alice"), CHOSEN))
    assert wire.sent == []


def test_ids_of_several_agents_do_not_meet_at_one_client() -> None:
    ids = count(1)
    first, second = Wire(ids), Wire(ids)
    for wire in (first, second):
        wire.open(SESSION, ALICE)
        ask(wire, 0)
    assert last_id(first, "alice") != last_id(second, "alice")
    assert not first.relay.asks.has(str(last_id(second, "alice")).encode())


def test_an_open_request_is_delivered_to_whoever_comes_later_and_only_once() -> None:
    wire = Wire()
    wire.open(SESSION)
    ask(wire)
    assert wire.sent == []
    wire.attach(ALICE)
    wire.attach(ALICE)
    wire.attach(BOB)
    assert len(wire.events["alice"]) == len(wire.events["bob"]) == 1
    wire.answer(BOB, answer(last_id(wire, "bob"), CHOSEN))
    assert wire.sent == [answer(0, CHOSEN)]
    assert wire.events["alice"][1]["method"] == "$/cancel_request"
    wire.attach(CAROL)
    assert wire.events["carol"] == []


def test_an_open_request_survives_the_connection_that_was_asked(wire: Wire) -> None:
    ask(wire)
    for who in (ALICE, BOB):
        wire.apply(wire.relay.connection_closed(who.id))
    assert wire.sent == []
    wire.attach(CAROL)
    wire.answer(ALICE, answer(last_id(wire, "carol"), CHOSEN))
    assert wire.sent == []
    wire.answer(CAROL, answer(last_id(wire, "carol"), CHOSEN))
    assert wire.sent == [answer(0, CHOSEN)]
    assert len(wire.events["alice"]) == 1


def test_one_that_cannot_leaves_the_answer_to_the_other(wire: Wire) -> None:
    ask(wire, method="_vendor/ask")
    asked = last_id(wire, "alice")
    wire.answer(ALICE, refusal(asked, -32601))
    assert wire.sent == []
    wire.answer(BOB, refusal(asked, -32601))
    assert wire.sent == [refusal(0, -32601)]


def test_an_error_of_another_kind_is_an_answer(wire: Wire) -> None:
    ask(wire)
    wire.answer(ALICE, refusal(last_id(wire, "alice"), -32603))
    assert wire.sent == [refusal(0, -32603)]


@pytest.mark.parametrize(
    ("method", "cancelled"),
    [(PERMISSION, CANCELLED), (QUESTION, {"outcome": "cancelled"}), (ELICITATION, {"action": "cancel"})],
)
def test_cancelling_the_turn_answers_what_a_person_was_asked(method: str, cancelled: Any) -> None:
    wire = Wire()
    able = client("able", ELICITATION)
    wire.open(SESSION, able)
    wire.open("t", able)
    wire.prompt(able, 1)
    ask(wire, "q", method)
    asked = last_id(wire, "able")
    ask(wire, "other", method, sessionId="t")
    wire.notify(note("session/cancel", sessionId=SESSION))
    assert wire.sent[1:] == [note("session/cancel", sessionId=SESSION), answer("q", cancelled)]
    assert wire.events["able"][-1] == note("$/cancel_request", requestId=asked)
    assert wire.history[SESSION][-1] == answer(asked, cancelled)
    assert len(wire.relay.asks) == 1


def test_the_agent_can_withdraw_what_it_asked(wire: Wire) -> None:
    ask(wire, "k")
    asked = last_id(wire, "alice")
    wire.agent(note("$/cancel_request", requestId="k"))
    for name in ("alice", "bob"):
        assert wire.events[name][1:] == [note("$/cancel_request", requestId=asked)]
    wire.answer(ALICE, answer(asked, CHOSEN))
    assert wire.sent == []
    wire.agent(note("$/cancel_request", requestId="k"))
    assert len(wire.events["alice"]) == 2


def test_an_agent_may_use_an_id_again(wire: Wire) -> None:
    ask(wire, 0, x=1)
    first = last_id(wire, "alice")
    ask(wire, 0, x=2)
    second = last_id(wire, "alice")
    wire.answer(ALICE, answer(first, {"n": 1}))
    wire.agent(note("$/cancel_request", requestId=0))
    wire.answer(ALICE, answer(second, {"n": 2}))
    assert wire.sent == [answer(0, {"n": 1})]
    ask(wire, 0)
    wire.answer(BOB, answer(last_id(wire, "bob"), {"n": 3}))
    assert wire.sent[1:] == [answer(0, {"n": 3})]
    assert len(wire.relay.asks) == 0


def test_exit_withdraws_everything_that_was_asked(wire: Wire) -> None:
    ask(wire)
    asked = last_id(wire, "alice")
    ask(wire, 1, "fs/read_text_file")
    wire.exit(AgentExited("gone"))
    assert wire.events["alice"][-1] == wire.events["bob"][-1] == note("$/cancel_request", requestId=asked)
    assert len(wire.relay.asks) == 0
    assert wire.relay.sessions[SESSION].asks == {}
    wire.apply(wire.relay.served(wire.served[0].ask, b'"result":{}'))
    wire.answer(ALICE, answer(asked, CHOSEN))
    wire.attach(CAROL)
    assert wire.sent == []
    assert wire.events["carol"] == []


def test_a_request_for_a_session_that_nobody_knows_is_refused_at_once(wire: Wire) -> None:
    ask(wire, 5, sessionId="nowhere")
    assert [(m["id"], m["error"]["code"]) for m in wire.sent] == [(5, -32601)]
    assert wire.events == {}


def test_an_unknown_method_with_nobody_attached_is_refused_at_once() -> None:
    wire = Wire()
    wire.open(SESSION)
    ask(wire, 5, "_vendor/ask")
    assert [(m["id"], m["error"]["code"]) for m in wire.sent] == [(5, -32601)]


def test_elicitation_asks_only_clients_that_claim_it(wire: Wire) -> None:
    able = client("able", ELICITATION)
    wire.attach(able)
    ask(wire, method=ELICITATION)
    assert wire.events["alice"] == []
    assert wire.events["able"][0]["method"] == ELICITATION


def test_elicitation_is_cancelled_when_nobody_attached_can_show_it(wire: Wire) -> None:
    ask(wire, 3, ELICITATION)
    assert wire.sent == [answer(3, {"action": "cancel"})]
    assert len(wire.relay.asks) == 0


def test_elicitation_waits_for_one_who_can_while_nobody_is_attached() -> None:
    wire = Wire()
    wire.open(SESSION)
    ask(wire, 3, ELICITATION)
    wire.attach(ALICE)
    wire.attach(client("able", ELICITATION))
    assert wire.events["alice"] == []
    assert wire.events["able"][0]["method"] == ELICITATION


@pytest.mark.parametrize("method", HOST_METHODS)
def test_the_host_serves_what_no_attached_client_claims(wire: Wire, method: str) -> None:
    ask(wire, "h", method, path="/x")
    assert [(s.method, s.session) for s in wire.served] == [(method, SESSION)]
    assert wire.events == {}
    wire.apply(wire.relay.served(wire.served[0].ask, b'"result":{"content":"1.0"}'))
    wire.apply(wire.relay.served(wire.served[0].ask, b'"result":{}'))
    assert wire.sent == [answer("h", {"content": "1.0"})]


def test_the_host_serves_sessions_that_have_no_route_yet() -> None:
    wire = Wire()
    ask(wire, 1, "fs/read_text_file", sessionId="new")
    wire.apply(wire.relay.served(wire.served[0].ask, b'"error":{"code":-32602,"message":"no"}'))
    assert wire.sent == [refusal(1, -32602)]


def test_what_has_effects_is_asked_of_one_client_alone() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE, files("f1"), files("f2"))
    ask(wire, 1, "fs/read_text_file")
    assert [name for name in ("alice", "f1", "f2") if wire.events[name]] == ["f1"]
    wire.answer(files("f2"), answer(last_id(wire, "f1"), {"content": "forged"}))
    assert wire.sent == []
    wire.answer(files("f1"), answer(last_id(wire, "f1"), {"content": "x"}))
    assert wire.sent == [answer(1, {"content": "x"})]
    wire.attach(files("f3"))
    assert wire.events["f3"] == []


def test_the_client_whose_turn_it_is_is_asked_before_others() -> None:
    wire = Wire()
    wire.open(SESSION, files("f1"), files("f2"))
    wire.prompt(files("f2"), 1)
    ask(wire, 1, "fs/read_text_file")
    assert wire.events["f2"][-1]["method"] == "fs/read_text_file"


def test_a_claim_to_read_is_no_claim_to_write() -> None:
    wire = Wire()
    wire.open(SESSION, files("f1"))
    ask(wire, 1, "fs/write_text_file")
    assert len(wire.served) == 1


def test_what_a_client_was_to_do_goes_to_the_next_when_it_leaves_and_then_to_the_host() -> None:
    wire = Wire()
    wire.open(SESSION, files("f1"), files("f2"))
    ask(wire, 1, "fs/read_text_file")
    wire.apply(wire.relay.connection_closed(files("f1").id))
    asked = last_id(wire, "f2")
    wire.detach(files("f2"))
    assert len(wire.served) == 1
    wire.answer(files("f2"), answer(asked, {"content": "late"}))
    assert wire.sent == []
    wire.apply(wire.relay.served(wire.served[0].ask, b'"result":{}'))
    assert wire.sent == [answer(1)]


def test_what_the_host_is_doing_stays_with_the_host() -> None:
    wire = Wire()
    wire.open(SESSION, ALICE)
    ask(wire, 1, "terminal/wait_for_exit", terminalId="t")
    wire.attach(terminals("t1"))
    wire.detach(ALICE)
    assert wire.events["t1"] == []
    assert len(wire.served) == 1


def test_a_terminal_stays_with_the_client_that_made_it() -> None:
    wire = Wire()
    wire.open(SESSION, terminals("t1"), terminals("t2"))
    wire.prompt(terminals("t2"), 1)
    ask(wire, 1, "terminal/create", command="ls")
    wire.answer(terminals("t2"), answer(last_id(wire, "t2"), {"terminalId": "x"}))
    wire.agent(answer(1))
    wire.prompt(terminals("t1"), 2)
    ask(wire, 2, "terminal/output", terminalId="x")
    assert wire.events["t2"][-1]["method"] == "terminal/output"
    wire.answer(terminals("t2"), answer(last_id(wire, "t2")))
    wire.detach(terminals("t2"))
    ask(wire, 3, "terminal/kill", terminalId="x")
    assert wire.served[-1].method == "terminal/kill"


def test_a_terminal_of_the_host_stays_with_the_host() -> None:
    wire = Wire()
    wire.open(SESSION)
    ask(wire, 1, "terminal/create", command="ls")
    wire.apply(wire.relay.served(wire.served[0].ask, b'"result":{"terminalId":"x"}'))
    wire.attach(terminals("t1"))
    ask(wire, 2, "terminal/output", terminalId="x")
    assert len(wire.served) == 2
    assert wire.events["t1"] == []


def test_terminals_of_one_name_in_two_sessions_are_two_terminals() -> None:
    wire = Wire()
    for session, name in (("s", "t1"), ("t", "t2")):
        wire.open(session, terminals(name))
        ask(wire, session, "terminal/create", sessionId=session)
        wire.answer(terminals(name), answer(last_id(wire, name), {"terminalId": "1"}))
    ask(wire, "o", "terminal/output", terminalId="1")
    assert wire.served == []
    assert wire.events["t1"][-1]["method"] == "terminal/output"


def test_a_released_terminal_belongs_to_nobody() -> None:
    wire = Wire()
    wire.open(SESSION, terminals("t1"))
    ask(wire, 1, "terminal/create")
    wire.answer(terminals("t1"), answer(last_id(wire, "t1"), {"terminalId": "x"}))
    ask(wire, 2, "terminal/release", terminalId="x")
    wire.answer(terminals("t1"), answer(last_id(wire, "t1")))
    ask(wire, 3, "terminal/output", terminalId="x")
    assert len(wire.served) == 1


def test_an_error_that_only_speaks_of_an_unknown_method_is_an_answer(wire: Wire) -> None:
    ask(wire)
    failed = refusal(last_id(wire, "alice"), -32000, "upstream said -32601")
    wire.answer(ALICE, failed)
    assert wire.sent == [{**failed, "id": 0}]


def test_what_goes_from_one_client_to_the_next_stands_in_the_history_once() -> None:
    wire = Wire()
    wire.open(SESSION, files("f1"), files("f2"))
    ask(wire, 1, "fs/read_text_file")
    wire.detach(files("f1"))
    assert len(wire.events["f2"]) == 1
    assert len(wire.history[SESSION]) == 1


def test_exit_leaves_no_open_request_in_the_history(wire: Wire) -> None:
    ask(wire)
    asked = last_id(wire, "alice")
    wire.exit(AgentExited("gone"))
    assert wire.history[SESSION][-1] == note("$/cancel_request", requestId=asked)


def test_exit_records_nothing_of_what_the_host_was_doing(wire: Wire) -> None:
    ask(wire, 1, "fs/read_text_file")
    wire.exit(AgentExited("gone"))
    assert wire.history[SESSION] == []
