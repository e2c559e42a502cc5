"""How the server writes its log: lines for people or JSON for machines, without our secrets."""

from __future__ import annotations

import copy
import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from sandbox_agent.redaction import Redactor

LogFormat = Literal["text", "json"]
_TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(line)


class TextFormatter(logging.Formatter):
    """Control characters are escaped, so that nobody can forge a line or colour the terminal.

    A traceback may quote what others sent, line breaks too: its lines are marked, so that none looks like ours."""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        return _visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return "\n".join(f"  | {_visible(line)}" for line in super().formatException(ei).split("\n"))


def _visible(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class RedactingFormatter(logging.Formatter):
    """Formats as another would, with the secrets taken out before: what is escaped can no longer be recognized."""

    def __init__(self, inner: logging.Formatter, redactor: Redactor) -> None:
        super().__init__()
        self._inner = inner
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        clean = copy.copy(record)  # other handlers are given the same record
        clean.msg, clean.args = self._redactor.clean(record.getMessage()), None
        if record.exc_info:
            clean.exc_text = self._redactor.clean(self._inner.formatException(record.exc_info))
        return self._inner.format(clean)


def set_up_logging(level: str, style: LogFormat, redactor: Redactor) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(JsonFormatter() if style == "json" else TextFormatter(), redactor))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
