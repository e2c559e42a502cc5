from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sandbox_agent.mock_agent.manual import render_page
from sandbox_agent.mock_agent.quirks import Quirks
from sandbox_agent.mock_agent.stdio import LineSplitter
from sandbox_agent.mock_agent.words import WORDS

PAGE = Path(__file__).parents[2] / "docs" / "mock-agent.md"


def test_the_page_is_what_the_tables_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "run: python -m sandbox_agent.mock_agent.manual > docs/mock-agent.md"
    )


def test_help_documents_every_word_and_flag() -> None:
    command = [sys.executable, "-m", "sandbox_agent.mock_agent", "--help"]
    text = subprocess.check_output(command, text=True, timeout=30)
    assert all(f"  {word.usage}\n" in text for word in WORDS.values())
    assert all(f"--{name.replace('_', '-')}" in text for name in Quirks.__struct_fields__)


def test_lines_are_joined_across_reads_and_long_ones_reported_once() -> None:
    splitter = LineSplitter(limit=5)
    assert splitter.feed(b"ab") == []
    assert splitter.feed(b"c\nd\n") == [b"abc", b"d"]
    assert splitter.feed(b"123456") == [None]
    assert splitter.feed(b"789\nok\n") == [b"ok"]
