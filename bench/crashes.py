"""`python -m bench.crashes --rounds 500`: kill -9 in the middle of turns, with torn files and a full disk.

Needs the right to mount a small disk of its own. It ends with counts, or with the first promise that was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.crash_rounds import CrashRounds
from support.disk import LimitedDisk, small_disk


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.crashes", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=Path, help="copy the files here when a promise is broken")
    wanted = parser.parse_args()
    print(f"seed {wanted.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="crashes-") as folder,
        small_disk(Path(folder) / "disk", mebibytes=64) as disk,
    ):
        if isinstance(disk, LimitedDisk):
            raise SystemExit("a disk cannot be mounted here: run it as root")
        crashes = CrashRounds(Path(folder) / "home", disk, wanted.seed, keep=wanted.keep)
        try:
            asyncio.run(crashes.run(wanted.rounds))
        finally:
            print(describe(crashes), flush=True)


def describe(crashes: CrashRounds) -> str:
    tally = crashes.tally
    parts = [(f"{sum(tally.rounds.values())} rounds", tally.rounds), ("found", tally.facts), ("answers", tally.answers)]
    return "\n".join(
        f"{title}:\n" + "\n".join(f"  {number:8,}  {name}" for name, number in counts.most_common())
        for title, counts in parts
    )


if __name__ == "__main__":
    main()
