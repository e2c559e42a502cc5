from __future__ import annotations

import logging
import sys

import pytest

from sandbox_agent.logs import JsonFormatter, RedactingFormatter, TextFormatter
from sandbox_agent.redaction import MARK, Redactor

FORGED = "x\n2026-11-16 00:00:00,000 INFO sandbox_agent all is well\r\x1b[31mred\x1b]0;title\x07\u2028y\x9b1m"


def formatted(formatter: logging.Formatter) -> str:
    """A record with hostile text in its message and in its traceback."""
    try:
        raise ValueError(FORGED)
    except ValueError:
        record = logging.LogRecord("n", logging.ERROR, __file__, 1, "said %s", (FORGED,), sys.exc_info())
    return RedactingFormatter(formatter, Redactor([])).format(record)


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_what_others_say_neither_forges_a_line_nor_passes_an_escape_code(formatter: logging.Formatter) -> None:
    first, *others = formatted(formatter).split("\n")
    assert "all is well" in first
    assert all(line.startswith("  | ") for line in others)
    assert all(line.isprintable() for line in (first, *others))


def test_a_cut_never_leaves_the_beginning_of_a_secret() -> None:
    redactor = Redactor(["s3cret-value", "another-secret"])
    text = "ab s3cret-value cd another-secret"
    for limit in range(len(text) + 1):
        head = redactor.head(text, limit)
        assert "s3c" not in head
        assert "ano" not in head
    assert redactor.head(text, len(text)) == f"ab {MARK} cd {MARK}"
    assert redactor.head(text, 5) == f"ab {MARK}"
    assert redactor.head("plain", 3) == "pla"
