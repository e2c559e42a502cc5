"""The built-in agent, after it has started a daemon as `cline --acp` does: `python detaching_agent.py PIDFILE [bare]`.

The daemon is nobody's child, leads a session of its own and has closed what it was given; `bare`: its environment too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def start_daemon(pidfile: str, *, keeps_environment: bool) -> None:
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    Path(pidfile).write_text(f"{os.getpid()}\n")
    os.chdir("/")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.closerange(3, 256)
    os.execve("/bin/sleep", ["cline-hub-daemon", "300"], dict(os.environ) if keeps_environment else {})


start_daemon(sys.argv[1], keeps_environment="bare" not in sys.argv)
os.execv(sys.executable, [sys.executable, "-m", "sandbox_agent.mock_agent"])
