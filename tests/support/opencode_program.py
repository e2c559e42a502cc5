"""OpenCode's own program: the environment that keeps it to itself, and its server."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_START = 120.0


def opencode_environment(home: Path) -> dict[str, str]:
    switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        **{f"OPENCODE_DISABLE_{switch}": "1" for switch in switches},
    }


@contextmanager
def opencode_serving(program: Path, home: Path, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """Its address. `more` is added to its environment."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    log = home / "opencode.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(program), "serve", "--port", "0", "--hostname", "127.0.0.1"],
            cwd=home / "work",
            env={**opencode_environment(home), **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        end = time.monotonic() + _START
        while (found := re.search(r"listening on (http://\S+)", log.read_text(errors="replace"))) is None:
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < end, log.read_text(errors="replace")
            time.sleep(0.1)
        yield found[1]
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # it does not always end by itself
            process.kill()
            process.wait(10)
