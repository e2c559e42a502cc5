"""Seeds for what is tried anew with each change of the code, and is the same each time until then."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

_ROOT = Path(__file__).parents[2]


@functools.cache
def seed_of_the_code() -> int:
    """Another number whenever the server, or what simulates its surroundings, has changed.

    So other histories are looked at with every change, and a failure is the change's, not chance."""
    digest = hashlib.sha256()
    for folder in ("src/sandbox_agent", "tests/simulation"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:5], "big")
