"""What agents say is recorded, if need be later, and kept from nobody."""

from __future__ import annotations

from pathlib import Path

from sandbox_agent.hub.agents.recorder import Recorder
from sandbox_agent.store.sqlite.writer import Pace
from support.disk import FailingDisk
from support.store_words import STREAM, committed, lines_of, numbered, sqlite_store


async def test_what_cannot_be_placed_is_recorded_before_what_follows_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = sqlite_store(tmp_path / "history.db", pace=Pace(linger=0.0), disk=disk)
    await store.open()
    store.append(STREAM, "agent", numbered(2))
    await committed(store)
    await store.close()
    await store.open()
    recorder = Recorder(store)
    disk.fails, disk.stays = ["SELECT"], True
    assert recorder.append(STREAM, "agent", numbered(2, start=3)) == 0
    assert recorder.append(STREAM, "client", numbered(1, start=5)) == 0
    disk.fails = []
    assert recorder.append(STREAM, "agent", numbered(1, start=6)) == 6
    assert await lines_of(store) == numbered(6)
    assert recorder.append(STREAM, "agent", numbered(1, start=7)) == 7
    await store.close()
