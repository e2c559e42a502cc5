"""Two source trees of ours side by side: what a change buys, in CPU per request and per event.

git worktree add .cache/bench/before main
python -m bench.compare .cache/bench/before/src [AFTER] [--rounds 5] [--store sqlite]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import load
from bench.prompts import begin_prompts
from bench.servers import Ours
from bench.workshop import ROOT

EVENTS = 100_000
PATIENCE_MS = 30_000
"""On a machine with other work the server may not run for seconds: that is no lost event."""


def measure(server: Ours) -> dict[str, float]:
    found: dict[str, float] = {}
    with server.running():
        conversation = server.converse()
        for clients in (1, 16):
            before = server.cpu()
            figures = load.post(server.port, [conversation.echo(key) for key in range(clients)], seconds=1.5)
            found[f"POST, {clients} clients: µs of CPU"] = (server.cpu() - before) / figures["requests"] * 1e6
            found[f"POST, {clients} clients: req/s"] = figures["requests"] / figures["seconds"]
        conversation = server.converse()
        before = server.cpu()
        with begin_prompts(server, [conversation], f"flood {EVENTS} 100") as begin:
            figures = load.read_streams(
                server.port, [conversation.stream()], expected=EVENTS, begin=begin, idle_ms=PATIENCE_MS
            )
        if figures["missing"] or figures["doubled"]:
            raise RuntimeError(f"events lost or doubled: {figures}")
        found["stream: µs of CPU per event"] = (server.cpu() - before) / EVENTS * 1e6
        found["stream: events/s"] = figures["events"] / figures["seconds"]
        conversation = server.converse()
        with begin_prompts(server, [conversation], "tick 300 2000") as begin:
            figures = load.read_streams(server.port, [conversation.stream()], expected=300, begin=begin)
        found["one event: µs"] = figures["p50_us"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=ROOT / "src")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", default="sqlite")
    wanted = parser.parse_args()
    results: dict[str, list[dict[str, float]]] = {"before": [], "after": []}
    for _ in range(wanted.rounds):
        for name, source in (("before", wanted.before), ("after", wanted.after)):
            results[name].append(measure(Ours(wanted.store, source=source.resolve())))
    for figure in results["before"][0]:
        best = max if figure.endswith("/s") else min  # the rest is what else the machine was doing
        before, after = (best(row[figure] for row in results[name]) for name in ("before", "after"))
        print(f"{figure:32} {before:12.1f} {after:12.1f}   x {after / before:.2f}")


if __name__ == "__main__":
    main()
