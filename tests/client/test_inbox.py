"""Which turn an update belongs to, by what the server says of turns."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox_agent.client.inbox import Inbox, TurnBox


class _Server:
    """Stands for the connection, where nothing is ever lost."""

    def __init__(self, *, tells_turns: bool) -> None:
        self.tells_turns = tells_turns


def _inbox(*, tells_turns: bool) -> tuple[Inbox, TurnBox]:
    inbox = Inbox("s", "/tmp", _Server(tells_turns=tells_turns))  # type: ignore[arg-type]
    turn = TurnBox("mine")
    inbox.begin(turn)
    return inbox, turn


def _update(text: str) -> dict[str, Any]:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return {"method": "session/update", "params": {"sessionId": "s", "update": update}}


def _turn(prompt_id: str, turn_id: str | None) -> dict[str, Any]:
    return {"method": "", "params": {"sessionId": "s", "promptId": prompt_id, "turnId": turn_id, "requestId": 7}}


async def _texts(turn: TurnBox) -> list[str]:
    turn.finish()
    texts = []
    while (envelope := await turn.mailbox.take()) is not None:
        assert isinstance(envelope, dict)
        texts.append(envelope["params"]["update"]["content"]["text"])
    return texts


@pytest.mark.parametrize("tells_turns", [True, False])
async def test_a_turn_has_what_comes_between_its_start_and_its_end(*, tells_turns: bool) -> None:
    inbox, turn = _inbox(tells_turns=tells_turns)
    inbox.turn_started(_turn("p1", "theirs"))
    inbox.update(_update("theirs"))
    inbox.turn_queued(_turn("p2", "mine"))
    inbox.update(_update("theirs"))
    inbox.turn_ended(_turn("p1", "theirs"))
    inbox.update(_update("between"))
    inbox.turn_started(_turn("p2", "mine"))
    inbox.update(_update("mine"))
    inbox.turn_ended(_turn("p2", "mine"))
    inbox.update(_update("after"))
    assert await _texts(turn) == ["mine"]


async def test_before_the_first_start_nothing_is_ours_if_the_server_tells_turns() -> None:
    inbox, turn = _inbox(tells_turns=True)
    inbox.update(_update("stray"))
    assert not inbox.is_our_turn
    assert await _texts(turn) == []


async def test_of_an_older_server_everything_that_comes_while_we_have_a_turn_is_taken_for_its_own() -> None:
    inbox, turn = _inbox(tells_turns=False)
    inbox.update(_update("1"))
    inbox.turn_ended({"method": "", "params": {"sessionId": "s", "promptedBy": "c"}})
    inbox.update(_update("2"))
    assert inbox.is_our_turn
    assert await _texts(turn) == ["1", "2"]


async def test_watchers_see_every_turn() -> None:
    inbox, _ = _inbox(tells_turns=True)
    watching = inbox.watch()
    for envelope in (_turn("p1", None), _update("theirs")):
        (inbox.update if envelope["method"] else inbox.turn_started)(envelope)
    assert await watching.take() == _turn("p1", None)
    assert await watching.take() == _update("theirs")


async def test_a_prompt_that_waits_knows_the_request_to_take_back_until_it_runs() -> None:
    inbox, turn = _inbox(tells_turns=True)
    inbox.turn_queued(_turn("p2", "mine"))
    assert turn.waits_as == 7
    inbox.turn_started(_turn("p2", "mine"))
    assert turn.waits_as is None
    assert inbox.is_our_turn
