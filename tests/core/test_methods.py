from __future__ import annotations

import pytest

from sandbox_agent.core.methods import (
    CLAIMED,
    EXTENSION_PREFIX,
    HOST_METHODS,
    METHODS,
    UNLIMITED,
    ClientCall,
    client_call,
    may_repeat,
)

SURFACE = """initialize authenticate logout session/new session/load session/prompt session/list session/fork
session/resume session/close session/delete session/set_mode session/set_model session/set_config_option""".split()


def test_every_request_of_acp_is_in_the_table() -> None:
    assert sorted(method for method in METHODS if not method.startswith(EXTENSION_PREFIX)) == sorted(SURFACE)


def test_a_known_method_is_itself_with_a_session_or_without() -> None:
    for method, known in METHODS.items():
        assert client_call(method, has_session=True) is client_call(method, has_session=False) is known.call


@pytest.mark.parametrize("has_session", [True, False])
def test_our_own_extensions_are_answered_by_the_server(*, has_session: bool) -> None:
    assert client_call("_sandboxagent/session/detach", has_session=has_session) is ClientCall.SERVER
    assert client_call("_sandboxagent/unheard_of", has_session=has_session) is ClientCall.SERVER


@pytest.mark.parametrize("method", ["_vendor/x", "_sandboxagentx", "session/new_in_acp_2", "x", ""])
def test_unknown_methods_go_to_the_agent_of_their_session_or_of_the_connection(method: str) -> None:
    assert client_call(method, has_session=True) is ClientCall.SESSION
    assert client_call(method, has_session=False) is ClientCall.AGENT


def test_the_host_can_serve_files_and_terminals() -> None:
    assert {method.partition("/")[0] for method in HOST_METHODS} == {"fs", "terminal"}
    assert HOST_METHODS.items() <= CLAIMED.items()


def test_only_a_prompt_has_no_time_limit() -> None:
    assert {"session/prompt", "_sandboxagent/agent/install"} == UNLIMITED


@pytest.mark.parametrize("method", ["session/new", "session/fork", "authenticate", "_sandboxagent/fs/move", "_other/x"])
def test_what_would_be_done_twice_is_not_repeated(method: str) -> None:
    assert not may_repeat(method)


@pytest.mark.parametrize("method", ["session/prompt", "session/resume", "_sandboxagent/session/events"])
def test_what_does_no_harm_twice_may_be_repeated(method: str) -> None:
    assert may_repeat(method)
