"""Small SVG charts: bars side by side, and lines over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 720, 260
LEFT, TOP, RIGHT, BOTTOM = 64, 34, 12, 44
COLOURS = ("#2563eb", "#93c5fd", "#c2410c", "#fdba74", "#059669", "#7c3aed")
_STYLE = "text{font:12px system-ui,sans-serif;fill:#374151}.t{font-size:14px;font-weight:600}.g{stroke:#e5e7eb}"


def bars(title: str, groups: Mapping[str, Mapping[str, float | None]], *, unit: str) -> str:
    """Groups of bars, one bar per series; a value of None leaves its place empty."""
    series = list(dict.fromkeys(name for group in groups.values() for name in group))
    top = max((value for group in groups.values() for value in group.values() if value), default=1.0)
    parts = _frame(title, top, unit, series)
    slot = (WIDTH - LEFT - RIGHT) / max(len(groups), 1)
    width = slot * 0.8 / max(len(series), 1)
    for at, (label, group) in enumerate(groups.items()):
        start = LEFT + at * slot + slot * 0.1
        parts.append(_text(start + slot * 0.4, HEIGHT - BOTTOM + 16, label, "middle"))
        for number, name in enumerate(series):
            value = group.get(name)
            if value:
                height = value / top * (HEIGHT - TOP - BOTTOM)
                place = f'x="{start + number * width:.1f}" y="{HEIGHT - BOTTOM - height:.1f}"'
                size = f'width="{width * 0.92:.1f}" height="{height:.1f}"'
                parts.append(f'<rect {place} {size} fill="{COLOURS[number % len(COLOURS)]}"/>')
    return _svg(parts)


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], *, unit: str, across: str) -> str:
    """One line per series, through its points."""
    points = [point for each in series.values() for point in each] or [(0.0, 1.0)]
    right = max(x for x, _ in points) or 1.0
    top = max(y for _, y in points) or 1.0
    parts = _frame(title, top, unit, list(series))
    for number, each in enumerate(series.values()):
        path = " ".join(
            f"{LEFT + x / right * (WIDTH - LEFT - RIGHT):.1f},{HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM):.1f}"
            for x, y in each
        )
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    for step in range(5):
        x = LEFT + step / 4 * (WIDTH - LEFT - RIGHT)
        parts.append(_text(x, HEIGHT - BOTTOM + 16, f"{right * step / 4:,.3g}", "middle"))
    parts.append(_text(WIDTH - RIGHT, HEIGHT - BOTTOM + 32, across, "end"))
    return _svg(parts)


def _frame(title: str, top: float, unit: str, series: Sequence[str]) -> list[str]:
    parts = [f'<text class="t" x="{LEFT}" y="18">{escape(title)}</text>']
    for step in range(5):
        y = HEIGHT - BOTTOM - step / 4 * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            _text(LEFT - 6, y + 4, f"{top * step / 4:,.3g}" if top < 1000 else f"{top * step / 4:,.0f}", "end")
        )
    parts.append(_text(LEFT - 6, TOP - 8, unit, "end"))
    at = LEFT
    for number, name in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<rect x="{at}" y="{HEIGHT - 18}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(at + 14, HEIGHT - 9, name, "start"))
        at += 28 + 7 * len(name)
    return parts


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _svg(parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    return "\n".join(
        [head, f"<style>{_STYLE}</style>", '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>\n"]
    )
