"""The handshake that the server makes with an agent process, once for all clients."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.version import __version__

CLIENT_CAPABILITIES: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
}


class Initialized(msgspec.Struct):
    """The parts of an agent's `initialize` answer that decide what we may ask of it."""

    protocol_version: int = msgspec.field(name="protocolVersion", default=1)
    capabilities: dict[str, Any] = msgspec.field(name="agentCapabilities", default_factory=dict)

    def can(self, method: str) -> bool:
        """Whether it declares `load`, `resume`, `list`, `fork`, `close` or `delete`."""
        if method == "load":
            return bool(self.capabilities.get("loadSession"))
        offered = self.capabilities.get("sessionCapabilities")
        return isinstance(offered, dict) and offered.get(method) not in (None, False)


def initialize_params() -> dict[str, Any]:
    """What we say of ourselves: the server serves files and terminals where no attached client does."""
    return {
        "protocolVersion": 1,
        "clientInfo": {"name": "sandbox-agent", "title": "Sandbox Agent", "version": __version__},
        "clientCapabilities": CLIENT_CAPABILITIES,
    }
