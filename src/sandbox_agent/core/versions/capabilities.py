"""`initialize` in both versions: who somebody is and what they can do."""

from __future__ import annotations

from typing import Any, NamedTuple

from sandbox_agent.core.versions.pairs import ABSENT, MARKER, SAME, Each, Field, Pair, Reading, Record
from sandbox_agent.core.versions.version import Object, Version

Path = tuple[str, ...]


class Capability(NamedTuple):
    """Where a capability stands in either version. Without a place, the version has it always or never."""

    v1: Path | None
    v2: Path | None
    reading: Reading = SAME
    v1_has: Any = ABSENT
    """What version 1 is told where version 2 has it always."""
    v2_has: Any = ABSENT


class Capabilities(Pair):
    """Capabilities by their places. Members that no row names pass, at the top; deeper ones are kept."""

    def __init__(self, *rows: Capability) -> None:
        self._rows = rows
        self._tops = {
            Version.V1: {row.v2[0] for row in rows if row.v2},
            Version.V2: {row.v1[0] for row in rows if row.v1},
        }

    def plain(self, value: Object, to: Version, *, is_exact: bool) -> Object:
        there = {name: member for name, member in value.items() if name not in self._tops[to]}
        for row in self._rows:
            source, target = (row.v1, row.v2) if to is Version.V2 else (row.v2, row.v1)
            always = row.v2_has if to is Version.V2 else row.v1_has
            if target is None:
                continue
            found = _find(value, source) if source else always
            if found is not ABSENT:
                _place(there, target, row.reading.read(found, to, is_exact=is_exact))
        return there


def _find(value: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return ABSENT
        value = value[name]
    return value


def _place(value: Object, path: Path, member: Any) -> None:
    for name in path[:-1]:
        inner = value.get(name)
        value[name] = inner = dict(inner) if isinstance(inner, dict) else {}
        value = inner
    value[path[-1]] = member


_SESSION_EXTRAS = "delete additionalDirectories systemPrompt fork archive status title".split()
AGENT_CAPABILITIES = Capabilities(
    Capability(("loadSession",), None, v1_has=True),
    *(
        Capability(("promptCapabilities", name), ("session", "prompt", name), MARKER)
        for name in ("image", "audio", "embeddedContext")
    ),
    Capability(None, ("session", "mcp", "stdio"), v2_has={}),
    *(Capability(("mcpCapabilities", name), ("session", "mcp", name), MARKER) for name in ("http", "acp")),
    *(Capability(("sessionCapabilities", name), ("session", name)) for name in _SESSION_EXTRAS),
    *(Capability(("sessionCapabilities", name), None, v1_has={}) for name in ("list", "resume", "close")),
    Capability(("auth", "status"), ("auth", "status")),
    Capability(("auth", "logout"), None, v1_has={}),
    Capability(("providers",), ("providers",)),
)
CLIENT_CAPABILITIES = Capabilities(
    Capability(("fs",), None),
    Capability(("terminal",), None),
    Capability(("session",), None, v1_has={"compaction": {}, "configOptions": {"boolean": {}}, "notices": {}}),
    Capability(("plan",), None, v1_has={}),
    Capability(("subagents",), None, v1_has={}),
    Capability(("auth", "terminal"), ("auth", "terminal"), MARKER),
    Capability(("elicitation",), ("elicitation",)),
)
"""Version 2 clients serve neither files nor terminals, and understand every update."""


def _variables_up(env: Any) -> Any:
    return [{"name": name, "value": value} for name, value in env.items()] if isinstance(env, dict) else env


def _variables_down(env: Any) -> Any:
    if not isinstance(env, list) or not all(isinstance(v, dict) and isinstance(v.get("name"), str) for v in env):
        return env
    return {variable["name"]: variable.get("value") for variable in env}


class Variables:
    """Environment variables: an object in version 1, a list in version 2."""

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        return _variables_up(value) if to is Version.V2 else _variables_down(value)


_UNNAMED = {"name": "unknown", "version": "0"}
_METHODS = Each(Record(Field("id", "methodId"), Field("env", reading=Variables()), v2_says={"type": "agent"}))


INITIALIZE_PARAMS = Record(
    Field("clientInfo", "info", v2_needs=lambda _: dict(_UNNAMED)),
    Field("clientCapabilities", "capabilities", CLIENT_CAPABILITIES),
)
INITIALIZE_RESULT = Record(
    Field("agentInfo", "info", v2_needs=lambda _: dict(_UNNAMED)),
    Field("agentCapabilities", "capabilities", AGENT_CAPABILITIES),
    Field("authMethods", reading=_METHODS),
)
