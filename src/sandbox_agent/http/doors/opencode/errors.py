"""The door's one error edge: our errors in the shapes in which OpenCode's clients expect them."""

from __future__ import annotations

from typing import Any, Literal

from sandbox_agent.errors import (
    Conflict,
    InvalidParams,
    NotFound,
    SandboxAgentError,
    SessionBusy,
    UnknownAgent,
    UnknownConnection,
    UnknownSession,
)
from sandbox_agent.http.asgi.messages import Response, json_response

Style = Literal["named", "tagged"]
"""OpenCode has two: `{name, data: {message}}` in its first API, and `{_tag, message}` in its second. Its document says
otherwise of some endpoints of the first; its server does not."""


class InvalidQuery(InvalidParams):
    """What is wrong stands in the query, not in the body."""


class OpenCodeError(SandboxAgentError):
    """An error that has a shape of its own in OpenCode: `body` is sent as it is."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(str(body.get("message", "")))
        self.status = status
        self.body = body


def not_found(tag: str, field: str, value: str, what: str) -> OpenCodeError:
    return OpenCodeError(404, {"_tag": tag, field: value, "message": f"{what} not found: {value}"})


def missing_session(given: str) -> NotFound:
    return NotFound(f"Session not found: {given}")


def busy_session(session_id: str) -> OpenCodeError:
    message = f"Session is busy: {session_id}"
    return OpenCodeError(409, {"_tag": "SessionBusyError", "sessionID": session_id, "message": message})


def failure(error: SandboxAgentError, style: Style) -> Response:
    if isinstance(error, OpenCodeError):
        return json_response(error.body, status=error.status)
    is_missing = isinstance(error, UnknownSession | NotFound | UnknownConnection) and not isinstance(
        error, UnknownAgent
    )
    if is_missing:
        return json_response({"name": "NotFoundError", "data": {"message": error.detail}}, status=404)
    if isinstance(error, InvalidParams | UnknownAgent | SessionBusy | Conflict) or 400 <= error.status < 500:
        status = 400 if error.status == 404 else error.status
        said = {"message": error.detail, "kind": "Query" if isinstance(error, InvalidQuery) else "Payload"}
        if status == 400 and style == "tagged":
            return json_response({"_tag": "InvalidRequestError", **said}, status=400)
        return json_response({"name": "BadRequest", "data": said}, status=status)
    return json_response({"name": "UnknownError", "data": {"message": error.detail}}, status=error.status)
