"""`python appending.py DATABASE` appends until it is killed, and prints what was acknowledged."""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.store import Retention, SessionRecord, SqliteStore


async def append_forever(path: Path) -> None:
    store = SqliteStore(path, retention=Retention(age=None, bytes=None), memory_bytes=32 << 20)
    await store.open()
    key = SessionKey(AgentId("mock"), SessionId("one"))
    last = store.last_sequence(key.stream)
    for turn in count():
        store.put_session(SessionRecord(agent=key.agent, session_id=key.session, title=str(turn), updated=float(turn)))
        store.put_turn(key, f"turn{turn}", b"%d" % turn)
        for batch in (1, 50, 3):
            store.append(key.stream, "agent", [b'{"n":%d}' % (last + n + 1) for n in range(batch)])
            last += batch
        os.write(1, b"%d %d\n" % (turn, last))
        await asyncio.sleep(0)


if __name__ == "__main__":
    asyncio.run(append_forever(Path(sys.argv[1])))
