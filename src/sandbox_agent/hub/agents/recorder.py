"""Histories as agents write them: whatever the disk says, nobody is kept from what he waits for."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sandbox_agent.core.ids import StreamKey
from sandbox_agent.errors import StoreError
from sandbox_agent.store.base import Source, Store

_log = logging.getLogger(__name__)
_HELD_BYTES = 1 << 20
"""What is held of each stream while the store cannot say where it ends."""


class Recorder:
    """Appends to the store. Lines that it cannot place yet are held, and go in before the next ones."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[StreamKey, list[tuple[Source, list[bytes]]]] = {}

    def append(self, stream: StreamKey, source: Source, lines: Sequence[bytes]) -> int:
        """The sequence of the first line, or 0 if it has none yet. They are not flushed."""
        try:
            if stream in self._held:
                self._place(stream)
            return self._store.append(stream, source, lines, flush=False)
        except StoreError as error:
            self._hold(stream, source, lines, error)
            return 0

    def _place(self, stream: StreamKey) -> None:
        self._store.last_sequence(stream)  # raises as the append would, before anything is taken
        for source, lines in self._held.pop(stream):
            self._store.append(stream, source, lines, flush=False)

    def _hold(self, stream: StreamKey, source: Source, lines: Sequence[bytes], error: StoreError) -> None:
        held = self._held.setdefault(stream, [])
        size = sum(len(line) for _, part in held for line in part) + sum(map(len, lines))
        if held and size > _HELD_BYTES:
            _log.error("%d lines of %s are lost: %s", len(lines), stream, error)
        else:
            held.append((source, list(lines)))
