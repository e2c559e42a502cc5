"""Which version two peers speak, and `initialize` in either."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.json_values import as_list, as_object
from sandbox_agent.core.versions.capabilities import CLIENT_CAPABILITIES, INITIALIZE_PARAMS, INITIALIZE_RESULT
from sandbox_agent.core.versions.version import LATEST, Object, Version

UNSUPPORTED_VERSION = -32022
"""The JSON-RPC error of a peer that does not know the version that it was asked for."""


def chosen_version(params: Any) -> Version:
    """What to speak with a client that sent these `initialize` params: the highest that both know.

    A version below 1, or none that can be read, counts as 1; one above ours as ours."""
    asked = _number(as_object(params).get("protocolVersion"))
    return Version(max(min(asked or Version.V1, LATEST), Version.V1))


def spoken_version(result: Any) -> Version | None:
    """What an agent that answered `initialize` with this really speaks; None where the answer makes no sense.

    The members decide where they can: an agent that says 2 but describes itself as version 1 does (`agentCapabilities`,
    or no `info`) speaks version 1, since some echo what they were asked."""
    result = as_object(result)
    said = _number(result.get("protocolVersion"))
    if said == Version.V2:
        return Version.V2 if "info" in result or "capabilities" in result else Version.V1
    if said == Version.V1 or (said is None and "agentCapabilities" in result):
        return Version.V1
    return None


def supported_by(error: Any) -> list[int] | None:
    """The versions that a peer says it knows when it refuses ours (-32022); None if it is another error.

    An empty list: it refused without saying what it knows."""
    error = as_object(error)
    if error.get("code") != UNSUPPORTED_VERSION:
        return None
    numbers = [_number(version) for version in as_list(as_object(error.get("data")).get("supported"))]
    return [number for number in numbers if number is not None]


def unsupported_version(requested: Any) -> Object:
    """The JSON-RPC error with which we refuse a version."""
    supported = [int(version) for version in Version]
    message = f"Unsupported protocol version {requested!r}; supported: {', '.join(map(str, supported))}"
    return {"code": UNSUPPORTED_VERSION, "message": message, "data": {"requested": requested, "supported": supported}}


def initialize_params(version: Version, *, info: Object, capabilities: Object) -> Object:
    """Our own `initialize` params. `capabilities` is spelled as in version 1 (`fs`, `terminal`, `elicitation`, …).

    For version 2 both spellings are in it, so that an agent that answers with version 1 knows what we can do."""
    params: Object = {"protocolVersion": int(version), "clientInfo": info, "clientCapabilities": capabilities}
    if version is Version.V2:
        params |= {"info": info, "capabilities": CLIENT_CAPABILITIES.read(capabilities, version, is_exact=False)}
    return params


def initialize_request(params: Any, *, from_: Version, to: Version) -> Any:
    """A client's `initialize` params in the other version (`protocolVersion` too)."""
    return _numbered(params, params if from_ is to else INITIALIZE_PARAMS.read(params, to), to)


def initialize_result(result: Any, *, from_: Version, to: Version) -> Any:
    """An agent's `initialize` answer as a client of version `to` expects it (`protocolVersion` too).

    List, load, resume and close are all there in the result, since the server has them for every agent."""
    return _numbered(result, result if from_ is to else INITIALIZE_RESULT.read(result, to), to)


def _numbered(original: Any, read: Any, version: Version) -> Any:
    return {**read, "protocolVersion": int(version)} if isinstance(original, dict) else read


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else None
