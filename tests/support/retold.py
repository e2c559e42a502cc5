"""What a client of another version of ACP than the agent's is told of a history, by the numbers in it."""

from __future__ import annotations

from collections.abc import Iterator

from support.rpc import Events, Message, RpcClient

OURS = "sandboxagent.dev"
SEQUENCES = {"_meta": {OURS: {"sequences": True}}}
"""Capabilities of a client that wants to know where each message stands."""
_UNCOUNTED = ("state_update", "user_message")
"""What an agent of version 1 does not say itself."""


def sequence(message: Message) -> int | None:
    found: int | None = message.get("params", {}).get("_meta", {}).get(OURS, {}).get("sequence")
    return found


def of_history(events: Events, *, spoken: int) -> list[Message]:
    """Updates that stand for entries of the history, without what has come of an entry that is still on its way."""
    updates = [message for message in events.messages if message.get("method") == "session/update"]
    counted = [message for message in updates if _is_counted(message["params"]["update"], spoken)]
    return counted[: max((n for n, message in enumerate(counted, 1) if sequence(message)), default=0)]


def _is_counted(update: Message, spoken: int) -> bool:
    is_shown_prompt = "promptedBy" in update.get("_meta", {}).get(OURS, {})
    return not is_shown_prompt and (spoken == 2 or update["sessionUpdate"] not in _UNCOUNTED)


def entries(messages: list[Message]) -> Iterator[tuple[int, list[Message]]]:
    """What came of each entry: the last message has the number."""
    lines: list[Message] = []
    for message in messages:
        lines.append(message)
        if (at := sequence(message)) is not None:
            yield at, lines
            lines = []


async def follow(client: RpcClient, events: Events, session: str, after: int) -> None:
    """Return when all that came before the answer is there."""
    params = {"sessionId": session, "after": after}
    message = {"jsonrpc": "2.0", "id": "follow", "method": "_sandboxagent/session/follow", "params": params}
    response = await client.post(message)
    assert response.json()["result"]["lastSequence"] >= after, response.text
    last = int(response.headers["X-ACP-Last-Event-Id"])
    await events.wait_until(lambda e: (e.ids or [0])[-1] >= last)
