"""`python -m sandbox_agent.mock_agent`: ends at the end of stdin, or on SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from sandbox_agent.mock_agent.agent import Agent
from sandbox_agent.mock_agent.quirks import Quirks
from sandbox_agent.mock_agent.state import StateFolder
from sandbox_agent.mock_agent.stdio import Stdin, Stdout

_GRACE = 1.0


def main() -> None:
    quirks = Quirks()
    if sys.argv[1:]:
        from sandbox_agent.mock_agent.manual import parse_flags  # noqa: PLC0415 (spares the usual start its imports)

        quirks = parse_flags(sys.argv[1:])
    if quirks.protocol is None and os.environ.get("SANDBOX_AGENT_MOCK_PROTOCOL") == "2":
        quirks = msgspec.structs.replace(quirks, protocol=2)
    if quirks.exit_at_start is not None:
        sys.stderr.write("mock agent: exits at start, as asked\n")
        sys.exit(quirks.exit_at_start)
    asyncio.run(_serve(quirks, _find_state_folder()))


async def _serve(quirks: Quirks, folder: Path) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    # A handler that does nothing, rather than SIG_IGN, which children would inherit.
    loop.add_signal_handler(signal.SIGTERM, (lambda: None) if quirks.ignore_term else ended.set)
    loop.add_signal_handler(signal.SIGINT, ended.set)
    on_end = (lambda: None) if quirks.ignore_eof else ended.set
    stdout = Stdout(on_end)
    await stdout.open(1)
    agent = Agent(stdout, StateFolder(folder), quirks)
    await Stdin(agent.take_line, on_end).open(0)
    await ended.wait()
    await agent.end(grace=_GRACE)
    await stdout.close(grace=_GRACE)


def _find_state_folder() -> Path:
    chosen = os.environ.get("SANDBOX_AGENT_MOCK_STATE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "sandbox-agent" / "mock-agent"


if __name__ == "__main__":
    main()
