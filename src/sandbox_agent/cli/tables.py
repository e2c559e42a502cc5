"""Tables: cut to the width of a terminal, whole where a program reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

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
