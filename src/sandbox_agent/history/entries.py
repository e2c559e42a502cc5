"""Reading a session's history: entries, the envelopes in them, and who answers whom."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from sandbox_agent.core.json_values import Object, as_object, read_json
from sandbox_agent.core.methods import ELICITATION, PERMISSION, QUESTION

_FROM_AGENT = frozenset({PERMISSION, QUESTION, ELICITATION})
_ANSWERS_OF_PEOPLE = frozenset({"outcome", "action"})
"""Members that only answers to permissions, questions and forms have."""


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
        if isinstance(envelope.result, dict) and not _ANSWERS_OF_PEOPLE.isdisjoint(envelope.result):
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
