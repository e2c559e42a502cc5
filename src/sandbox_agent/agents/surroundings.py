"""What this machine has: its platform, Node.js, npm, uv and Pythons."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
from collections.abc import Mapping

import msgspec

from sandbox_agent.agents.names import version_key
from sandbox_agent.agents.programs import ask_version, program_environment

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
    said = await ask_version(path, env=program_environment(env)) if path is not None else None
    version = version_key(said) if said is not None else ()
    return Tool(path, version) if path is not None and version else None
