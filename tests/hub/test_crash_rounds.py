"""kill -9, torn files, a full disk, over and over: `python -m bench.crashes` in small."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from support.crash_rounds import CrashRounds
from support.disk import LimitedDisk, small_disk


@pytest.mark.timeout(120)
@pytest.mark.promise("P-history-1")
async def test_a_server_that_is_killed_on_a_bad_disk_starts_tells_every_hole_and_runs_no_turn_twice(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        if isinstance(disk, LimitedDisk):
            pytest.skip("needs a mount of its own: the limit would hold for this process, not for the server's")
        seed = secrets.randbits(32)
        print(f"seed {seed}")
        crashes = CrashRounds(tmp_path / "home", disk, seed, longest=0.4)
        await crashes.run(3)
        assert crashes.tally.facts["starts"] == 4
