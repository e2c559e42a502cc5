"""The inspector's figures as a table: one column for each session."""

from __future__ import annotations

from typing import Any

from bench.growth import slope

_ROWS = (
    ("while the updates stream in: seconds until all are shown", "stream_s"),
    ("… longest task, ms", "stream_longest"),
    ("… tasks over 50 ms", "stream_long_tasks"),
    ("… their sum, ms", "stream_long_ms"),
    ("… key to the frame that shows it, p95, ms", "stream_key_p95"),
    ("… at most, ms", "stream_key_max"),
    ("… longest gap between frames, ms", "stream_gap_max"),
    ("reload: from navigation to the whole history, ms", "load_ms"),
    ("… longest task, ms", "load_longest"),
    ("… tasks over 50 ms", "load_long_tasks"),
    ("… key to frame, p95, ms", "typing_key_p95"),
    ("… scroll from top to end: longest gap, ms", "scroll_gap_max"),
    ("… frames a second", "scroll_fps"),
    ("… frames of 240 without a row in the middle", "scroll_blank"),
    ("… longest task, ms", "scroll_longest"),
    ("… JavaScript heap, MB", "heap_mb"),
    ("… elements in the document", "nodes"),
    ("protocol view: from navigation to all rows, ms", "protocol_load_ms"),
    ("… longest task, ms", "protocol_load_longest"),
    ("… search: key to frame, p95, ms", "search_key_p95"),
    ("… from a word to the rows that have it, ms", "found_ms"),
    ("… longest task, ms", "search_longest"),
    ("… scroll from top to end: longest gap, ms", "protocol_scroll_gap_max"),
    ("… frames a second", "protocol_scroll_fps"),
    ("… frames of 240 without a row in the middle", "protocol_scroll_blank"),
    ("… JavaScript heap, after the search too, MB", "search_heap_mb"),
    ("… elements in the document", "protocol_nodes"),
    ("both views while the updates stream in: seconds until all are shown", "both_s"),
    ("… longest task, ms", "both_longest"),
    ("… key to frame, p95, ms", "both_key_p95"),
    ("… at most, ms", "both_key_max"),
    ("… longest gap between frames, ms", "both_gap_max"),
)
_GROWING = ("stream_s", "load_ms", "heap_mb", "protocol_load_ms", "found_ms", "search_heap_mb", "both_s")


def of(results: dict[str, Any]) -> str:
    cases = results["cases"]
    machine = results["machine"]
    heads = [_head(case) for case in cases]
    conditions = (
        f"One run, {results['seconds']:.0f} s, commit {machine['commit']}: {machine['cpu']}, {machine['cores']} cores "
        f"shared by server, agent, driver and browser, load average {machine['load_at_start']:.1f} before it began."
    )
    lines = [
        conditions,
        "",
        "| | " + " | ".join(heads) + " | slope |",
        "|---|" + "---:|" * (len(cases) + 1),
    ]
    return "\n".join(lines + [_line(title, figure, cases) for title, figure in _ROWS])


def _head(case: dict[str, Any]) -> str:
    words = "one answer of" if case["shape"] == "answer" else "turns,"
    return f"{words} {case['updates']:,}"


def _line(title: str, figure: str, cases: list[dict[str, Any]]) -> str:
    cells = [_number(case["figures"].get(figure)) for case in cases]
    points = [(case["updates"], case["figures"][figure]) for case in cases if case["shape"] == "turns"]
    grown = f"{slope(points):.2f}" if figure in _GROWING and len(points) > 1 else ""
    return f"| {title} | " + " | ".join([*cells, grown]) + " |"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
