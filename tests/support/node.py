"""npm clients for tests: installed once from a committed lock into `.cache`, then run from there."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "tests" / "clients"
CACHE = ROOT / ".cache" / "npm-clients"
_TRIES = 4


def require_tool(name: str) -> str:
    """Where a program is. Skips the test without it, or fails it where everything is demanded."""
    found = shutil.which(name)
    if found is None:
        missing = f"{name} is not installed"
        if os.environ.get("REQUIRE_ALL") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def installed(folder: str, *, by: Literal["ci", "install"] = "ci") -> Path:
    """A copy of `tests/clients/FOLDER` with its packages installed.

    By `npm install` where a lock cannot name optional packages of other platforms, which `npm ci` insists on."""
    npm = require_tool("npm")
    require_tool("node")
    source, target = CLIENTS / folder, CACHE / folder
    target.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for script in source.glob("*.mjs"):
            shutil.copy(script, target)
        wanted = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()
        stamp = target / ".installed"
        if not stamp.exists() or stamp.read_text() != wanted:
            _install([npm, by], source, target)
            stamp.write_text(wanted)
    return target


def _install(npm: list[str], source: Path, target: Path) -> None:
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(source / name, target)
    command = [*npm, "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]
    for attempt in range(_TRIES):
        done = subprocess.run(command, cwd=target, capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            return
        time.sleep(attempt)
    pytest.fail(f"npm failed {_TRIES} times in {source}:\n{done.stderr[-3000:]}")


async def run_node(folder: Path, script: str, *args: str, deadline: float = 90.0) -> str:
    """The output of a script that must succeed."""
    return await run_program(["node", script, *args], cwd=folder, deadline=deadline)


async def run_program(
    command: list[str], *, cwd: Path, env: dict[str, str] | None = None, deadline: float = 90.0
) -> str:
    """What a program printed. Fails the test with all of its output when it does not end well."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(deadline):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        out, err = await process.communicate()
        pytest.fail(f"{command} did not end in {deadline} s:\n{out.decode()}\n{err.decode()[-4000:]}")
    assert process.returncode == 0, (
        f"{command} ended with {process.returncode}:\n{out.decode()}\n{err.decode()[-4000:]}"
    )
    return out.decode()


def node_version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    return tuple(int(part) for part in said.strip().removeprefix("v").split(".")[:3])


def steps(output: str) -> list[str]:
    """What a conversation script says that it has done."""
    return [line.removeprefix("done: ") for line in output.splitlines() if line.startswith("done: ")]
