from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_agent.core.mcp_servers import convert_mcp_servers
from sandbox_agent.errors import InvalidParams
from support.history import json_values

ENV = {"TOKEN": "s3cret", "OTHER": "value"}


def convert(**config: Any) -> dict[str, Any]:
    (server,) = convert_mcp_servers({"one": config}, ENV)
    return server


def refusal(**config: Any) -> InvalidParams:
    with pytest.raises(InvalidParams) as caught:
        convert_mcp_servers({"one": config}, ENV)
    assert caught.value.data["server"] == "one"
    assert "one" in caught.value.detail
    return caught.value


@pytest.mark.parametrize("type_", ["local", "stdio"])
def test_a_local_server_has_name_command_args_and_env(type_: str) -> None:
    server = convert(type=type_, command="mcp-files", args=["--root", "/x"], env={"A": "1", "B": "2"})
    assert server == {
        "name": "one",
        "command": "mcp-files",
        "args": ["--root", "/x"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    }


def test_a_command_string_is_one_program_even_with_spaces() -> None:
    assert convert(command="/my tools/mcp")["command"] == "/my tools/mcp"


def test_a_command_array_is_the_program_then_arguments_before_args() -> None:
    server = convert(command=["npx", "-y", "pkg"], args=["--flag"])
    assert (server["command"], server["args"]) == ("npx", ["-y", "pkg", "--flag"])


def test_args_and_env_are_present_even_when_not_given() -> None:
    assert convert(command="x") == {"name": "one", "command": "x", "args": [], "env": []}


def test_cwd_and_time_out_of_a_local_server_go_into_meta() -> None:
    assert convert(command="x", cwd="/w", timeoutMs=500)["_meta"] == {
        "sandboxagent.dev": {"cwd": "/w", "timeoutMs": 500}
    }


@pytest.mark.parametrize(
    ("fields", "transport"),
    [
        ({"type": "remote"}, "http"),
        ({"type": "remote", "transport": "sse"}, "sse"),
        ({"type": "remote", "transport": "http"}, "http"),
        ({"type": "http"}, "http"),
        ({"type": "sse"}, "sse"),
        ({}, "http"),
    ],
)
def test_a_remote_server_has_the_type_of_its_transport(fields: dict[str, Any], transport: str) -> None:
    server = convert(url="https://h/mcp", headers={"X-A": "1"}, **fields)
    assert server == {
        "type": transport,
        "name": "one",
        "url": "https://h/mcp",
        "headers": [{"name": "X-A", "value": "1"}],
    }


def test_a_bearer_token_is_read_from_the_environment() -> None:
    server = convert(url="https://h", bearerTokenEnvVar="TOKEN")
    assert server["headers"] == [{"name": "Authorization", "value": "Bearer s3cret"}]
    assert server["_meta"] == {"sandboxagent.dev": {"bearerTokenEnvVar": "TOKEN"}}


def test_env_headers_are_read_from_the_environment() -> None:
    server = convert(url="https://h", headers={"X-A": "1"}, envHeaders={"X-B": "OTHER"})
    assert server["headers"] == [{"name": "X-A", "value": "1"}, {"name": "X-B", "value": "value"}]
    assert server["_meta"] == {"sandboxagent.dev": {"envHeaders": {"X-B": "OTHER"}}}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"bearerTokenEnvVar": "NONE"}, "bearerTokenEnvVar"),
        ({"envHeaders": {"X-B": "NONE"}}, "envHeaders.X-B"),
    ],
)
def test_a_variable_that_is_not_set_is_named(fields: dict[str, Any], field: str) -> None:
    problem = refusal(url="https://h", **fields)
    assert problem.data["field"] == field
    assert "'NONE'" in problem.detail


