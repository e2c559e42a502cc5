"""Keeps our secrets out of what we show: logs of agents, our own log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|DATABASE_URL)$", re.IGNORECASE)
_SHORTEST = 6
_TELLING = 8
"""So many characters of a secret's beginning are no coincidence at the end of a text."""
MARK = "[redacted]"


class Redactor:
    """Replaces every occurrence of a known secret, as it is or as JSON and `repr` would write it.

    A text may have been cut within a secret: so its last characters go too where they are a secret's beginning.
    Values of a few characters are not secrets but coincidences."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spelled = {way for secret in secrets if len(secret) >= _SHORTEST for way in _spellings(secret)}
        self._known = sorted(spelled, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._known))) if self._known else None

    def clean(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._without_cut_secret(self._pattern.sub(MARK, text))

    def _without_cut_secret(self, text: str) -> str:
        end = text.rstrip("\N{REPLACEMENT CHARACTER}")  # the half of a character at the cut
        for secret in self._known:
            start = end.find(secret[:_TELLING], max(0, len(end) - len(secret)))
            while start >= 0 and len(end) - start >= _TELLING:
                if secret.startswith(end[start:]):
                    return end[:start] + MARK
                start = end.find(secret[:_TELLING], start + 1)
        return text

    def head(self, text: str, limit: int) -> str:
        """The first `limit` characters of `text`, without secrets, also without the beginning of one at the cut."""
        pieces, position = [], 0
        for found in self._pattern.finditer(text) if self._pattern is not None else ():
            if found.start() >= limit:
                break
            pieces += [text[position : found.start()], MARK]
            position = found.end()
        return "".join([*pieces, text[position:limit]])


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """The values of variables whose names say that they are secret."""
    return [value for name, value in environ.items() if _SECRET_NAME.search(name)]


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield ascii(secret)[1:-1]
