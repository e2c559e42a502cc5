"""Tables: cut to the width of a terminal, whole where a program reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from sandbox_agent.client.sandbox import SearchResult

Cell = str | Text
_WHOLE = 100_000
"""A width that cuts nothing."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, empty: str, keep: int = 0) -> None:
    """One line a row. Column number `keep` is never cut: it is what one copies into the next command."""
    console = _console()
    held = [list(row) for row in rows]
    if not held:
        console.print(Text(empty, style="dim"))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        width = max(len(str(row[keep])) for row in held) if number == keep else None
        table.add_column(column, no_wrap=True, overflow="ellipsis", min_width=width)
    for row in held:
        table.add_row(*row)
    console.print(table)


def print_facts(facts: Iterable[tuple[str, str | Text | None]]) -> None:
    """Names and values, one a line; what is None is left out."""
    console = _console()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        if value is not None and value != "":
            table.add_row(name, value)
    console.print(table)


def print_hits(found: SearchResult) -> None:
    """What a search found, by session, with the words that were looked for standing out."""
    console = _console()
    for each in found.sessions:
        session = each.session
        console.print(Text.assemble((session.alias or session.session_id, "bold"), "  ", session.title or ""))
        for hit in each.hits:
            line = Text(f"  {hit.kind:<8} {hit.sequence:>6}  ", style="dim")
            for part in hit.snippet:
                line.append(" ".join(part.text.split("\n")), style="bold yellow" if part.is_match else "not dim")
            console.print(line, no_wrap=True, overflow="ellipsis")
        if each.more_hits:
            console.print(Text(f"  and {each.more_hits} more", style="dim"))
    if not found.sessions:
        console.print(Text("nothing found", style="dim"))
    if not found.is_complete:
        console.print(Text("there may be more: add words, or try again in a moment", style="dim"))


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WHOLE)


def ago(moment: str | None) -> str:
    """An ISO time as how long it is past."""
    if not moment:
        return ""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


def size_text(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{int(value)} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return ""