@pytest.mark.parametrize("oauth", [{"clientId": "c", "clientSecret": "s", "scope": "a b"}, {"clientId": "c"}, {}])
def test_oauth_goes_into_meta(oauth: dict[str, str]) -> None:
    server = convert(url="https://h", oauth=oauth, timeoutMs=5)
    assert server["_meta"]["sandboxagent.dev"] == {"timeoutMs": 5, "oauth": oauth}


def test_oauth_false_is_said_as_disabled() -> None:
    assert convert(url="https://h", oauth=False)["_meta"] == {"sandboxagent.dev": {"oauthDisabled": True}}


def test_a_disabled_server_is_left_out_and_its_variables_are_not_needed() -> None:
    servers = {
        "off": {"url": "https://h", "enabled": False, "bearerTokenEnvVar": "NONE"},
        "off2": {"command": "x", "enabled": False},
        "on": {"command": "x", "enabled": True},
    }
    assert [server["name"] for server in convert_mcp_servers(servers, {})] == ["on"]


def test_servers_keep_their_order() -> None:
    servers = {name: {"command": "x"} for name in ("z", "a", "m")}
    assert [server["name"] for server in convert_mcp_servers(servers, {})] == ["z", "a", "m"]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"type": "carrier-pigeon"}, "type"),
        ({"type": 3}, "type"),
        ({"type": "local"}, "command"),
        ({"command": ""}, "command"),
        ({"command": []}, "command"),
        ({"command": 3}, "command"),
        ({"command": "x\0y"}, "command"),
        ({"command": "x", "args": "y"}, "args"),
        ({"command": "x", "args": [1]}, "args[0]"),
        ({"command": "x", "env": ["A=1"]}, "env"),
        ({"command": "x", "env": {"A=B": "1"}}, "env.A=B"),
        ({"command": "x", "cwd": 1}, "cwd"),
        ({"command": "x", "enabled": "no"}, "enabled"),
        ({"command": "x", "timeoutMs": 0}, "timeoutMs"),
        ({"command": "x", "timeoutMs": "1"}, "timeoutMs"),
        ({"command": "x", "colour": "red"}, "colour"),
        ({"type": "remote"}, "url"),
        ({"url": "ftp://h"}, "url"),
        ({"url": "https://[h"}, "url"),
        ({"url": "https://h", "transport": "udp"}, "transport"),
        ({"url": "https://h", "type": "sse", "transport": "http"}, "transport"),
        ({"url": "https://h", "headers": {"X": "a\r\nY: b"}}, "headers.X"),
        (
            {"url": "https://h", "headers": {"authorization": "x"}, "bearerTokenEnvVar": "TOKEN"},
            "bearerTokenEnvVar",
        ),
        ({"url": "https://h", "oauth": True}, "oauth"),
        ({"url": "https://h", "oauth": {"client": 1}}, "oauth"),
    ],
)
def test_bad_input_is_refused_with_server_and_field(config: dict[str, Any], field: str) -> None:
    assert refusal(**config).data["field"] == field


@pytest.mark.parametrize("servers", [None, [], "x", {"": {"command": "x"}}, {"one": "npx"}])
def test_what_is_no_map_of_servers_is_refused(servers: Any) -> None:
    with pytest.raises(InvalidParams, match="mcp"):
        convert_mcp_servers(servers, {})


def test_a_refusal_shows_no_secret() -> None:
    problem = refusal(url="https://h", headers={"X": "hunter2\n"}, oauth={"clientSecret": "hunter2"})
    assert "hunter2" not in problem.detail


_FIELDS = [
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "enabled",
    "timeoutMs",
    "url",
    "transport",
    "headers",
    "oauth",
]


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=3),
        st.dictionaries(st.sampled_from(_FIELDS), json_values | st.sampled_from(["local", "https://h"])) | json_values,
        max_size=3,
    )
)
def test_any_map_converts_or_is_refused(servers: dict[str, Any]) -> None:
    try:
        converted = convert_mcp_servers(servers, ENV)
    except InvalidParams:
        return
    assert {server["name"] for server in converted} <= set(servers)
