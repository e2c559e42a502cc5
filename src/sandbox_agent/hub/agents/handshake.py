"""The handshake that the server makes with an agent process, once for all clients: which version of ACP it speaks.

The highest version that both know is asked for. The members of the answer say what the agent really speaks, since some
echo whatever number they are given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from sandbox_agent.core import versions
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.versions import LATEST, Version
from sandbox_agent.errors import AgentStartFailed, RemoteError
from sandbox_agent.version import __version__

CLIENT_CAPABILITIES: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
}
_INFO = {"name": "sandbox-agent", "title": "Sandbox Agent", "version": __version__}
_ALWAYS = frozenset({"load", "resume", "list", "close"})
"""What every agent of version 2 can do with sessions; it declares only the rest."""

Ask = Callable[[dict[str, Any]], Awaitable[Any]]
"""Sends `initialize` with these params; gives the result. Raises RemoteError."""


class Initialized(msgspec.Struct, frozen=True):
    """What an agent's `initialize` answer decides: the version, and what we may ask of it."""

    version: Version
    capabilities: dict[str, Any]

    def can(self, method: str) -> bool:
        """Whether it declares `load`, `resume`, `list`, `fork`, `close` or `delete`."""
        if self.version is Version.V2:
            return method in _ALWAYS or as_object(self.capabilities.get("session")).get(method) not in (None, False)
        if method == "load":
            return bool(self.capabilities.get("loadSession"))
        return as_object(self.capabilities.get("sessionCapabilities")).get(method) not in (None, False)


def read_initialized(result: Any) -> Initialized | None:
    """None for an answer that makes no sense."""
    version = versions.spoken_version(result)
    if version is None:
        return None
    return Initialized(version, as_object(result.get(capabilities_member(version))))


def capabilities_member(version: Version) -> str:
    """Where an agent's capabilities stand in its `initialize` answer."""
    return "agentCapabilities" if version is Version.V1 else "capabilities"


async def shake_hands(ask: Ask, *, pinned: Version | None) -> tuple[Initialized, Any]:
    """Agree on a version; gives the agent's answer too. Raises AgentStartFailed and RemoteError.

    An agent that refuses the latest version is asked once more, for the one that it says it knows, or for the first."""
    wanted = pinned or LATEST
    try:
        result = await ask(initialize_params(wanted))
    except RemoteError as error:
        other = _other_wish(error, wanted) if pinned is None else None
        if other is None:
            raise _explained(error, wanted, pinned) from None
        try:
            result = await ask(initialize_params(other))
        except RemoteError:
            raise _explained(error, wanted, pinned) from None
    initialized = read_initialized(result)
    if initialized is None:
        known = " and ".join(str(int(version)) for version in Version)
        answered = as_object(result).get("protocolVersion", result)
        raise AgentStartFailed(
            f"its answer to initialize makes no sense (protocolVersion {answered!r}); this server speaks ACP {known}"
        )
    if pinned is not None and initialized.version is not pinned:
        raise AgentStartFailed(
            f"it speaks ACP version {int(initialized.version)} only, and protocol_version = {int(pinned)} is configured"
        )
    return initialized, result


def initialize_params(version: Version) -> dict[str, Any]:
    """What we say of ourselves: the server serves files and terminals where no attached client does."""
    return versions.initialize_params(version, info=_INFO, capabilities=CLIENT_CAPABILITIES)


def _other_wish(error: RemoteError, refused: Version) -> Version | None:
    """Which version to try after a refusal; None when there is none that both know."""
    supported = versions.supported_by(error.body)
    lower = [version for version in Version if version < refused]
    if supported:
        lower = [version for version in lower if int(version) in supported]
    return max(lower, default=None)


def _explained(error: RemoteError, wanted: Version, pinned: Version | None) -> RemoteError | AgentStartFailed:
    supported = versions.supported_by(error.body)
    if supported is None:
        return error
    theirs = ", ".join(map(str, supported)) or "none that it names"
    ours = "this server speaks " + " and ".join(str(int(version)) for version in Version)
    reason = f"protocol_version = {int(pinned)} is configured" if pinned is not None else ours
    return AgentStartFailed(f"it does not speak ACP version {int(wanted)}, only {theirs}; {reason}")
