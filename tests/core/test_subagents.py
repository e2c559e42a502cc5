"""What an agent may call its subagents, and how many it may have."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox_agent.core import subagents
from sandbox_agent.core.effects import Announced
from sandbox_agent.errors import AgentExited
from support.relay import SESSION, Message, Wire, client, note, update

ME, YOU = client("me"), client("you")


def announced(name: Any, parent: str = SESSION) -> Message:
    return note("session/update", sessionId=parent, update={"sessionUpdate": "subagent_update", "sessionId": name})


def children(wire: Wire) -> list[str]:
    return [effect.session for effect in wire.effects if isinstance(effect, Announced)]


def test_what_a_child_says_goes_to_those_of_its_parent_in_the_same_batch() -> None:
    wire = Wire()
    wire.open(SESSION, ME)
    wire.open("other", YOU)
    wire.agent(announced("c"), update("hello", "c"), announced("c"), update("deeper", "c"))
    assert children(wire) == ["c"]
    assert [message["params"]["sessionId"] for message in wire.events["me"]] == [SESSION, "c", SESSION, "c"]
    assert not wire.events["you"]
    wire.attach(YOU)
    wire.agent(update("all", "c"))
    wire.detach(ME)
    wire.agent(update("one", "c"))
    assert "all" in str(wire.events["you"])
    assert "all" in str(wire.events["me"])
    assert "one" not in str(wire.events["me"])


def test_a_child_may_have_children() -> None:
    wire = Wire()
    wire.open(SESSION, ME)
    wire.agent(announced("c"), announced("d", "c"), update("hello", "d"))
    assert wire.events["me"][-1]["params"]["sessionId"] == "d"
    wire.attach(YOU)
    wire.agent(update("again", "d"))
    assert "again" in str(wire.events["you"])


@pytest.mark.parametrize("name", [None, 7, "", "x" * 300, [], {}])
def test_a_name_that_is_none_makes_no_session_and_is_passed_on(name: Any) -> None:
    wire = Wire()
    wire.open(SESSION, ME)
    wire.agent(announced(name))
    assert not children(wire)
    assert wire.noted
    assert len(wire.events["me"]) == 1


def test_a_name_of_a_session_under_way_is_not_given_to_a_child() -> None:
    wire = Wire()
    wire.open(SESSION, ME)
    wire.open("other", YOU)
    wire.agent(announced("other"), announced(SESSION), update("secret", "other"))
    assert not children(wire)
    assert "secret" not in str(wire.events["me"])
    assert "secret" in str(wire.events["you"])


def test_a_name_that_was_used_before_gets_an_id_of_its_own_everywhere() -> None:
    wire = Wire()
    wire.open(SESSION, ME)
    wire.history["c"].append({})
    wire.agent(announced("c"), update("hello", "c"))
    assert children(wire) == ["c~2"]
    told = wire.events["me"]
    assert told[0]["params"]["update"]["sessionId"] == "c~2"
    assert told[1]["params"]["sessionId"] == "c~2"


def test_a_child_goes_on_when_a_new_process_has_taken_up_its_parent_and_tells_of_it_again() -> None:
    wire = Wire()
    wire.open(SESSION, ME)
    wire.agent(announced("c"))
    wire.exit(AgentExited("killed"))
    wire.relay.wake(SESSION, wire.relay.sessions[SESSION].policy, SESSION)
    before = len(wire.events["me"])
    wire.agent(announced("c"))  # in a replay
    wire.apply(wire.relay.woken(SESSION))
    wire.agent(update("on", "c"))
    assert children(wire) == ["c"]
    assert [message["params"]["sessionId"] for message in wire.events["me"][before:]] == ["c"]


def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subagents, "MAX_CHILDREN", 3)
    wire = Wire()
    wire.open(SESSION, ME)
    wire.agent(*[announced(f"c{n}") for n in range(5)], update("lost", "c4"))
    assert len(children(wire)) == 3
    assert len(wire.noted) == 3
