"""What a relay decided, for clients of another version than the agent's; and how a relay follows turns of version 2."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.effects import Effect, Publish, Record, Reply, Retell, Tell
from sandbox_agent.core.ids import ConnectionId
from sandbox_agent.core.interpreter import Interpreter
from sandbox_agent.core.session import Client
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import AgentExited
from support.relay import SESSION, Message, Wire, answer, client, note, request, update

NEW = Client(ConnectionId("new"), version=Version.V2)
OLD = client("old")


def _line(message: Message) -> bytes:
    return msgspec.json.encode(message)


def _state(state: str, **more: Any) -> Message:
    return note("session/update", sessionId=SESSION, update={"sessionUpdate": "state_update", "state": state, **more})


def _interpreted(interpreter: Interpreter, effects: list[Effect], first: int = 1) -> list[Effect]:
    """With the places in the history that a store would have given, from `first` on."""
    found: list[Effect] = []
    for effect in effects:
        found += interpreter.interpret(effect, first)
        first += len(effect.lines) if isinstance(effect, Publish) else isinstance(effect, Record)
    return found


def _told(effects: list[Effect]) -> dict[str, list[str]]:
    """The kinds of updates that each connection is told in other words."""
    found: dict[str, list[str]] = {}
    for effect in effects:
        if isinstance(effect, Tell | Retell):
            lines = effect.lines if isinstance(effect, Tell) else [line for _, said in effect.entries for line in said]
            for connection in effect.connections:
                kinds = [msgspec.json.decode(line)["params"]["update"]["sessionUpdate"] for line in lines]
                found.setdefault(connection, []).extend(kinds)
    return found


def _prompt(wire: Wire, one: Client) -> list[Effect]:
    raw = _line(request(7, "session/prompt", sessionId=SESSION, prompt=[{"type": "text", "text": "hi"}]))
    return wire.relay.prompt(one, 1, frames.parse(raw), raw)


def test_a_session_whose_clients_all_speak_the_agents_version_is_not_mixed() -> None:
    wire = Wire()
    wire.open(SESSION, OLD)
    assert not wire.relay.mixed
    wire.attach(NEW)
    assert wire.relay.mixed == {SESSION}
    wire.detach(NEW)
    assert not wire.relay.mixed


def test_an_update_is_published_as_it_is_and_told_to_the_others_in_their_words() -> None:
    wire = Wire()
    wire.open(SESSION, OLD, NEW)
    interpreter = Interpreter(wire.relay.sessions, wire.relay.mixed)
    told = _interpreted(interpreter, wire.relay.from_agent([_line(update("hello"))]))
    (published,) = (effect for effect in told if isinstance(effect, Publish))
    assert published.lines == [_line(update("hello"))]
    assert published.connections == ("old",)
    assert _told(told) == {"new": ["agent_message_chunk"]}
    (retold,) = (effect for effect in told if isinstance(effect, Retell))
    assert [at for at, _ in retold.entries] == [1]


def test_a_turn_at_an_agent_of_version_1_is_acknowledged_and_told_as_states_to_version_2() -> None:
    wire = Wire()
    wire.open(SESSION, OLD, NEW)
    interpreter = Interpreter(wire.relay.sessions, wire.relay.mixed)
    begun = _interpreted(interpreter, _prompt(wire, NEW))
    (reply,) = (effect for effect in begun if isinstance(effect, Reply))
    assert msgspec.json.decode(reply.line)["result"]["messageId"]
    assert _told(begun) == {"new": ["user_message", "state_update"]}
    over = _interpreted(interpreter, wire.relay.from_agent([_line(answer(1, {"stopReason": "end_turn"}))]))
    assert _told(over) == {"new": ["state_update"]}
    assert not [effect for effect in over if isinstance(effect, Reply)]


def test_a_prompt_of_version_1_is_answered_when_an_agent_of_version_2_is_idle() -> None:
    wire = Wire()
    wire.relay.speak(Version.V2)
    wire.open(SESSION, OLD)
    _prompt(wire, OLD)
    stale = wire.relay.from_agent([_line(_state("idle"))])
    taken_up = wire.relay.from_agent([_line(_state("running")), _line(answer(1, {"messageId": "m"}))])
    assert not [effect for effect in [*stale, *taken_up] if isinstance(effect, Reply)]
    over = wire.relay.from_agent([_line(_state("idle", stopReason="max_tokens"))])
    (reply,) = (effect for effect in over if isinstance(effect, Reply))
    assert msgspec.json.decode(reply.line) == answer(7, {"stopReason": "max_tokens"}) | {"id": 7}
    assert wire.relay.sessions[SESSION].running is None


def test_work_that_a_process_can_not_end_is_ended_for_it() -> None:
    wire = Wire()
    wire.relay.speak(Version.V2)
    wire.open(SESSION, NEW)
    _prompt(wire, NEW)
    wire.relay.from_agent([_line(_state("running")), _line(answer(1, {"messageId": "m"}))])
    effects = wire.relay.exited(AgentExited("gone"))
    (published,) = (effect for effect in effects if isinstance(effect, Publish))
    told = msgspec.json.decode(published.lines[0])["params"]["update"]
    assert (told["state"], told["stopReason"], published.source) == ("idle", "error", "server")
    assert not [effect for effect in effects if isinstance(effect, Reply)]
