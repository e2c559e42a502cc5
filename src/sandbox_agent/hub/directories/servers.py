"""The MCP servers of a directory, as a session that starts there gets them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from typing import Any

from sandbox_agent.core.mcp_servers import convert_mcp_servers
from sandbox_agent.errors import InvalidParams
from sandbox_agent.hub.directories.entries import Entry, require_trust

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def check_server(name: str, config: dict[str, Any]) -> None:
    """Raises InvalidParams for what can never be a server. Variables need not be set yet."""
    if "type" not in config:
        raise InvalidParams(f"mcp.{name}.type: is missing; it is local, stdio, remote, http or sse", field="type")
    convert_mcp_servers({name: {**config, "enabled": True}}, _Anything())


def resolved(entry: Entry, environ: Mapping[str, str], *, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
    """The server in ACP's form, with its secrets. Raises InvalidParams that says why it cannot be used."""
    require_trust(is_trusted=entry.is_trusted)
    config = dict(entry.config)
    for field in ("env", "environment", "headers"):
        if isinstance(config.get(field), dict):
            config[field] = {key: _filled(value, environ) for key, value in config[field].items()}
    (server,) = convert_mcp_servers({entry.name: {**config, "enabled": True}}, environ)
    kind = server.get("type", "stdio")
    if kind == "stdio" and shutil.which(server["command"], path=environ.get("PATH")) is None:
        raise InvalidParams(f"command {server['command']!r} is not a program that can be found and run")
    if kind != "stdio" and capabilities is not None and not capabilities.get(kind):
        raise InvalidParams(f"the agent does not support MCP servers over {kind}")
    return server


def _filled(value: Any, environ: Mapping[str, str]) -> Any:
    if not isinstance(value, str):
        return value

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        if not environ.get(name):
            raise InvalidParams(f"the environment variable {name!r} is not set")
        return environ[name]

    return _REFERENCE.sub(fill, value)


class _Anything(dict[str, str]):
    """An environment in which every variable is set."""

    def get(self, name: str, default: Any = None) -> Any:
        return "x"
