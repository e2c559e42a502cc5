"""What each method takes, checked at the door."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

from sandbox_agent.mock_agent.wire import ABSENT, INVALID_PARAMS, RpcError

T = TypeVar("T", bound=msgspec.Struct)

_BLOCK_NEEDS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}


class Nothing(msgspec.Struct, frozen=True):
    pass


class Initialize(msgspec.Struct, frozen=True, rename="camel"):
    protocol_version: int
    client_info: dict[str, Any] | None = None
    client_capabilities: dict[str, Any] | None = None
    info: dict[str, Any] | None = None
    capabilities: dict[str, Any] | None = None


class Authenticate(msgspec.Struct, frozen=True, rename="camel"):
    method_id: str


class NewSession(msgspec.Struct, frozen=True, rename="camel"):
    cwd: str
    mcp_servers: list[dict[str, Any]] = []


class StoredSession(msgspec.Struct, frozen=True, rename="camel"):
    """Params of load, resume and fork."""

    session_id: str
    cwd: str
    mcp_servers: list[dict[str, Any]] = []


class ResumeSession(msgspec.Struct, frozen=True, rename="camel"):
    """Params of resume in version 2, which replaces load."""

    session_id: str
    cwd: str
    mcp_servers: list[dict[str, Any]] = []
    replay_from: dict[str, Any] | None = None


class OneSession(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str


class ListSessions(msgspec.Struct, frozen=True, rename="camel"):
    cwd: str | None = None
    cursor: str | None = None


class Prompt(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    prompt: list[dict[str, Any]]


class SetMode(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    mode_id: str


class SetModel(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    model_id: str


class SetConfigOption(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    config_id: str
    value: str


class SetOption(msgspec.Struct, frozen=True, rename="camel"):
    """Params of session/set_config_option in version 2."""

    session_id: str
    config_id: str
    type: str
    value: Any


class CancelRequest(msgspec.Struct, frozen=True, rename="camel"):
    request_id: msgspec.Raw


def parse_params(raw: msgspec.Raw, kind: type[T]) -> T:
    """Raises RpcError that names the field."""
    try:
        params = msgspec.json.decode(raw if bytes(raw) != bytes(ABSENT) else b"{}", type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        named = re.search(r"missing required field `(\w+)`|`\$\.(\w+)", str(error))
        raise invalid(next(filter(None, named.groups())) if named else "params", str(error)) from None
    cwd = getattr(params, "cwd", None)
    if cwd is not None and not PurePath(cwd).is_absolute():
        raise invalid("cwd", f"cwd must be an absolute path, not {cwd!r}")
    if isinstance(params, Prompt):
        for index, block in enumerate(params.prompt):
            _check_block(index, block)
    return params


def invalid(field: str, reason: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Invalid params: {field}: {reason}", {"field": field})


def _check_block(index: int, block: dict[str, Any]) -> None:
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _BLOCK_NEEDS:
        raise invalid(f"prompt[{index}].type", f"unknown content type {kind!r}")
    for field in _BLOCK_NEEDS[kind]:
        if not isinstance(block.get(field), dict if field == "resource" else str):
            raise invalid(f"prompt[{index}].{field}", f"missing or of a wrong type in a content block of type {kind}")
