"""`python appending.py DATABASE [DATA_DIR]` appends until it is killed, and prints what was acknowledged."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from itertools import count
from pathlib import Path

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.store import Retention, SessionRecord, make_store


async def append_forever(name: str, data_dir: Path) -> None:
    keep_all = Retention(age=None, bytes=None)
    store = make_store(name, data_dir, retention=keep_all, memory_bytes=32 << 20, search_text_bytes=1 << 30)
    await store.open()
    key = SessionKey(AgentId("mock"), SessionId("one"))
    last = (await store.acquire(key.stream)).last
    for turn in count():
        store.put_session(SessionRecord(agent=key.agent, session_id=key.session, title=str(turn), updated=float(turn)))
        store.put_turn(key, f"turn{turn}", b"%d" % turn)
        for batch in (1, 50, 3):
            store.append(key.stream, "agent", [b'{"n":%d}' % (last + n + 1) for n in range(batch)])
            last += batch
        store.once_safe(partial(os.write, 1, b"%d %d\n" % (turn, last)))  # type: ignore[arg-type]
        await asyncio.sleep(0)


if __name__ == "__main__":
    place = sys.argv[1]
    is_address = place.startswith("postgresql:")
    asyncio.run(append_forever(place if is_address else f"sqlite:{place}", Path(sys.argv[-1])))
