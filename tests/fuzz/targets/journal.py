"""Whatever a disk makes of a part of the journal, what was written before and after that part is found."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.store.batches import encode_lines
from sandbox_agent.store.operations import Append, encode_operation
from sandbox_agent.store.sqlite.disk import REAL
from sandbox_agent.store.sqlite.journal import Journal, read_journal

_FAR = 1 << 40
"""Numbers of ours that no input has: it would have to guess a checksum too."""


def check(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        before, after = _written(path, _FAR), _written(path, _FAR + 1)
        place = path.with_name("history.db.journal.0")
        place.write_bytes(data)
        read_journal([place])
        place.write_bytes(before + data + after)
        found = [operation.number for operation in read_journal([place]).operations]
        assert [number for number in found if number >= _FAR] == [_FAR, _FAR + 1]
        place.write_bytes(before + after[: len(data) % len(after)])
        cut = read_journal([place])
        assert ([operation.number for operation in cut.operations], cut.damage) == ([_FAR], {})


def _written(path: Path, number: int) -> bytes:
    journal = Journal(path, disk=REAL)
    journal.open()
    try:
        body = encode_lines(1.0, "agent", [b"{}"])
        journal.write(number, [encode_operation(Append(number, StreamKey("session:a:b"), 1, 1, 1.0, body))])
        return journal.paths[0].read_bytes()
    finally:
        journal.close()
