"""`python -m bench.opencode`: what a long session costs at `/opencode`: to open it, to follow it, and in memory.

A history is made up and folded by the code that the server runs. Times are seconds of the processor.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import msgspec

from sandbox_agent.core.json_values import Object
from sandbox_agent.history.opencode import Messages, SessionFold, SessionView
from sandbox_agent.store.base import Entry, Source

_VIEW = SessionView("ses_bench", "session:bench:s", "bench", "/work")
_TURN = 100
"""Updates of a turn: text, with a thought and a tool call now and then."""
_SHOWN = 100
"""Messages that the terminal UI asks for."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.opencode", description=__doc__)
    parser.add_argument("--updates", type=int, default=20_000, help="updates in the session")
    wanted = parser.parse_args()
    history = made_up(wanted.updates)
    opened, shown, encoded = opening(history)
    print(f"{wanted.updates:,} updates in {wanted.updates // _TURN:,} turns")
    print(f"open: {opened:.2f} s for the newest {shown} messages, {encoded / 1024:,.0f} KiB of JSON")
    print(f"follow: {following(history) / len(history) * 1e6:.1f} µs for each entry")
    print(f"held while it is followed: {held(history) / 1024:,.0f} KiB after all of it")


def made_up(updates: int) -> list[Entry]:
    entries: list[Entry] = []

    def add(source: Source, message: Object) -> None:
        line = msgspec.json.encode({"jsonrpc": "2.0", **message})
        entries.append(Entry(len(entries) + 1, 1_700_000_000 + len(entries) / 20, source, line))

    for number in range(updates):
        if number % _TURN == 0:
            if number:
                add("agent", {"id": number // _TURN, "result": {"stopReason": "end_turn"}})
            prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "Go on."}]}
            add("client", {"id": number // _TURN + 1, "method": "session/prompt", "params": prompt})
        add("agent", {"method": "session/update", "params": {"sessionId": "s", "update": _update(number)}})
    return entries


def opening(history: list[Entry]) -> tuple[float, int, int]:
    """Seconds, messages and bytes of an answer to `GET /session/{id}/message?limit=100`."""
    began = time.process_time()
    fold, messages = SessionFold(_VIEW), Messages(_SHOWN)
    for entry in history:
        messages.apply(fold.feed(entry))
    listed = messages.listed()
    encoded = msgspec.json.encode(listed)
    return time.process_time() - began, len(listed), len(encoded)


def following(history: list[Entry]) -> float:
    """Seconds to fold each entry and to write what it tells."""
    fold, encode = SessionFold(_VIEW), msgspec.json.Encoder().encode
    began = time.process_time()
    for entry in history:
        for told in fold.feed(entry):
            encode(told)
    return time.process_time() - began


def held(history: list[Entry]) -> int:
    """Bytes that a fold holds when it has seen everything."""
    tracemalloc.start()
    fold = SessionFold(_VIEW)
    for entry in history:
        fold.feed(entry)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size


def _update(number: int) -> Object:
    if number % 25 == 24:
        content = [{"type": "content", "content": {"type": "text", "text": "line of output\n" * 20}}]
        call = {"toolCallId": f"call-{number}", "title": "Run make", "kind": "execute", "status": "completed"}
        return {"sessionUpdate": "tool_call", **call, "rawInput": {"command": "make"}, "content": content}
    kind = "agent_thought_chunk" if number % 10 == 0 else "agent_message_chunk"
    return {"sessionUpdate": kind, "content": {"type": "text", "text": "some words of an answer, "}}


if __name__ == "__main__":
    main()
