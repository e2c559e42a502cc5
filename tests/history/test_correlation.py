"""What the earlier API would have said of a message, put into the message."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sandbox_agent.history.universal import UniversalEvent, UniversalEvents
from sandbox_agent.history.universal.correlation import correlated
from support.history import History, chunk, notice, request, result, text, update

META = "sandboxagent.dev"


@pytest.fixture
def history() -> History:
    return History()


def told(history: History) -> list[dict[str, Any]]:
    converter = UniversalEvents("s-1")
    return [msgspec.json.decode(correlated(entry.envelope, converter.feed(entry))) for entry in history.entries]


def event(**fields: Any) -> UniversalEvent:
    given = {"event_id": "evt_1", "sequence": 1, "time": "t", "session_id": "s", "native_session_id": None}
    whole = {**given, "source": "agent", "synthetic": False, "type": "error", "data": {}, **fields}
    return UniversalEvent(**whole)


def test_chunks_of_one_message_carry_one_item_and_the_first_says_that_it_has_started(history: History) -> None:
    history.client(request(1, "session/prompt", prompt=[text("hello")]))
    history.agent(chunk("a"))
    history.agent(chunk("b"))
    prompt, first, second = (message["params"] for message in told(history))
    assert prompt["_meta"][META]["legacyEvent"]["type"] == "turn.started"
    items = [params["update"]["_meta"][META] for params in (first, second)]
    assert [item["phase"] for item in items] == ["started", "delta"]
    assert items[0]["itemId"] == items[1]["itemId"]
    assert [params["_meta"][META]["legacyEvent"]["type"] for params in (first, second)] == [
        "item.started",
        "item.delta",
    ]


def test_a_finished_tool_call_carries_the_whole_item(history: History) -> None:
    history.agent(update("tool_call", toolCallId="c1", title="Run", status="pending"))
    history.agent(update("tool_call_update", toolCallId="c1", status="completed", rawOutput={"code": 0}))
    done = told(history)[1]["params"]["update"]["_meta"][META]
    assert (done["phase"], done["itemId"], done["item"]["status"]) == ("completed", "c1", "completed")
    assert (done["kind"], done["role"]) == ("tool_call", "tool")


def test_the_answer_to_a_prompt_carries_its_turn_also_when_it_is_an_error(history: History) -> None:
    params = {"prompt": [text("x")], "_meta": {META: {"turnId": "mine"}}}
    history.client(request(1, "session/prompt", **params))
    history.agent(result(1, {"stopReason": "end_turn"}))
    history.client(request(2, "session/prompt", **params))
    history.server({"jsonrpc": "2.0", "id": 2, "error": {"code": -32010, "message": "gone"}})
    answered, failed = told(history)[1], told(history)[3]
    for ours in (answered["result"]["_meta"][META], failed["error"]["data"]["_meta"][META]):
        assert (ours["turn"], ours["phase"]) == ({"turnId": "mine"}, "ended")


def test_what_a_message_says_itself_stays(history: History) -> None:
    own = {"traceparent": "00", META: {"legacyEvent": {"eventId": "given"}, "mine": 1}}
    history.agent(
        notice("session/update", update={"sessionUpdate": "agent_message_chunk", "content": text("a")}, _meta=own)
    )
    meta = told(history)[0]["params"]["_meta"]
    assert (meta["traceparent"], meta[META]["legacyEvent"], meta[META]["mine"]) == ("00", {"eventId": "given"}, 1)


@pytest.mark.parametrize(
    "line",
    [b"no json", b"[1]", b'{"jsonrpc":"2.0","id":1,"result":"text"}', b'{"jsonrpc":"2.0","id":1,"error":{"data":3}}'],
)
def test_what_has_no_place_for_it_means_the_same_as_before(line: bytes) -> None:
    made = correlated(line, [event()])
    assert made == line or msgspec.json.decode(made) == msgspec.json.decode(line)


def test_without_events_the_bytes_are_the_same() -> None:
    line = b'{ "jsonrpc":"2.0" , "method":"x","params":{}}'
    assert correlated(line, []) is line
