"""A session's record as a reader of one version of ACP expects it: the record keeps what was really said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sandbox_agent.core import frames
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import UPDATE
from sandbox_agent.core.versions import UpdateTranslator, Version

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
        self.translator: UpdateTranslator | None = None
        """The one at work, if one is: whoever goes on after the record can go on with it."""
        self._from: Version | None = to

    def of(self, sequence: int, lines: Iterable[bytes]) -> list[bytes]:
        """The lines that come from entry `sequence`."""
        version = version_at(self._spoken, sequence)
        if self._is_understood(version):
            return list(lines)
        return [said for line in lines for said in self._translated(version, line)]

    def is_at(self, version: Version) -> bool:
        """Whether its translator is one from this version."""
        return self.translator is not None and self._from is version

    def opened(self, version: Version, result: Any) -> list[bytes]:
        """Learn what the session offers, from the answer with which an agent of this version opened it."""
        if self._is_understood(version):
            return []
        return [frames.notification(UPDATE, params) for params in self._translator(version).session_opened(result)]

    def _is_understood(self, version: Version) -> bool:
        return self._to is None or version is self._to

    def _translated(self, version: Version, line: bytes) -> list[bytes]:
        message = read_json(line)
        if not isinstance(message, dict) or message.get("method") != UPDATE:
            return [line]
        said = self._translator(version).update(message.get("params"))
        return [frames.notification(UPDATE, params) for params in said]

    def _translator(self, version: Version) -> UpdateTranslator:
        if self.translator is None or self._from is not version:
            self._from = version
            to = self._to or version
            self.translator = UpdateTranslator(self._session_id, from_=version, to=to, is_replay=self._is_replay)
        return self.translator
