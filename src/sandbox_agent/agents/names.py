"""What may stand in a path, on a command line or in the name of a package. Anything else is refused, never quoted."""

from __future__ import annotations

import re

from sandbox_agent.errors import InvalidParams

_PATTERNS = {
    "agent name": r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}",
    "version": r"[0-9][0-9A-Za-z.+-]{0,63}",
    "npm package name": r"(?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*",
    "PyPI package name": r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?",
    "command name": r"[A-Za-z0-9][A-Za-z0-9_.+-]*",
}


def check_agent_id(value: str) -> str:
    return _check("agent name", value)


def check_version(value: str) -> str:
    return _check("version", value)


def check_npm_name(value: str) -> str:
    return _check("npm package name", value)


def check_pypi_name(value: str) -> str:
    return _check("PyPI package name", value)


def check_command_name(value: str) -> str:
    return _check("command name", value)


def version_key(value: str) -> tuple[int, ...]:
    """The leading numbers of a version, for `at least` comparisons: "v22.19.0" is (22, 19, 0)."""
    match = re.search(r"\d+(?:\.\d+)*", value)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def _check(what: str, value: str) -> str:
    if len(value) > 200 or not re.fullmatch(_PATTERNS[what], value) or ".." in value:
        raise InvalidParams(f"not a valid {what}: {value[:200]!r}")
    return value
