"""What may stand in a path, on a command line or in a package spec. Anything else is refused, never quoted."""

from __future__ import annotations

import re

from sandbox_agent.errors import InvalidParams

_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,63}")
_NPM = re.compile(r"(?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*")
_PYPI = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_COMMAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


def check_agent_id(value: str) -> str:
    return _check(_AGENT, "agent name", value)


def check_version(value: str) -> str:
    return _check(_VERSION, "version", value)


def check_npm_name(value: str) -> str:
    return _check(_NPM, "npm package name", value)


def check_pypi_name(value: str) -> str:
    return _check(_PYPI, "PyPI package name", value)


def check_command_name(value: str) -> str:
    return _check(_COMMAND, "command name", value)


def version_key(value: str) -> tuple[int, ...]:
    """The leading numbers of a version, for `at least` comparisons: "v22.19.0" is (22, 19, 0)."""
    match = re.search(r"\d+(?:\.\d+)*", value)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def _check(pattern: re.Pattern[str], what: str, value: str) -> str:
    if len(value) > 200 or not pattern.fullmatch(value) or ".." in value:
        raise InvalidParams(f"not a valid {what}: {value[:200]!r}")
    return value
