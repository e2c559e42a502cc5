"""A session's record as a reader of one version of ACP expects it: the record keeps what was really said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sandbox_agent.core.retelling import Retelling
from sandbox_agent.core.versions import Version

Spoken = Sequence[tuple[int, int]]
"""From which sequence number on which version was spoken, in order; version 1 before the first."""


def version_at(spoken: Spoken, sequence: int) -> Version:
    """The version in which an entry was written."""
    found = Version.V1
    for first, version in spoken:
        if first > sequence:
            break
        found = Version(version)
    return found


class Wording:
    """Feed it the updates of a session in order. What was said in the reader's version passes byte for byte."""

    def __init__(self, session_id: str, *, to: Version | None, spoken: Spoken, is_replay: bool) -> None:
        """`to`: the reader's version; None for one that reads whatever was spoken."""
        self._session_id = session_id
        self._to = to
        self._spoken = spoken
        self._is_replay = is_replay
        self._retelling: Retelling | None = None

    def of(self, sequence: int, lines: Iterable[bytes]) -> list[bytes]:
        """The lines that come from entry `sequence`."""
        version = version_at(self._spoken, sequence)
        if self._is_understood(version):
            return list(lines)
        retelling = self._retold_from(version)
        return [said for line in lines for said in retelling.tell(sequence, line)]

    def note(self, sequence: int, source: str, line: bytes) -> None:
        """An entry of the record, told or not."""
        version = version_at(self._spoken, sequence)
        if not self._is_understood(version):
            self._retold_from(version).note(source, line)

    def retelling(self, version: Version) -> Retelling | None:
        """The one at work, if it is one from this version: whoever goes on after the record can go on with it."""
        found = self._retelling
        return found if found is not None and found.from_ is version else None

    def opened(self, version: Version, result: Any) -> list[bytes]:
        """Learn what the session offers, from the answer with which an agent of this version opened it."""
        if self._is_understood(version):
            return []
        return self._retold_from(version).opened(result)

    def _is_understood(self, version: Version) -> bool:
        return self._to is None or version is self._to

    def _retold_from(self, version: Version) -> Retelling:
        found = self.retelling(version)
        if found is None:
            found = self._retelling = Retelling(self._session_id, from_=version, is_replay=self._is_replay)
        return found
