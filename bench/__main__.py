"""`python -m bench`: ours next to the peer, round by round; writes docs/performance.md."""

from __future__ import annotations

import argparse
import os

from bench import plan, report
from bench.running import run_cases
from bench.workshop import CACHE, find_peer, keep_priority


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every scenario at three sizes, more rounds")
    parser.add_argument("--rounds", type=int, help="how often each case runs  [2, or 3 with --full]")
    parser.add_argument("--only", nargs="*", help="names of cases, or beginnings of them; writes no page")
    parser.add_argument("--write", action="store_true", help="renew docs/performance.md; otherwise no file changes")
    wanted = parser.parse_args()
    keep_priority(os.getpid())
    if find_peer() is None:
        raise SystemExit("the peer cannot be installed: npm is needed, and the package registry")
    form = "full" if wanted.full else "quick"
    cases = plan.full() if wanted.full else plan.quick()
    if wanted.only:
        cases = [case for case in cases if case.name.startswith(tuple(wanted.only))]
    results = run_cases(cases, rounds=wanted.rounds or (3 if wanted.full else 2), form=form)
    print(f"\n{form} form: {results.seconds:.0f} s; raw results in {CACHE / 'results.json'}")
    print(report.write(results) if wanted.write and not wanted.only else report.table(results))


if __name__ == "__main__":
    main()
