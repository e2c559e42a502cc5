"""What this machine has: its platform, Node.js, npm, uv and Pythons."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
from collections.abc import Mapping

import msgspec

from sandbox_agent.agents.names import version_key
from sandbox_agent.process.child import scrub

_PYTHONS = ("python3", "python3.14", "python3.13", "python3.12")


class Tool(msgspec.Struct, frozen=True):
    path: str
    version: tuple[int, ...]


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    platform: str
    node: Tool | None = None
    npm: str | None = None
    uv: str | None = None
    pythons: tuple[Tool, ...] = ()


def current_platform() -> str:
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return f"{platform.system().lower()}-{machine}"


async def survey(env: Mapping[str, str], *, look_for_pythons: bool = True) -> Surroundings:
    """Look along the PATH in `env`. A command that does not run, such as a version manager's shim, is not there."""
    path = env.get("PATH", "")
    npm, uv = shutil.which("npm", path=path), shutil.which("uv", path=path)
    names = _PYTHONS if look_for_pythons else ()
    node, *others = await asyncio.gather(*(_tool(shutil.which(name, path=path), env) for name in ("node", *names)))
    here = Tool(sys.executable, tuple(sys.version_info[:3]))
    pythons = (here, *(tool for tool in others if tool))
    return Surroundings(platform=current_platform(), node=node, npm=npm if node else None, uv=uv, pythons=pythons)


async def _tool(path: str | None, env: Mapping[str, str]) -> Tool | None:
    if path is None:
        return None
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            path, "--version", stdin=null, stdout=pipe, stderr=null, env=scrub(env)
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(20):
            output, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    version = version_key(output.decode("utf-8", errors="replace"))
    return Tool(path, version) if process.returncode == 0 and version else None
