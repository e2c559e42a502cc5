"""Reading a session's history: entries, the envelopes in them, and who answers whom."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import msgspec

from sandbox_agent.core.frames import mended

T = TypeVar("T")
Object = dict[str, Any]

META_KEY = "sandboxagent.dev"
PERMISSION = "session/request_permission"
QUESTION = "_sandboxagent/session/request_question"
_FROM_AGENT = frozenset({PERMISSION, QUESTION})


class HistoryEntry(Protocol):
    """What a store keeps of one envelope. `time` is in seconds since the epoch."""

    @property
    def sequence(self) -> int: ...
    @property
    def time(self) -> float: ...
    @property
    def source(self) -> str: ...
    @property
    def envelope(self) -> bytes: ...


class Envelope(msgspec.Struct, frozen=True):
    """A JSON-RPC message with its payload decoded. Members of a wrong type read as absent."""

    id: int | float | str | None = None
    method: str | None = None
    params: Object = {}
    result: Any = None
    error: Object | None = None


class OpenRequests:
    """Requests waiting for their answer. The two directions count their ids apart."""

    def __init__(self) -> None:
        self._by_client: dict[Any, Any] = {}
        self._by_agent: dict[Any, Any] = {}

    def add(self, source: str, envelope: Envelope, request: Any) -> None:
        is_agents = source == "agent" or envelope.method in _FROM_AGENT
        (self._by_agent if is_agents else self._by_client)[envelope.id] = request

    def take(self, source: str, envelope: Envelope) -> Any:
        """The request that this envelope answers, once; None if it answers nothing that is open.

        The server may answer in place of either side: then the shape of the answer settles a shared id."""
        if source == "agent":
            return self._by_client.pop(envelope.id, None)
        tables = [self._by_agent] if source == "client" else [self._by_client, self._by_agent]
        if isinstance(envelope.result, dict) and "outcome" in envelope.result:
            tables.reverse()
        for table in tables:
            if envelope.id in table:
                return table.pop(envelope.id)
        return None

    def withdraw(self, request_id: Any) -> Any:
        """The agent's request that its `$/cancel_request` takes back."""
        return self._by_agent.pop(request_id, None) if isinstance(request_id, int | float | str) else None


def read_envelope(line: bytes) -> Envelope | None:
    """Decode one line; None if it is not a JSON object."""
    message = read_json(line)
    if not isinstance(message, dict):
        return None
    id_, method = message.get("id"), message.get("method")
    return Envelope(
        id=id_ if isinstance(id_, int | float | str) else None,
        method=method if isinstance(method, str) else None,
        params=as_object(message.get("params")),
        result=message.get("result"),
        error=as_object(message["error"]) if "error" in message else None,
    )


def read_json(line: bytes, type_: type[T] | Any = Any) -> Any:
    """Decode JSON; None if it cannot be. Half surrogate pairs, as agents split them, become U+FFFD."""
    try:
        return msgspec.json.decode(line, type=type_)
    except (ValueError, RecursionError):
        pass
    try:
        return msgspec.json.decode(mended(line), type=type_)
    except (ValueError, RecursionError):
        return None


def as_object(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Strings as they are, nothing as "", anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON for people to read; a value nested too deep to write is cut off as `…`."""
    separators = (",", ":") if indent is None else None
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    except RecursionError:
        return "…"


def meta_value(holder: Object, name: str) -> Any:
    """A product value under `_meta`, in the current or the older spelling; None if absent."""
    meta = as_object(holder.get("_meta"))
    if not meta:
        return None
    value = as_object(meta.get(META_KEY)).get(name)
    return meta.get(f"sandbox-agent/{name}") if value is None else value


def iso_time(seconds: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
