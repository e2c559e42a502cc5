from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from sandbox_agent.history.replay import Replayer
from sandbox_agent.store.base import Source
from support.history import (
    SESSION,
    History,
    chunk,
    entries_of,
    error,
    histories,
    notice,
    prompt,
    request,
    result,
    text,
    update,
)


@pytest.fixture
def history() -> History:
    return History()


def replay(history: History) -> list[bytes]:
    replayer = Replayer(SESSION)
    lines = [line for entry in history.entries for line in replayer.feed(entry)]
    return lines + replayer.finish()


def user_chunk(block: dict[str, Any]) -> dict[str, Any]:
    line = update("user_message_chunk", content=block)
    line["params"]["_meta"] = {"sandboxagent.dev": {"replayed": True}}
    return line


def test_updates_come_back_byte_for_byte_in_order(history: History) -> None:
    odd = b'{ "params":{"update":{"sessionUpdate":"new_thing","x":1.50}}, "method":"session/update" }'
    lines = [odd, msgspec.json.encode(chunk("a")), msgspec.json.encode(update("plan", entries=[]))]
    for line in lines:
        history.agent(line)
    assert replay(history) == lines


def test_a_prompt_becomes_one_user_chunk_per_block_before_the_agents_updates(history: History) -> None:
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    history.client(prompt(1, text("hi"), link))
    answer = history.agent(chunk("hello"))
    history.agent(result(1, {"stopReason": "end_turn"}))
    lines = replay(history)
    assert [msgspec.json.decode(line) for line in lines[:2]] == [user_chunk(text("hi")), user_chunk(link)]
    assert lines[2:] == [answer.envelope]


def test_our_user_chunks_are_dropped_when_the_agent_echoes_the_prompt(history: History) -> None:
    history.client(prompt(1, text("hi")))
    echo = history.agent(chunk("hi", "user_message_chunk"))
    answer = history.agent(chunk("hello"))
    assert replay(history) == [echo.envelope, answer.envelope]


@pytest.mark.parametrize("variant", ["available_commands_update", "usage_update", "session_info_update"])
def test_an_update_that_tells_nothing_does_not_settle_the_echo(history: History, variant: str) -> None:
    history.client(prompt(1, text("hi")))
    aside = history.agent(update(variant))
    echo = history.agent(chunk("hi", "user_message_chunk"))
    assert replay(history) == [aside.envelope, echo.envelope]


def test_the_echo_is_judged_anew_in_every_turn(history: History) -> None:
    history.client(prompt(1, text("one")))
    echo = history.agent(chunk("one", "user_message_chunk"))
    history.agent(result(1, {"stopReason": "end_turn"}))
    history.client(prompt(2, text("two")))
    lines = replay(history)
    assert lines[0] == echo.envelope
    assert [msgspec.json.decode(line) for line in lines[1:]] == [user_chunk(text("two"))]


def test_a_prompt_without_any_update_is_replayed_before_the_next(history: History) -> None:
    history.client(prompt(1, text("one")))
    history.agent(error(1, -32000, "no"))
    history.client(prompt(2, text("two")))
    assert [msgspec.json.decode(line) for line in replay(history)] == [
        user_chunk(text("one")),
        user_chunk(text("two")),
    ]


def test_nothing_else_is_replayed(history: History) -> None:
    history.client(request(1, "session/new"))
    history.agent(result(1, {"sessionId": SESSION}))
    history.agent(request(0, "session/request_permission", toolCall={}, options=[]))
    history.server(result(0, {"outcome": {"outcome": "cancelled"}}))
    history.server(notice("_sandboxagent/session/ended", reason="x"))
    history.server(chunk("not the agent's"))
    history.client(notice("session/cancel"))
    history.agent(notice("_vendor/thing"))
    assert replay(history) == []


@pytest.mark.parametrize("params", [b"[]", b'{"update":3}', b'{"update":{"sessionUpdate":3}}', b"null"])
def test_an_update_of_an_odd_shape_is_still_replayed(history: History, params: bytes) -> None:
    line = b'{"jsonrpc":"2.0","method":"session/update","params":%s}' % params
    history.agent(line)
    assert replay(history) == [line]


def test_half_a_surrogate_pair_is_replayed_unchanged(history: History) -> None:
    line = msgspec.json.encode(chunk("MARK")).replace(b"MARK", rb"\ud83d")
    history.agent(line)
    assert replay(history) == [line]


@settings(max_examples=150, deadline=None)
@given(histories)
def test_any_history_replays_only_updates(drawn: list[tuple[Source, bytes]]) -> None:
    history = History()
    history.entries = entries_of(drawn)
    for line in replay(history):
        assert b'"session/update"' in line
