"""Ours and the peer, both up at once and asked in turns: for a machine that has other work as well.

python -m bench.paired [--rounds 15] [--only post] [--write]

What disturbs one hits the other alike, and nobody starts or warms up while it counts. Each line is the median of the
ratios of neighbouring turns, with the quartiles. The peer's logs are off. On a busy machine run it with `chrt -r 1`:
where Linux shares the processor out among sessions first, ours and the peer's agents count differently otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.load import Figures
from bench.report import replace_part
from bench.running import machine
from bench.scenarios import files, processes, round_trips, streams
from bench.servers import Ours, Peer, Server
from bench.workshop import clear_away, keep_priority

_SECONDS = 0.4
_WORKS: dict[str, tuple[str, Callable[..., Figures]]] = {
    **{
        f"post-{n}": (f"POST, {n} clients, req/s", partial(round_trips.post_round_trips, clients=n, seconds=_SECONDS))
        for n in (1, 16, 64)
    },
    "flood": ("stream of 50k, events/s", partial(streams.flood, events=50_000)),
    "latency": ("one event, p50, µs", partial(streams.single_events, events=200)),
    "run": ("run `/bin/true`, p50, µs", partial(processes.run_commands, times=60)),
    "output": ("100k lines of a process, lines/s", partial(processes.follow_output, lines=100_000)),
    "tar": ("tar of 2,000 files, ms", partial(files.upload_tar, files=2000)),
}
_FIGURES = ("rate", "p50_us", "ms")


class Kept:
    """A server that stays up from one scenario to the next."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @contextlib.contextmanager
    def running(self) -> Iterator[Kept]:
        yield self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)


def measure(names: list[str], rounds: int) -> list[str]:
    """The lines of the table."""
    ours, peer = Ours(), Peer(is_quiet=True)
    lines = []
    with ours.running(), peer.running():
        for name in names:
            title, work = _WORKS[name]
            found = [[work(Kept(server)) for server in (ours, peer)] for _ in range(rounds + 1)][1:]
            lines.append(_line(title, found))
            print(lines[-1], flush=True)
    return lines


def _line(title: str, found: list[list[Figures]]) -> str:
    figure = next(name for name in _FIGURES if name in found[0][0])
    mine, other = (statistics.median(pair[side][figure] for pair in found) for side in (0, 1))
    low, middle, high = statistics.quantiles((pair[0][figure] / pair[1][figure] for pair in found), n=4)
    cpu = [pair[0]["cpu_us"] / pair[1]["cpu_us"] for pair in found if pair[1].get("cpu_us")]
    spent = f"{statistics.median(cpu):.2f}" if cpu else ""
    return f"| {title} | {mine:,.0f} | {other:,.0f} | {middle:.2f} | {low:.2f} to {high:.2f} | {spent} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="beginning of a work's name")
    parser.add_argument("--write", action="store_true", help="renew the table in docs/performance.md")
    wanted = parser.parse_args()
    keep_priority(os.getpid())
    here = machine()
    load = f"load average {here['load_at_start']:.1f} before it began"
    head = [
        f"{wanted.rounds} turns each, {here['cpu']}, {here['cores']} cores, {load}, commit {here['commit']}.",
        "",
        "| work | ours | peer quiet | ratio | half of the turns | CPU of the server |",
        "|---|---:|---:|---:|---|---:|",
    ]
    print("\n".join(head))
    lines = measure([name for name in _WORKS if name.startswith(wanted.only)], wanted.rounds)
    clear_away()
    if wanted.write and not wanted.only:
        replace_part("paired", "\n".join([*head, *lines]))


if __name__ == "__main__":
    main()
