"""A real server in a child process, on a free port, with a data directory of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

_START = 30.0


class Server:
    def __init__(self, process: asyncio.subprocess.Process, url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    @property
    def peak_memory(self) -> int:
        """The most bytes that it ever held."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """As a crash would: no clean-up of any kind."""
        self.process.kill()

    async def stop(self, number: signal.Signals = signal.SIGTERM, *, deadline: float = 10.0) -> int:
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(deadline):
            return await self.process.wait()


@asynccontextmanager
async def running_server(
    home: Path, *flags: str, config: str | None = None, env: Mapping[str, str] | None = None, port: int = 0
) -> AsyncIterator[Server]:
    """`home` holds everything that the server and its agents write; reuse it to restart on the same data."""
    home.mkdir(parents=True, exist_ok=True)
    args = ["server", "--port", str(port), *flags]
    if config is not None:
        (home / "config.toml").write_text(config)
        args += ["--config", str(home / "config.toml")]
    log = home / "server.log"
    with log.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "sandbox_agent",
            *args,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env={**_environment(home), **(env or {})},
            start_new_session=True,
        )
    try:
        yield Server(process, await _address(process, log), log)
    finally:
        await _end(process)


def mock_agents(**flags: str) -> str:
    """A config with the built-in agent under other names, each with start flags of its own."""
    tables = [
        f"[agents.{name}]\ncommand = {[sys.executable, '-m', 'sandbox_agent.mock_agent', *words.split()]!r}\n"
        'isolation = "process"\n'
        'env_passthrough = ["SANDBOX_AGENT_MOCK_STATE"]\n'
        for name, words in flags.items()
    ]
    return "\n".join(tables)


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "SANDBOX_AGENT_DATA_DIR": str(home / "data"),
        "SANDBOX_AGENT_MOCK_STATE": str(home / "mock-state"),
    }


async def _address(process: asyncio.subprocess.Process, log: Path) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(_START):
        line = (await process.stdout.readline()).decode().strip()
    assert line.startswith("listening on http://"), f"{line!r}\n{log.read_text(errors='replace')}"
    return line.removeprefix("listening on ")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(10):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
