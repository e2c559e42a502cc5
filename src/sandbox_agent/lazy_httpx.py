"""httpx, loaded when something of it is first used: `from sandbox_agent import lazy_httpx as httpx`.

It takes three times as long to load as the rest of the SDK, most of it for a command line of its own."""

from __future__ import annotations

import sys
from typing import Any

from sandbox_agent.slim_imports import without


def __getattr__(name: str) -> Any:
    if "httpx" not in sys.modules:
        _load()
    return getattr(sys.modules["httpx"], name)


def _load() -> None:
    """Without its command line, which brings rich and pygments along: httpx does without where these are missing."""
    with without("httpx._main"):
        import httpx  # noqa: F401, PLC0415
