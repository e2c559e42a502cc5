"""Paths under /v1 that are not served: 410, naming what replaces those that the old API had."""

from __future__ import annotations

import re

import msgspec

from sandbox_agent.http.asgi.messages import PROBLEM, Response

_ID = "[^/]+"
REMOVED: tuple[tuple[str, str, str], ...] = (
    ("GET", "/v1/agents/{agent}/models", "GET /v1/agents/{agent}?config=true (models)"),
    ("GET", "/v1/agents/{agent}/modes", "GET /v1/agents/{agent}?config=true (modes)"),
    ("POST", "/v1/sessions/{id}", "session/new"),
    ("POST", "/v1/sessions/{id}/messages", "session/prompt"),
    ("POST", "/v1/sessions/{id}/messages/stream", "session/prompt"),
    ("POST", "/v1/sessions/{id}/terminate", "_sandboxagent/session/terminate"),
    ("GET", "/v1/sessions/{id}/events", "_sandboxagent/session/events"),
    ("GET", "/v1/sessions/{id}/events/sse", "GET /v1/rpc"),
    ("POST", "/v1/sessions/{id}/permissions/{permission}/reply", "session/request_permission"),
    ("POST", "/v1/sessions/{id}/questions/{question}/reply", "_sandboxagent/session/request_question"),
    ("POST", "/v1/sessions/{id}/questions/{question}/reject", "_sandboxagent/session/request_question"),
)
"""Method, path, and what to use instead (from the endpoint mapping)."""
_PATTERNS = [
    (method, re.compile(re.sub(r"\{\w+\}", _ID, path) + r"\Z"), replacement) for method, path, replacement in REMOVED
]


def find_removed(method: str, path: str, *, is_known: bool) -> Response | None:
    """The answer for a path under /v1 that is not served. None when the path is alive (a wrong method is a 405)."""
    if path != "/v1" and not path.startswith("/v1/"):
        return None
    for retired, pattern, replacement in _PATTERNS:
        if pattern.match(path) and (not is_known or method == retired):
            return _gone(path, replacement)
    if is_known:
        return None
    return _gone(path, None, hint=f"no such endpoint: {method} {path}; GET /v1/openapi.json lists those that exist")


def _gone(path: str, replacement: str | None, **more: str) -> Response:
    """The same words for all, since programs know them; `hint` is for people."""
    body = {
        "type": "urn:sandbox-agent:error:v1_removed",
        "title": "Gone",
        "status": 410,
        "detail": "v1 API removed; use /v1",
        "instance": path,
        "replacement": replacement,
        **more,
    }
    return Response(410, msgspec.json.encode(body), PROBLEM)
