"""`sandbox-agent.toml` of a project: what `run` uses there unless it is told otherwise.

The file may come with a repository that somebody else wrote. So it can choose, but not run anything or answer for the
person: no commands, environment or servers, and nothing that makes an agent go on without asking."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from sandbox_agent.errors import ConfigError

NAME = "sandbox-agent.toml"
_LIMIT = 64 << 10
_UNASKED = re.compile(r"bypass|yolo|danger|full.?access|auto|accept|(don.?t|never|no).?ask", re.IGNORECASE)
"""Modes with which agents are known to act without asking."""
_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class RunDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """The table `[run]`."""

    agent: _Word | None = None
    model: _Word | None = None
    mode: _Word | None = None
    approve: Literal["ask", "reject"] | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


class Project(msgspec.Struct, frozen=True):
    path: Path
    run: RunDefaults


def find_project(start: Path) -> Project | None:
    """The nearest file at `start` or above it. Raises ConfigError for one that says what it may not.

    Passed over are the config file of a server, which may have the same name, and files of other people."""
    for folder in (start, *start.parents):
        path = folder / NAME
        content = _read(path)
        if content is not None and (found := _parse(path, content)) is not None:
            return found
    return None


def _read(path: Path) -> str | None:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.getuid(), 0):
            return None
        if found.st_size > _LIMIT:
            raise ConfigError(f"{str(path)!r} is larger than {_LIMIT} bytes")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} is not valid TOML: {error}") from None
    except OSError:  # not there, or not for us to see
        return None


def _parse(path: Path, content: str) -> Project | None:
    try:
        tables = tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{str(path)!r} is not valid TOML: {error}") from None
    if "run" not in tables and tables and tables.keys() <= _server_settings():
        return None
    if unknown := sorted(tables.keys() - {"run"}):
        raise ConfigError(f"{str(path)!r} may only have the table [run]; it has: {', '.join(unknown)}")
    run = tables.get("run", {})
    if isinstance(run, dict) and (unknown := sorted(run.keys() - set(RunDefaults.__struct_fields__))):
        known = ", ".join(RunDefaults.__struct_fields__)
        raise ConfigError(f"{str(path)!r}: unknown in [run]: {', '.join(unknown)}; there are: {known}")
    if isinstance(run, dict) and run.get("approve") == "allow":
        raise ConfigError(f'{str(path)!r}: approve = "allow" is for the person to say: use --approve allow')
    try:
        defaults = msgspec.convert(run, RunDefaults)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{str(path)!r}: [run]: {error}") from None
    if defaults.mode is not None and _UNASKED.search(defaults.mode):
        raise ConfigError(
            f"{str(path)!r}: with mode {defaults.mode!r} agents act without asking, which is for the person to say: "
            f"use --mode {defaults.mode}"
        )
    return Project(path, defaults)


def _server_settings() -> set[str]:
    from sandbox_agent.settings import Settings  # noqa: PLC0415 - only where such a file is there

    return set(Settings.__struct_fields__)
