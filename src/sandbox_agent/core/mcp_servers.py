"""MCP servers: the `mcpServers` array of ACP checked, and the old map form turned into it.

What ACP has no member for goes under `_meta["sandboxagent.dev"]`. Errors name the server and the field, and
never show a value: many are secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from sandbox_agent.core.frames import META
from sandbox_agent.errors import InvalidParams

_LOCAL = frozenset({"local", "stdio"})
_REMOTE = frozenset({"remote", "http", "sse"})
HIDDEN = "[redacted]"
_ALIASES = {"environment": "env", "timeout": "timeoutMs"}


class _OAuth(msgspec.Struct, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None


class _Local(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    command: str | list[str]
    type: str = "local"
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    enabled: bool = True
    timeout_ms: int | None = None


class _Remote(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    url: str
    type: str = "remote"
    transport: Literal["http", "sse"] | None = None
    headers: dict[str, str] = {}
    env_headers: dict[str, str] = {}
    bearer_token_env_var: str | None = None
    oauth: _OAuth | bool | None = None
    enabled: bool = True
    timeout_ms: int | None = None


class _Pair(msgspec.Struct):
    name: str
    value: str


class _AcpStdio(msgspec.Struct):
    name: str
    command: str
    args: list[str]
    env: list[_Pair]


class _AcpRemote(msgspec.Struct):
    name: str
    url: str
    headers: list[_Pair]


def check_mcp_servers(servers: list[dict[str, Any]]) -> None:
    """Raises InvalidParams for a server that lacks a member or has a wrong one: agents pass over such a server.

    A `type` that we do not know, and members beyond those that ACP names, are for the agent to judge."""
    for index, server in enumerate(servers):
        kind = server.get("type", "stdio")
        shape = _AcpStdio if kind == "stdio" else _AcpRemote if kind in ("http", "sse") else None
        if shape is None:
            continue
        try:
            msgspec.convert(server, shape)
        except msgspec.ValidationError as error:
            needed = ", ".join(shape.__struct_fields__)
            raise InvalidParams(
                f"mcpServers[{index}] ({server.get('name')!r}): {error}; a server of type {kind} has {needed}",
                server=server.get("name"),
                field=_field_of(error),
            ) from None


def convert_mcp_servers(servers: Any, env: Mapping[str, str]) -> list[dict[str, Any]]:
    """The enabled servers, in the order given. Raises InvalidParams.

    `env` is where `bearerTokenEnvVar` and `envHeaders` are looked up."""
    if not isinstance(servers, Mapping):
        raise InvalidParams(f"mcp must be an object of servers by name, not {type(servers).__name__}", field="mcp")
    converted = []
    for name, config in servers.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidParams("mcp: the name of a server is empty", field="mcp")
        server = _read(name, config)
        if server.enabled:
            converted.append(_stdio(name, server) if isinstance(server, _Local) else _remote(name, server, env))
    return converted


def describe_mcp_servers(servers: Iterable[Any]) -> dict[str, Any]:
    """ACP's array as an object by name, for people to read: the values of variables and headers are not shown.

    What is no server is left out; of two with one name the last counts."""
    shown: dict[str, Any] = {}
    for server in servers:
        if isinstance(server, Mapping) and isinstance(server.get("name"), str):
            told = {field: server[field] for field in ("command", "args", "url") if field in server}
            for field in ("env", "headers"):
                if isinstance(server.get(field), list):
                    names = [pair.get("name") for pair in server[field] if isinstance(pair, Mapping)]
                    told[field] = {name: HIDDEN for name in names if isinstance(name, str)}
            shown[server["name"]] = {"type": server.get("type", "stdio"), **told}
    return shown


def _read(name: str, config: Any) -> _Local | _Remote:
    if not isinstance(config, Mapping):
        raise _wrong(name, None, f"must be an object, not {type(config).__name__}")
    config = {_ALIASES.get(field, field): value for field, value in config.items()}
    kind = config.get("type", "local" if "command" in config else "remote")
    if not isinstance(kind, str) or kind not in _LOCAL | _REMOTE:
        raise _wrong(name, "type", "must be local, stdio, remote, http or sse")
    shape: type[_Local] | type[_Remote] = _Local if kind in _LOCAL else _Remote
    try:
        server: _Local | _Remote = msgspec.convert(config, shape)
    except msgspec.ValidationError as error:
        raise _wrong(name, _field_of(error), str(error)) from None
    if isinstance(server, _Remote) and server.oauth is True:
        raise _wrong(name, "oauth", "must be an object or false")
    if server.timeout_ms is not None and server.timeout_ms <= 0:
        raise _wrong(name, "timeoutMs", "must be greater than 0")
    return server


def _stdio(name: str, server: _Local) -> dict[str, Any]:
    words = [server.command] if isinstance(server.command, str) else server.command
    if not words or not words[0].strip():
        raise _wrong(name, "command", "is empty")
    for field, values in (
        ("command", words),
        ("args", server.args),
        ("env", [*server.env, *server.env.values()]),
    ):
        if any("\0" in value for value in values):
            raise _wrong(name, field, "holds a NUL character")
    for variable in server.env:
        if not variable or "=" in variable:
            raise _wrong(name, f"env.{variable}", "is not a name for an environment variable")
    converted: dict[str, Any] = {
        "name": name,
        "command": words[0],
        "args": [*words[1:], *server.args],
        "env": _pairs(server.env.items()),
    }
    return _with_meta(converted, {"cwd": server.cwd, "timeoutMs": server.timeout_ms})


def _remote(name: str, server: _Remote, env: Mapping[str, str]) -> dict[str, Any]:
    transport = server.type if server.type != "remote" else server.transport or "http"
    if server.transport is not None and server.transport != transport:
        raise _wrong(name, "transport", f"is {server.transport}, but type says {transport}")
    _check_url(name, server.url)
    headers: dict[str, tuple[str, str]] = {}
    for field, header, value in _headers(name, server, env):
        if not header.strip() or any(c in header for c in "\r\n\0: ") or any(c in value for c in "\r\n\0"):
            raise _wrong(name, field, "is not a header that can be sent")
        if header.lower() in headers:
            raise _wrong(name, field, f"sets the header {header!r} for a second time")
        headers[header.lower()] = (header, value)
    converted: dict[str, Any] = {
        "type": transport,
        "name": name,
        "url": server.url,
        "headers": _pairs(headers.values()),
    }
    extras: dict[str, Any] = {
        "timeoutMs": server.timeout_ms,
        "bearerTokenEnvVar": server.bearer_token_env_var,
        "envHeaders": server.env_headers or None,
        "oauth": msgspec.to_builtins(server.oauth) if isinstance(server.oauth, _OAuth) else None,
        "oauthDisabled": True if server.oauth is False else None,
    }
    return _with_meta(converted, extras)


def _headers(name: str, server: _Remote, env: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for header, value in server.headers.items():
        yield f"headers.{header}", header, value
    for header, variable in server.env_headers.items():
        field = f"envHeaders.{header}"
        yield field, header, _variable(name, field, variable, env)
    if server.bearer_token_env_var is not None:
        field = "bearerTokenEnvVar"
        yield field, "Authorization", f"Bearer {_variable(name, field, server.bearer_token_env_var, env)}"


def _variable(name: str, field: str, variable: str, env: Mapping[str, str]) -> str:
    value = env.get(variable)
    if not value:
        raise _wrong(name, field, f"names the environment variable {variable!r}, which is not set")
    return value


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or any(c.isspace() for c in url):
        raise _wrong(name, "url", "must be an http or https URL")


def _pairs(pairs: Any) -> list[dict[str, str]]:
    return [{"name": key, "value": value} for key, value in pairs]


def _with_meta(server: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    given = {field: value for field, value in extras.items() if value is not None}
    return {**server, "_meta": {META: given}} if given else server


def _field_of(error: msgspec.ValidationError) -> str | None:
    """The field that msgspec complains about: after `$.` in a path, or between backticks."""
    message = str(error)
    if " - at `$" in message:
        return message.rpartition("`$.")[2].rstrip("`") or None
    quoted = message.split("`")
    return quoted[-2] if len(quoted) > 2 else None


def _wrong(server: str, field: str | None, problem: str) -> InvalidParams:
    where = f"mcp.{server}" if field is None else f"mcp.{server}.{field}"
    return InvalidParams(f"{where}: {problem}", server=server, field=field)
