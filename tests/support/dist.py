"""Building the packages, and the checkout that they are built from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(source: Path, place: Path, *targets: str) -> Path:
    """Build `source` with the backend that pyproject.toml names, as wheel and sdist unless told otherwise."""
    hatchling = Path(sys.executable).with_name("hatchling")
    wanted = [word for target in targets for word in ("-t", target)]
    subprocess.run([hatchling, "build", "-d", place, *wanted], cwd=source, check=True, capture_output=True, timeout=50)
    return place
