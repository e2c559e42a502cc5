"""Keeps our secrets out of what we show: logs of agents, our own log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|DATABASE_URL)$", re.IGNORECASE)
_SHORTEST = 6
MARK = "[redacted]"


class Redactor:
    """Replaces every occurrence of a known secret. Values of a few characters are not secrets but coincidences."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known))) if known else None

    def clean(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(MARK, text)

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


class RedactingFormatter(logging.Formatter):
    """Formats as another would, then takes the secrets out."""

    def __init__(self, inner: logging.Formatter, redactor: Redactor) -> None:
        super().__init__()
        self._inner = inner
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.clean(self._inner.format(record))
