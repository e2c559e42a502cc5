"""How cost grows with size, as the slope of a straight line through the logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.running import Results


@dataclass(frozen=True)
class Growth:
    """A figure of several cases, by size. With `is_rate` the cost is a millionth part of the figure's inverse."""

    title: str
    figure: str
    sizes: dict[str, int]
    is_rate: bool = False

    def points(self, results: Results, server: str) -> list[tuple[int, float]]:
        found = [(size, results.median(case, server, self.figure)) for case, size in self.sizes.items()]
        return [(size, 1e6 / value if self.is_rate else value) for size, value in found if value]


_EVENTS = {"flood-10k": 10_000, "flood": 100_000, "flood-1m": 1_000_000}
_REPLAYED = {"replay-5k": 5_000, "replay": 50_000, "replay-500k": 500_000}
_SESSIONS = {"sessions-50": 50, "sessions-500": 500, "sessions-2000": 2000}
GROWTHS = (
    Growth("µs per request, by clients", "rate", {f"post-{n}": n for n in (4, 16, 64, 256)}, is_rate=True),
    Growth("CPU µs per request, by clients", "cpu_us", {f"post-{n}": n for n in (4, 16, 64, 256)}),
    Growth("µs per event, by events", "rate", _EVENTS, is_rate=True),
    Growth("µs per event, by sessions", "rate", {f"flood-{n}": n for n in (2, 8, 32)}, is_rate=True),
    Growth("µs per event replayed, by events", "rate", _REPLAYED, is_rate=True),
    Growth("ms per session, by sessions", "ms_each", _SESSIONS),
    Growth("KB of the server per session, by sessions", "own_kb_each", _SESSIONS),
    Growth("KB per idle stream, by streams", "kb_each", {f"idle-{n}": n for n in (100, 1000, 2000)}),
    Growth("CPU µs per event, by active streams", "cpu_us", {f"active-{n}": n for n in (20, 50, 200)}),
    Growth("MB at most while GET, by MiB", "rss_mb", {"get-64": 64, "get": 256, "get-1024": 1024}),
    Growth("MB at most while PUT, by MiB", "rss_mb", {"put-64": 64, "put": 256, "put-1024": 1024}),
    Growth("CPU µs per event and client, by attached clients", "cpu_us", {f"audience-{n}": n for n in (1, 10, 100)}),
    Growth("µs per event of a loaded history", "us_each", {f"history-{n}": n for n in (10_000, 100_000)}),
    Growth("ms of `session/list`, by sessions", "ms", {f"list-{n}": n for n in (100, 1_000, 10_000)}),
    Growth("ms of a tar, by files", "ms", {"tar-500": 500, "tar": 2000, "tar-8000": 8000}),
)


def table(results: Results) -> str:
    lines = [
        "How cost grows: the slope of a line through the logarithms. 0 means that it stays as it is, 1 that it grows",
        "in proportion.",
        "",
        "| cost, by size | sizes | ours | slope | peer | slope |",
        "|---|---|---|---:|---|---:|",
    ]
    for growth in GROWTHS:
        cells = []
        for server in ("ours", "peer"):
            points = growth.points(results, server)
            cells += [
                ", ".join(short(value) for _, value in points),
                f"{slope(points):.2f}" if len(points) > 1 else "",
            ]
        sizes = ", ".join(f"{size:,}" for size in growth.sizes.values())
        lines.append(f"| {growth.title} | {sizes} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"


def slope(points: Sequence[tuple[float, float]]) -> float:
    xs = [math.log(x) for x, _ in points]
    ys = [math.log(max(y, 1e-9)) for _, y in points]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    return sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / spread
