"""Turns at an agent of version 2 that does not keep to the order, or to the version."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox_agent.core.ids import ConnectionId
from sandbox_agent.core.permission_policy import ASK
from sandbox_agent.core.session import Client
from sandbox_agent.core.speaking import snapshot
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import AgentExited
from support.relay import SESSION, Message, Wire, answer, client, note, request

NEW = Client(ConnectionId("new"), version=Version.V2)
OLD = client("old")
each_client = pytest.mark.parametrize("one", [OLD, NEW], ids=["version 1", "version 2"])


def wired(*clients: Client) -> Wire:
    wire = Wire()
    wire.relay.speak(Version.V2)
    wire.open(SESSION, *clients)
    return wire


def said(kind: str, **members: Any) -> Message:
    return note("session/update", sessionId=SESSION, update={"sessionUpdate": kind, **members})


def state(name: Any, **members: Any) -> Message:
    return said("state_update", state=name, **members)


def ends(wire: Wire) -> list[Message]:
    return [notice.params for notice in wire.feed if notice.name == "turn_ended"]


def states(wire: Wire, one: Client) -> list[str]:
    updates = [message["params"]["update"] for message in wire.events[one.id] if "update" in message["params"]]
    return [update["state"] for update in updates if update["sessionUpdate"] == "state_update"]


@each_client
def test_an_end_that_is_told_twice_ends_one_turn(one: Client) -> None:
    wire = wired(one)
    wire.prompt(one, 1)
    wire.prompt(one, 2)
    wire.agent(answer(1, {"messageId": "m1"}), state("running"), state("idle"), state("idle"))
    assert len(ends(wire)) == 1
    assert [message["id"] for message in wire.sent] == [1, 2]  # the second runs now
    wire.agent(answer(2, {"messageId": "m2"}), state("idle"))
    assert len(ends(wire)) == 1
    wire.agent(state("running"), state("idle", stopReason="refusal"))
    assert len(ends(wire)) == 2
    assert not wire.relay.is_at_work


@each_client
def test_an_end_before_the_acknowledgement_ends_the_turn_with_it(one: Client) -> None:
    wire = wired(one)
    wire.prompt(one, 1)
    wire.agent(said("user_message", messageId="m1", content=[]), state("idle", stopReason="end_turn"))
    assert not ends(wire)
    wire.agent(answer(1, {"messageId": "m1"}))
    assert len(ends(wire)) == 1
    assert len(wire.replies) == 1


def test_an_agent_that_ends_its_turns_as_version_1_does_is_understood_by_clients_of_version_2() -> None:
    wire = wired(NEW)
    wire.prompt(NEW, 1)
    wire.agent(state("running"), answer(1, {"stopReason": "refusal"}))
    (_, _, reply) = wire.replies[0]
    assert isinstance(reply["result"]["messageId"], str)
    assert wire.events["new"][-1]["params"]["update"] == {
        "sessionUpdate": "state_update",
        "state": "idle",
        "stopReason": "refusal",
    }
    assert len(ends(wire)) == 1
    assert not wire.relay.is_at_work, "what clients are told counts for us too"


@pytest.mark.parametrize("result", [{}, None, 7, "ok", {"messageId": 7}, {"messageId": None}])
def test_an_acknowledgement_without_a_name_gets_one(result: Any) -> None:
    wire = wired(NEW)
    wire.prompt(NEW, 1)
    wire.agent({"jsonrpc": "2.0", "id": 1, "result": result}, state("running"), state("idle"))
    assert isinstance(wire.replies[0][2]["result"]["messageId"], str)
    assert len(ends(wire)) == 1


@pytest.mark.parametrize("wrong", [7, None, [], {}, True])
def test_a_state_of_the_wrong_type_changes_nothing(wrong: Any) -> None:
    wire = wired(OLD, NEW)
    wire.prompt(OLD, 1)
    wire.agent(answer(1, {"messageId": "m1"}), state("running"))
    wire.agent(state(wrong), said("state_update"), note("session/update", sessionId=SESSION, update=wrong))
    assert not ends(wire)
    assert snapshot(wire.relay.sessions[SESSION], Version.V2)["update"]["state"] == "running"
    wire.agent(state("idle"))
    assert len(ends(wire)) == 1


@pytest.mark.parametrize("after", [[], [state("running")], [said("user_message", messageId="m", content=[])]])
def test_who_was_told_that_a_turn_began_is_told_that_it_is_over_when_the_process_dies(after: list[Message]) -> None:
    wire = wired(OLD, NEW)
    wire.prompt(NEW, 1)
    wire.agent(answer(1, {"messageId": "m1"}), *after)
    wire.exit(AgentExited("killed"))
    assert states(wire, NEW)[-1] == "idle"
    assert "killed" in str(wire.events["new"][-1])
    assert len(ends(wire)) == 1
    assert not wire.relay.is_at_work


def test_work_in_the_background_keeps_the_process_and_ends_with_it() -> None:
    wire = wired(NEW)
    wire.agent(state("idle", stopReason="end_turn", background=[{"type": "terminal", "terminalId": "t"}]))
    assert wire.relay.is_at_work
    assert snapshot(wire.relay.sessions[SESSION], Version.V2)["update"]["background"]
    wire.exit(AgentExited("killed"))
    assert wire.events["new"][-1]["params"]["update"] == {
        "sessionUpdate": "state_update",
        "state": "idle",
        "background": [],
    }


def test_a_turn_that_goes_on_after_its_acknowledgement_keeps_the_process_busy() -> None:
    wire = wired(OLD)
    wire.prompt(OLD, 1)
    wire.agent(answer(1, {"messageId": "m1"}))
    assert wire.relay.waiting == 0
    assert wire.relay.is_at_work


def test_an_agent_of_version_1_that_speaks_of_states_is_not_believed() -> None:
    wire = Wire()
    wire.open(SESSION, OLD)
    wire.prompt(OLD, 1)
    wire.agent(state("running"), state("idle", stopReason="end_turn"), state("running"))
    assert not ends(wire)
    wire.agent(answer(1, {"stopReason": "end_turn"}))
    assert len(ends(wire)) == 1
    wire.exit(AgentExited("killed"))
    assert "idle" not in str(wire.events["old"][-1])


def test_a_long_state_is_remembered_without_its_lists() -> None:
    wire = wired(NEW)
    wire.agent(state("running", background=[{"type": "terminal", "terminalId": "t" * 20_000}]))
    assert snapshot(wire.relay.sessions[SESSION], Version.V2)["update"] == {
        "sessionUpdate": "state_update",
        "state": "running",
    }


def test_a_prompt_that_an_agent_of_version_2_refuses_is_answered_with_the_refusal() -> None:
    wire = wired(NEW)
    wire.prompt(NEW, 1)
    wire.agent({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}})
    assert wire.replies[0][2]["error"]["code"] == -32602
    assert wire.relay.sessions[SESSION].running is None


def test_a_batch_is_no_message() -> None:
    wire = wired(OLD)
    wire.prompt(OLD, 1)
    wire.agent(b'[{"jsonrpc":"2.0","id":1,"result":{"messageId":"m"}}]')
    assert len(wire.unparsed) == 1
    assert wire.relay.waiting == 1


def test_what_a_client_of_version_1_takes_back_after_the_acknowledgement_is_cancelled_at_the_agent() -> None:
    wire = wired(OLD)
    wire.prompt(OLD, 1)
    wire.agent(answer(1, {"messageId": "m1"}), state("running"))
    wire.take_back(OLD, 1)
    assert wire.sent[-1]["method"] == "session/cancel"
    wire.agent(state("idle", stopReason="cancelled"))
    assert wire.replies[0][2] == {**answer(1, {"stopReason": "cancelled"})}


def test_a_permission_that_is_asked_outside_of_a_turn_is_passed_on() -> None:
    wire = wired(NEW)
    params = {"sessionId": SESSION, "title": "May I?", "options": []}
    wire.agent(request("q", "session/request_permission", **params))
    assert wire.events["new"][-1]["params"] == params


def test_a_session_that_ended_before_its_replay_stays_silent() -> None:
    wire = Wire()
    wire.open(SESSION, OLD, is_live=False)
    wire.relay.wake(SESSION, ASK, SESSION)
    wire.apply(wire.relay.wake_failed(SESSION, AgentExited("no")))
    wire.apply(wire.relay.end(SESSION, AgentExited("no")))
    wire.agent(said("agent_message_chunk", content={"type": "text", "text": "late"}))
    assert "late" not in str(wire.events["old"])
