"""The code blocks of README and guides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@dataclass(frozen=True, slots=True)
class Sample:
    page: str
    number: int
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}-{self.number}-{self.language}"


def samples(*languages: str) -> list[Sample]:
    """Those in one of `languages`, or all."""
    return [one for page in PAGES for one in _of(page) if not languages or one.language in languages]


def _of(page: Path) -> Iterator[Sample]:
    for number, (language, text) in enumerate(_BLOCK.findall(page.read_text())):
        yield Sample(page.stem, number, language, text)
