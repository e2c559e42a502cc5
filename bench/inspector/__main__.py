"""`python -m bench.inspector`: the inspector with very many updates, by the browser's own performance timeline.

Writes its part of docs/performance.md, and every figure to `.cache/bench/inspector.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time

from bench.chromium import open_page
from bench.inspector import table
from bench.inspector.visit import METER, Figures, Visit
from bench.inspector.workload import MockServer
from bench.report import replace_part
from bench.running import machine
from bench.workshop import CACHE

SIZES = (2_000, 20_000, 100_000)
ANSWER = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.inspector", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES), help="updates in a session of many turns")
    parser.add_argument("--answer", type=int, default=ANSWER, help="updates in a session of one answer; 0 for none")
    parser.add_argument("--dry", action="store_true", help="write no page")
    wanted = parser.parse_args()
    began = time.monotonic()
    cases = [("turns", size) for size in wanted.sizes] + ([("answer", wanted.answer)] if wanted.answer else [])
    results = {"machine": machine(), "cases": []}
    for shape, size in cases:
        figures = asyncio.run(_visit(size, shape))
        results["cases"].append({"shape": shape, "updates": size, "figures": figures})
        print(f"{shape} {size}: " + json.dumps({name: round(value, 1) for name, value in figures.items()}), flush=True)
    results["seconds"] = time.monotonic() - began
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "inspector.json").write_text(json.dumps(results, indent=1))
    text = table.of(results)
    print(f"\n{text}\n\nraw results in {CACHE / 'inspector.json'}")
    if not wanted.dry:
        replace_part("inspector", text)


async def _visit(size: int, shape: str) -> Figures:
    """Each on a server and in a browser of its own: nothing is left over from the one before."""
    server = MockServer()
    with server.running():
        async with open_page(METER) as page:
            return await Visit(page, server, size, shape, server.converse()).run()


if __name__ == "__main__":
    main()
