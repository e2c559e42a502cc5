"""Every row of the endpoint mapping: the live route answers, or a 410 names what replaces it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from sandbox_agent.http.api.removed import REMOVED
from support.served import problem
from support.tars import archive, file

LIVE = {
    "GET /v1/health",
    "GET /v1/agents",
    "POST /v1/agents/{agent}/install",
    "GET /v1/fs/entries",
    "DELETE /v1/fs/entry",
    "GET /v1/fs/file",
    "PUT /v1/fs/file",
    "POST /v1/fs/mkdir",
    "POST /v1/fs/move",
    "GET /v1/fs/stat",
    "POST /v1/fs/upload-batch",
    "GET /v1/sessions",
}
GONE = {
    "GET /v1/agents/{agent}/models": "GET /v1/agents/{agent}?config=true (models)",
    "GET /v1/agents/{agent}/modes": "GET /v1/agents/{agent}?config=true (modes)",
    "POST /v1/sessions/{id}": "session/new",
    "POST /v1/sessions/{id}/messages": "session/prompt",
    "POST /v1/sessions/{id}/messages/stream": "session/prompt",
    "POST /v1/sessions/{id}/terminate": "_sandboxagent/session/terminate",
    "GET /v1/sessions/{id}/events": "_sandboxagent/session/events",
    "GET /v1/sessions/{id}/events/sse": "GET /v1/rpc",
    "POST /v1/sessions/{id}/permissions/{permission}/reply": "session/request_permission",
    "POST /v1/sessions/{id}/questions/{question}/reply": "_sandboxagent/session/request_question",
    "POST /v1/sessions/{id}/questions/{question}/reject": "_sandboxagent/session/request_question",
}


@pytest.mark.parametrize("row", sorted(LIVE))
def test_a_route_that_stayed_answers(http: httpx.Client, root: Path, row: str) -> None:
    method, path = row.split()
    (root / "mapped").mkdir(exist_ok=True)
    (root / "mapped" / "file").write_text("text")
    there = {"path": str(root / "mapped" / ("" if path.endswith("entries") else "file"))}
    parts: dict[str, object] = {}
    if path.endswith("/move"):
        parts["json"] = {"from": there["path"], "to": str(root / "mapped" / "moved"), "overwrite": True}
    elif path.endswith("/upload-batch"):
        there = {"path": str(root / "mapped")}
        parts |= {"content": archive(file("a")), "headers": {"Content-Type": "application/x-tar"}}
    elif path.endswith("/mkdir"):
        there = {"path": str(root / "mapped" / "made")}
    elif method == "PUT":
        parts["content"] = b"new"
    answer = http.request(method, path.replace("{agent}", "mock"), params=there, **parts)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("row", sorted(GONE))
def test_a_route_that_went_says_what_replaces_it(http: httpx.Client, row: str) -> None:
    method, template = row.split()
    path = template
    for name, value in {"agent": "mock", "id": "s1", "permission": "p1", "question": "q1"}.items():
        path = path.replace(f"{{{name}}}", value)
    answer = http.request(method, path)
    assert answer.status_code == 410
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "urn:sandbox-agent:error:v1_removed",
        "title": "Gone",
        "status": 410,
        "detail": "v1 API removed; use /v1",
        "instance": path,
        "replacement": GONE[row],
    }


def test_the_table_of_what_went_is_the_one_that_is_tested() -> None:
    assert {f"{method} {path}": replacement for method, path, replacement in REMOVED} == GONE


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/other", "/v1/health/", "/v1//health", "/v1/sessions/a/other"])
def test_any_other_path_under_v1_is_gone_without_a_replacement_and_told_as_no_such_endpoint(
    http: httpx.Client, path: str
) -> None:
    answer = http.get(path)
    assert answer.status_code == 410
    body = answer.json()
    assert body.pop("hint").startswith(f"no such endpoint: GET {path};")
    assert body == {
        "type": "urn:sandbox-agent:error:v1_removed",
        "title": "Gone",
        "status": 410,
        "detail": "v1 API removed; use /v1",
        "instance": path,
        "replacement": None,
    }


def test_a_retired_path_is_gone_whatever_the_method(http: httpx.Client) -> None:
    assert http.get("/v1/sessions/a/messages").status_code == 410
    assert http.delete("/v1/agents/mock/models").status_code == 410


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/v1/health", "GET, HEAD"),
        ("PUT", "/v1/sessions/x", "GET, HEAD"),
        ("DELETE", "/v1/agents", "GET, HEAD"),
        ("POST", "/v1/fs/file", "GET, HEAD, PUT"),
        ("GET", "/v1/fs/mkdir", "POST"),
        ("PATCH", "/v1/rpc", "POST, GET, DELETE"),
        ("HEAD", "/v1/rpc", "POST, GET, DELETE"),
        ("OPTIONS", "/v1/health", "GET, HEAD"),
        ("DELETE", "/docs", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(http: httpx.Client, method: str, path: str, allow: str) -> None:
    answer = http.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)
    if method != "HEAD":
        assert problem(answer) == "method_not_allowed"


@pytest.mark.parametrize("path", ["/nowhere", "/v2/health", "/v1x", "/V1/health", "/api"])
def test_everything_outside_the_surface_is_not_found(http: httpx.Client, path: str) -> None:
    assert problem(http.get(path)) == "not_found"
