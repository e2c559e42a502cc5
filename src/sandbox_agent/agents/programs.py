"""Run the programs that an install needs: bounded, and nothing of them left alive."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from sandbox_agent.core import versions
from sandbox_agent.core.lines import LineSplitter
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import InstallError
from sandbox_agent.process import Child, child_environment

MAX_LINE = 4 * 1024 * 1024
_MAX_SAID = 64 * 1024
_PACKAGE_MANAGERS = ("PIP_", "UV_", "NPM_CONFIG_", "npm_config_")


def program_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """What any child may see, and the settings of package managers."""
    return child_environment(ours, prefixes=_PACKAGE_MANAGERS)


async def run(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, deadline: float) -> str:
    """Run to the end and return what it printed. Raises InstallError with the tail of that on failure or time-out."""
    with log.open("wb") as sink:
        async with _running(command, env, cwd, stdout=sink) as child:
            try:
                async with asyncio.timeout(deadline):
                    status = await child.exited()
            except TimeoutError:
                raise InstallError(f"{_shown(command)} took longer than {deadline:.0f} s\n{_tail(log)}") from None
    if status.code != 0:
        raise InstallError(f"{_shown(command)} exited with {status.code}\n{_tail(log)}")
    return _head(log)


async def ask_version(program: str, *, env: Mapping[str, str], deadline: float = 20.0) -> str | None:
    """What `program --version` prints; None when it does not run, such as the shim of a version manager."""
    said = bytearray()

    def came(chunk: bytes) -> None:
        said.extend(chunk[: max(0, _MAX_SAID - len(said))])

    try:
        async with _running([program, "--version"], env, None, stderr=subprocess.DEVNULL) as child:
            await child.pump(child.stdout, came)
            async with asyncio.timeout(deadline):
                status = await child.exited()
            await child.last_output()
    except (InstallError, TimeoutError):
        return None
    return said.decode(errors="replace") if status.code == 0 else None


async def ask_initialize(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, deadline: float
) -> dict[str, Any]:
    """Start an agent, do the ACP handshake over its stdio, stop it, and return its answer. Raises InstallError."""
    with log.open("wb") as sink:
        async with _running(command, env, cwd, stdin=subprocess.PIPE, stderr=sink) as child:
            try:
                async with asyncio.timeout(deadline):
                    return await _shake_hands(child)
            except TimeoutError:
                raise InstallError(f"{_shown(command)} did not answer initialize within {deadline:.0f} s") from None
            except (_Refused, EOFError, OSError, ValueError) as error:
                raise InstallError(f"{_shown(command)} failed at initialize: {error}\n{_tail(log)}") from error


class _Refused(Exception):
    pass


async def _shake_hands(child: Child) -> dict[str, Any]:
    capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
    client = {"name": "sandbox-agent", "version": "0"}
    params = {"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    splitter = LineSplitter(MAX_LINE)

    def came(chunk: bytes) -> None:
        for line in splitter.feed(chunk):
            answer = _answer(line) if isinstance(line, bytes) and not answered.done() else None
            if answer is not None:
                answered.set_result(answer)

    def ended() -> None:
        if not answered.done():
            answered.set_exception(EOFError("its output ended"))

    await child.pump(child.stdout, came, ended)
    if child.stdin is not None:
        child.stdin.write(msgspec.json.encode(message) + b"\n")  # an empty pipe takes it at once
    answer = await answered
    result = answer.get("result")
    known = [version for version in Version if int(version) in (versions.supported_by(answer.get("error")) or [])]
    if known:  # it refuses the version that we asked for, and the server will ask for this one
        return {"protocolVersion": int(max(known))}
    if not isinstance(result, dict) or not isinstance(result.get("protocolVersion"), int):
        raise _Refused(f"answered {str(answer.get('error') or answer)[:500]}")
    return result


def _answer(line: bytes) -> dict[str, Any] | None:
    """The message if it answers ours; some agents greet in prose."""
    try:
        message = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    is_ours = isinstance(message, dict) and message.get("id") == 1 and "method" not in message
    return message if is_ours else None


@asynccontextmanager
async def _running(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None,
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.STDOUT,
) -> AsyncIterator[Child]:
    """Nothing in its process group outlives the block, not even when the block is cancelled."""
    try:
        child = Child.launch(command, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)
    except (OSError, ValueError) as error:
        raise InstallError(f"{_shown(command)} cannot be started: {error}") from error
    try:
        yield child
    finally:
        await asyncio.shield(child.end())


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
