"""Problem documents and JSON-RPC errors of the server, as the exceptions that they were there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sandbox_agent.client.rpc.trust import problem_with_certificate
from sandbox_agent.errors import ConnectionLost, RequestFailed, SandboxAgentError, UntrustedCertificate, reason_in

if TYPE_CHECKING:
    import httpx
else:
    from sandbox_agent import lazy_httpx as httpx

_URN = "urn:sandbox-agent:error:"
_DESCRIBING = frozenset({"type", "title", "status", "detail", "retryable", "instance"})


def from_response(response: httpx.Response) -> SandboxAgentError:
    """The error that a response of 4xx or 5xx stands for. Its body must have been read."""
    try:
        body = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        body = None
    if not isinstance(body, dict):
        return SandboxAgentError(f"{response.request.method} {response.request.url.path}: HTTP {response.status_code}")
    return from_problem(body)


def from_problem(body: dict[str, Any]) -> SandboxAgentError:
    """The error that a problem document stands for."""
    detail = str(body.get("detail") or body.get("title") or f"HTTP {body.get('status')}")
    data = {name: value for name, value in body.items() if name not in _DESCRIBING}
    return _of_kind(str(body.get("type", "")), detail, data) or SandboxAgentError(detail, **data)


def from_rpc(code: int, message: str, data: Any) -> SandboxAgentError:
    """The error that a JSON-RPC error stands for; RequestFailed if it is not one of the server's own."""
    members = dict(data) if isinstance(data, dict) else {}
    kind = str(members.pop("type", ""))
    for described in ("retryable", "_meta"):  # the class says the one; the other is for readers of the earlier API
        members.pop(described, None)
    known = _of_kind(kind, message, members)
    if known is not None:
        return known
    error = {"code": code, "message": message, "data": data}
    return RequestFailed(reason_in(error), remote_code=code, error=error)


def from_transport(error: httpx.HTTPError, url: str) -> SandboxAgentError:
    if (problem := problem_with_certificate(error)) is not None:
        return UntrustedCertificate(f"the certificate of {url} is not trusted: {problem}")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return ConnectionLost(f"no server answers at {url}")
    return ConnectionLost(f"the connection to {url} broke: {error or type(error).__name__}")


def _of_kind(urn: str, detail: str, data: dict[str, Any]) -> SandboxAgentError | None:
    kind = urn.removeprefix(_URN)
    if kind == urn:
        return None
    found = _classes().get(kind)
    if found is None:
        return None
    error = found.__new__(found)
    SandboxAgentError.__init__(error, detail)
    error.data = data
    if isinstance(error, RequestFailed):
        error.remote_code = found.code
    return error


def _classes() -> dict[str, type[SandboxAgentError]]:
    known: dict[str, type[SandboxAgentError]] = {}
    pending = [SandboxAgentError]
    while pending:
        found = pending.pop()
        known[found.__new__(found).kind] = found
        pending += found.__subclasses__()
    return known
