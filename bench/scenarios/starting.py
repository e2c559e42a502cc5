"""From nothing to the first 200 on health, and what it weighs then."""

from __future__ import annotations

import time

from bench.load import Figures
from bench.servers import Server


def start(server: Server) -> Figures:
    """Of three times the middle one: the first may find nothing in the page cache."""
    return sorted((_start(server) for _ in range(3)), key=lambda figures: float(figures["ms"]))[1]


def _start(server: Server) -> Figures:
    seconds = server.start()
    try:
        cpu = server.cpu()
        time.sleep(0.3)
        return {"ms": seconds * 1000, "cpu_ms": cpu * 1000, "idle_mb": server.memory()}
    finally:
        server.stop()
