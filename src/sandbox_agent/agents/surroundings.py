"""What this machine has: its platform, Node.js, npm, uv and Pythons."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from sandbox_agent.agents.names import version_key
from sandbox_agent.agents.programs import ask_version, program_environment

_PYTHONS = ("python3", "python3.14", "python3.13", "python3.12")
_ELSEWHERE = (
    "~/.pyenv/versions/*/bin",
    "~/.local/share/uv/python/*/bin",
    "~/.local/share/mise/installs/python/*/bin",
    "~/.asdf/installs/python/*/bin",
    "/opt/homebrew/bin",
    "/opt/python*/bin",
    "/usr/local/bin",
    "/usr/bin",
)
"""Where Pythons are that may not be on PATH: version managers put stand-ins there that run none."""


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
    """Look along the PATH in `env`, for Pythons also where version managers keep them.

    A command that does not run, such as a version manager's shim, is not there."""
    path = env.get("PATH", "")
    npm, uv = shutil.which("npm", path=path), shutil.which("uv", path=path)
    names = [shutil.which(name, path=path) for name in _PYTHONS] if look_for_pythons else []
    names += [found for found in _pythons_elsewhere(env) if found not in names] if look_for_pythons else []
    node, *others = await asyncio.gather(*(_tool(name, env) for name in (shutil.which("node", path=path), *names)))
    here = Tool(sys.executable, tuple(sys.version_info[:3]))
    pythons = (here, *(tool for tool in others if tool))
    return Surroundings(platform=current_platform(), node=node, npm=npm if node else None, uv=uv, pythons=pythons)


def _pythons_elsewhere(env: Mapping[str, str]) -> list[str]:
    """The newest of each minor version, newest first, in the places outside PATH."""
    home = env.get("HOME", "")
    found: dict[str, str] = {}
    for place in _ELSEWHERE:
        if place.startswith("~") and not home:
            continue
        folders = Path("/").glob(place.replace("~", home, 1).lstrip("/"))
        for folder in sorted(folders, key=lambda folder: version_key(folder.parent.name)):
            for name in _PYTHONS[1:]:
                program = folder / name
                if program.is_file() and os.access(program, os.X_OK):
                    found[name] = str(program)
    return [found[name] for name in _PYTHONS if name in found]


async def _tool(path: str | None, env: Mapping[str, str]) -> Tool | None:
    said = await ask_version(path, env=program_environment(env)) if path is not None else None
    version = version_key(said) if said is not None else ()
    return Tool(path, version) if path is not None and version else None
