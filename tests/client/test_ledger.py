"""What a client has under way, as it is needed to go on over another connection."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sandbox_agent.client.rpc.ledger import Ledger, Pending
from sandbox_agent.core import frames

ASKED = frames.request(b"1", "session/request_permission", {"sessionId": "s"})


def _send(ledger: Ledger, key: int, method: str, params: dict[str, Any]) -> Pending:
    raw = frames.request(b"%d" % key, method, params)
    return ledger.request(frames.parse(raw), raw)


def _answer(ledger: Ledger, raw: bytes) -> bytes | None:
    return ledger.answer(frames.parse(raw), raw)


def _resumed(ledger: Ledger) -> list[dict[str, Any]]:
    return [msgspec.json.decode(frames.params_of(line)) for line in ledger.resumptions()]


def test_a_session_that_was_made_is_resumed_as_it_was_made_until_it_is_left() -> None:
    ledger = Ledger()
    _send(ledger, 1, "session/new", {"cwd": "/work", "mcpServers": [{"name": "m"}]})
    assert ledger.incoming(frames.result(b"1", {"sessionId": "s"})) is not None
    assert _resumed(ledger) == [{"sessionId": "s", "cwd": "/work", "mcpServers": [{"name": "m"}]}]
    _send(ledger, 2, "_sandboxagent/session/detach", {"sessionId": "s"})
    ledger.incoming(frames.result(b"2", {}))
    assert _resumed(ledger) == []


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_session_that_could_not_be_attached_to_is_not_resumed(method: str) -> None:
    ledger = Ledger()
    _send(ledger, 1, method, {"sessionId": "s", "cwd": "/"})
    ledger.incoming(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}')
    assert _resumed(ledger) == []


def test_an_answer_is_given_once() -> None:
    ledger = Ledger()
    _send(ledger, 1, "session/list", {})
    line = frames.result(b"1", {})
    assert [ledger.incoming(line), ledger.incoming(line)] == [line, None]


def test_a_prompt_without_a_turn_id_gets_one_and_keeps_its_own() -> None:
    ledger = Ledger()
    made = msgspec.json.decode(_send(ledger, 1, "session/prompt", {"sessionId": "s"}).raw)
    assert made["params"]["_meta"]["sandboxagent.dev"]["turnId"]
    given = {"sessionId": "s", "_meta": {"sandboxagent.dev": {"turnId": "t"}}}
    assert msgspec.json.decode(_send(ledger, 2, "session/prompt", given).raw)["params"] == given


def test_a_question_of_a_restarted_server_has_another_id_than_the_old_one_that_was_withdrawn() -> None:
    ledger = Ledger()
    assert ledger.incoming(ASKED) == ASKED
    [withdrawn] = ledger.reopened()
    assert msgspec.json.decode(withdrawn)["params"] == {"requestId": 1}
    assert _answer(ledger, frames.result(b"1", "late")) is None
    renewed = ledger.incoming(ASKED)
    assert renewed is not None
    key = frames.parse(renewed).key
    assert key != b"1"
    assert _answer(ledger, frames.result(key, "yes")) == frames.result(b"1", "yes")


@pytest.mark.parametrize("method", ["$/cancel_request", "_sandboxagent/session/settled"])
def test_the_end_of_a_question_is_told_under_the_id_that_the_client_knows(method: str) -> None:
    ledger = Ledger()
    ledger.reopened()
    renewed = ledger.incoming(ASKED) or b""
    over = ledger.incoming(frames.notification(method, {"requestId": 1})) or b""
    assert frames.to_json(msgspec.json.decode(over)["params"]["requestId"]) == frames.parse(renewed).key
