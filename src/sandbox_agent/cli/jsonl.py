"""Output for programs: one JSON object a line."""

from __future__ import annotations

import sys
from typing import Any

import msgspec


def print_line(kind: str, **members: Any) -> None:
    print_json({"type": kind, **members})


def print_json(value: Any) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()
