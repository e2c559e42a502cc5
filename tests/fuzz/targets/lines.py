"""However bytes arrive, the same lines come out; one past the cap is counted and hashed, not kept."""

from __future__ import annotations

import hashlib

from fuzz.pieces import pieces
from sandbox_agent.core.lines import LineSplitter, OversizedLine

CAP = 16


def check(data: bytes) -> None:
    splitter = LineSplitter(CAP)
    found: list[bytes | OversizedLine] = []
    for piece in pieces(data):
        found += splitter.feed(piece)
        assert splitter.pending <= CAP
    found += splitter.finish()
    assert found == [line for raw in data.split(b"\n") if (line := _expected(raw))]


def _expected(raw: bytes) -> bytes | OversizedLine:
    if len(raw) > CAP:
        return OversizedLine(len(raw), hashlib.sha256(raw).hexdigest())
    return raw.removesuffix(b"\r")
