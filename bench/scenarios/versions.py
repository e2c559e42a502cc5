"""A stream that is read in the other version of ACP: what the translation itself costs."""

from __future__ import annotations

import time

import msgspec

from bench.load import Figures
from bench.servers import Server
from sandbox_agent.core.versions import UpdateTranslator, Version

_TEXT = "x" * 100
_SOME, _ALL = 25, 1
"""Mostly text, as agents stream; and tool calls alone, which cost most."""


def translate(server: Server, *, events: int) -> Figures:
    """Lines of an agent decoded, translated and encoded, in the slower of the two directions. No server is started.

    In CPU time, since other programs of the machine have no part in it."""
    ways = ((Version.V1, Version.V2), (Version.V2, Version.V1))
    return {"rate": min(_rate(*way, events, every) for way in ways for every in (_SOME, _ALL))}


def _rate(from_: Version, to: Version, events: int, every: int) -> float:
    lines = [_line(number, from_, every) for number in range(100)]
    translator = UpdateTranslator("s", from_=from_, to=to)
    begun = time.process_time()
    for number in range(events):
        message = msgspec.json.decode(lines[number % 100])
        for params in translator.update(message["params"]):
            msgspec.json.encode({**message, "params": params})
    return events / (time.process_time() - begun)


def _line(number: int, version: Version, every: int) -> bytes:
    """Text, and a tool call's progress at every so many lines."""
    update: dict[str, object] = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": f"{number} {_TEXT}"},
    }
    if number % every == 0:
        content = [{"type": "content", "content": update["content"]}]
        call = f"call-{number}"
        update = {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed", "content": content}
    elif version is Version.V2:
        update["messageId"] = "agent-1"
    params = {"sessionId": "s", "update": update}
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
