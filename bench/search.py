"""`python -m bench.search`: how long a full-text search takes over many sessions, and what the index costs.

Histories are made up and indexed by the code that the server runs; then questions are asked, rare and common ones.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.store.search import Kept, Query, SearchIndex
from sandbox_agent.store.sqlite.indexer import open_index
from sandbox_agent.store.sqlite.schema import transaction

_CHUNKS = 24
"""Of a message: prompt, chunks, and a tool call make a turn."""
_WORDS = 4
_ROUNDS = 20
_CHUNK = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%b "}}}}'
)
_PROMPT = b'{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"%b"}]}}'
_TOOL = b'{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","title":"Read %b.py"}}}'


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--events", type=int, default=10_000, help="events of each session")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-search-") as place:
        path = Path(place) / "history.db.search"
        with closing(open_index(path)) as connection:
            index = SearchIndex(connection)
            index.create()
            seconds = _fill(index, connection, wanted.sessions, wanted.events)
            events = wanted.sessions * wanted.events
            print(f"indexed {events:,} events of {wanted.sessions:,} sessions in {seconds:.1f} s of the processor")
            print(f"{seconds / events * 1e6:.1f} µs and {_size(path) / events:.0f} bytes on disk per event")
            for title, text in _questions().items():
                print(f"{title:<28} {_ask(index, text)}")


def _fill(index: SearchIndex, connection: sqlite3.Connection, sessions: int, events: int) -> float:
    """Seconds of the processor, without those in which histories are made up."""
    chance = random.Random(1)
    seconds = 0.0
    for stream in range(sessions):
        history = list(_history(chance, stream, events))
        began = time.process_time()
        with transaction(connection):
            index.add(stream, history)
        seconds += time.process_time() - began
    return seconds


def _history(chance: random.Random, stream: int, events: int) -> Iterator[tuple[int, float, bytes]]:
    """Words as they occur: few of them often, most of them seldom."""
    for sequence in range(1, events + 1):
        place = sequence % (_CHUNKS + 2)
        words = b" ".join(_word(int(chance.paretovariate(0.6)) % 50_000) for _ in range(_WORDS))
        if place == 1:
            line = _PROMPT % words
        elif place == 0:
            line = _TOOL % (b"needle%d" % stream if sequence < _CHUNKS * 2 else words[:8])
        else:
            line = _CHUNK % words
        yield sequence, 1.8e9 + sequence, line


def _word(number: int) -> bytes:
    """Words that begin in many ways, as those of a language do."""
    mixed = number * 2654435761 % (1 << 32)
    return b"".join(b"%c" % (97 + (mixed >> shift) % 26) for shift in (0, 5, 10, 15, 20, 25)[: 3 + number % 4])


def _questions() -> dict[str, str]:
    word = [_word(number).decode() for number in range(50_000)]
    return {
        "a word of one session": "needle7",
        "a word that is seldom": f"{word[31415]} ",
        "a word that is everywhere": f"{word[1]} ",
        "two words": f"{word[3]} {word[31]} ",
        "a phrase": f'"{word[1]} {word[2]} {word[1]}"',
        "an unfinished word": word[1234][:4],
        "nothing": "xylophone",
    }


def _ask(index: SearchIndex, text: str) -> str:
    took: list[float] = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        found = index.find(
            Query.parse(text),
            limit=20,
            each=3,
            kept=lambda stream: Kept(SessionKey(AgentId("a"), SessionId(str(stream))), 0),
        )
        took.append(time.perf_counter() - began)
    return (
        f"{statistics.median(took) * 1000:8.1f} ms, at most {max(took) * 1000:.1f} ms, {len(found.sessions)} sessions"
    )


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


if __name__ == "__main__":
    main()
