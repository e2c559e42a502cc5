"""Run the programs that an install needs: own process group, bounded, nothing of it left alive."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.errors import InstallError

MAX_LINE = 4 * 1024 * 1024
_KEPT = frozenset(
    {
        *("HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
        *(
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "NO_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "no_proxy",
            "all_proxy",
        ),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    }
)
_KEPT_PREFIXES = ("LC_", "PIP_", "UV_", "NPM_CONFIG_", "npm_config_")


def scrub(env: Mapping[str, str]) -> dict[str, str]:
    """What a package manager may see: no tokens, no provider keys, nothing that injects code."""
    return {name: value for name, value in env.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}


async def run(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, deadline: float) -> str:
    """Run to the end and return what it printed. Raises InstallError with the tail of that on failure or time-out."""
    with log.open("wb") as sink:
        async with _start(command, env, cwd, stdin=asyncio.subprocess.DEVNULL, stdout=sink, stderr=sink) as process:
            try:
                async with asyncio.timeout(deadline):
                    code = await process.wait()
            except TimeoutError:
                raise InstallError(f"{_shown(command)} took longer than {deadline:.0f} s\n{_tail(log)}") from None
    if code != 0:
        raise InstallError(f"{_shown(command)} exited with {code}\n{_tail(log)}")
    return _head(log)


async def ask_initialize(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, deadline: float
) -> dict[str, Any]:
    """Start an agent, do the ACP handshake over its stdio, stop it, and return its answer. Raises InstallError."""
    pipe = asyncio.subprocess.PIPE
    with log.open("wb") as sink:
        async with _start(command, env, cwd, stdin=pipe, stdout=pipe, stderr=sink) as process:
            try:
                async with asyncio.timeout(deadline):
                    return await _handshake(process)
            except TimeoutError:
                raise InstallError(f"{_shown(command)} did not answer initialize within {deadline:.0f} s") from None
            except (_Refused, EOFError, OSError, ValueError) as error:
                raise InstallError(f"{_shown(command)} failed at initialize: {error}\n{_tail(log)}") from error


class _Refused(Exception):
    pass


async def _handshake(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
    capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
    client = {"name": "sandbox-agent", "version": "0"}
    params = {"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    process.stdin.write(msgspec.json.encode(message) + b"\n")
    await process.stdin.drain()
    while line := await process.stdout.readline():
        try:
            answer = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue  # some agents greet in prose
        if not isinstance(answer, dict) or answer.get("id") != 1 or "method" in answer:
            continue
        result = answer.get("result")
        if not isinstance(result, dict) or not isinstance(result.get("protocolVersion"), int):
            raise _Refused(f"answered {str(answer.get('error') or answer)[:500]}")
        return result
    raise EOFError("its output ended")


@asynccontextmanager
async def _start(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, **stdio: Any
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Nothing in its process group outlives the block, not even when the block is cancelled."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, env=dict(env), cwd=cwd, start_new_session=True, limit=MAX_LINE, **stdio
        )
    except OSError as error:
        raise InstallError(f"{_shown(command)} cannot be started: {error}") from error
    try:
        yield process
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if process.stdin is not None:
            process.stdin.close()
        await asyncio.shield(_reap(process))


async def _reap(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(5):
            await process.wait()
    except TimeoutError:
        pass  # a grandchild in another session holds the pipes


def kill_strays(directory: Path) -> None:
    """Kill what still works inside `directory`: the children of an install that was itself killed. Linux only."""
    proc = Path("/proc")
    if not proc.is_dir():
        return
    for entry in proc.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            cwd = (entry / "cwd").readlink()
            if cwd.is_relative_to(directory):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


def _head(log: Path, limit: int = 65536) -> str:
    with log.open("rb") as file:
        return file.read(limit).decode("utf-8", errors="replace")


def _tail(log: Path, limit: int = 2000) -> str:
    return log.read_bytes()[-limit:].decode("utf-8", errors="replace").strip()


def _shown(command: Sequence[str]) -> str:
    return " ".join([Path(command[0]).name, *command[1:3]])
