"""Errors of the server are the same classes here."""

from __future__ import annotations

import httpx
import msgspec
import pytest

from sandbox_agent.client.rpc.problems import from_response, from_rpc
from sandbox_agent.core import frames
from sandbox_agent.errors import (
    AgentExited,
    RequestFailed,
    SandboxAgentError,
    SessionBusy,
    UnknownConnection,
    UnknownSession,
)

REQUEST = httpx.Request("GET", "http://test/v1/x")


@pytest.mark.parametrize(
    "error",
    [SessionBusy("full"), AgentExited("died", exitCode=3), UnknownSession("s"), UnknownConnection("c")],
    ids=lambda error: error.kind,
)
def test_an_error_survives_the_way_over_json_rpc(error: SandboxAgentError) -> None:
    body = msgspec.json.decode(frames.failure(b"1", error))["error"]
    back = from_rpc(body["code"], body["message"], body["data"])
    assert (type(back), back.detail, back.data) == (type(error), error.detail, error.data)


def test_an_error_of_the_agents_own_keeps_its_code_and_data() -> None:
    error = from_rpc(-32000, "Authentication required", {"methods": ["login"]})
    assert isinstance(error, RequestFailed)
    assert error.remote_code == -32000
    assert error.data["error"]["data"] == {"methods": ["login"]}


def test_a_problem_document_is_the_error_that_it_names() -> None:
    body = {"type": "urn:sandbox-agent:error:unknown_session", "detail": "no session", "status": 404, "sessionId": "s"}
    error = from_response(httpx.Response(404, json=body, request=REQUEST))
    assert isinstance(error, UnknownSession)
    assert error.data == {"sessionId": "s"}


def test_a_page_of_a_proxy_is_an_error_that_says_what_was_asked() -> None:
    error = from_response(httpx.Response(502, text="<html>Bad gateway</html>", request=REQUEST))
    assert type(error) is SandboxAgentError
    assert error.detail == "GET /v1/x: HTTP 502"
