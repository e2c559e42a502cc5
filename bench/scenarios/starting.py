"""From nothing to the first 200 on health, and what it weighs then."""

from __future__ import annotations

import time

from bench.load import Figures
from bench.servers import Server


def start(server: Server) -> Figures:
    seconds = server.start()
    try:
        cpu = server.cpu()
        time.sleep(0.3)
        return {"ms": seconds * 1000, "cpu_ms": cpu * 1000, "idle_mb": server.memory()}
    finally:
        server.stop()
