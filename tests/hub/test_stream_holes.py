"""A stream over a history with holes: what is there keeps its number, what is not is told."""

from __future__ import annotations

import json
from pathlib import Path

from sandbox_agent.core.ids import ConnectionId, connection_stream
from sandbox_agent.core.methods import STREAM_GAP
from sandbox_agent.hub.clients.stream import Stream
from sandbox_agent.store.sqlite.writer import Pace
from support.store_words import STREAM, committed, numbered, query, sqlite_store


async def test_events_behind_a_hole_keep_their_ids_and_the_hole_is_told(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=Pace(linger=0.0))
    await store.open()
    stream = Stream(store, connection_stream(ConnectionId("c")), memory_limit=16)
    for start in range(1, 41, 10):
        stream.append(STREAM, store.append(STREAM, "agent", numbered(10, start=start)), numbered(10, start=start))
        await committed(store)
    query(path, "DELETE FROM batches WHERE first = 11")
    reader = stream.read_from(0)
    events: dict[int, dict[str, object]] = {}
    while reader.position < 40:
        batch = await reader.take(wait=5)
        assert batch is not None
        for event_id, line in enumerate(batch.lines, batch.first_id):
            assert event_id not in events
            events[event_id] = json.loads(line)
    found = {event_id: event["n"] for event_id, event in events.items() if "n" in event}
    assert found == {number: number for number in (*range(1, 11), *range(21, 41))}
    gaps = [event["params"] for event in events.values() if event.get("method") == STREAM_GAP]
    assert [(gap["fromId"], gap["toId"]) for gap in gaps if isinstance(gap, dict)] in ([(11, 20)], [(11, 19)])
    await store.close()
