"""Parts of a page under docs/ that are written from the code, between two comments that name them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def require_part(page: str, name: str, text: str) -> None:
    """Fail unless the part `name` of the page is `text`; with WRITE_DOCS=1, make it so."""
    path = DOCS / page
    wanted = f"<!-- {name}: written from the code; a test with WRITE_DOCS=1 brings it up to date -->\n\n{text}\n\n"
    begin, end = rf"<!-- {name}: .*?-->\n", f"<!-- end of {name} -->"
    found = re.search(f"{begin}.*?(?={end})", path.read_text(), re.DOTALL)
    assert found, f"docs/{page} has no part {name!r}"
    if os.environ.get("WRITE_DOCS"):
        path.write_text(path.read_text().replace(found[0], wanted))
    else:
        assert found[0] == wanted, f"docs/{page} is out of date: run this test with WRITE_DOCS=1"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
