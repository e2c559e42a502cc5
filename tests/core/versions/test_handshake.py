"""Who speaks what, by what they say and by how they say it."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox_agent.core.versions import (
    Version,
    chosen_version,
    initialize_params,
    initialize_result,
    spoken_version,
    supported_by,
    unsupported_version,
)

V1, V2 = Version.V1, Version.V2
INFO = {"name": "an agent", "version": "1"}


@pytest.mark.parametrize(
    ("asked", "chosen"), [(1, V1), (2, V2), (3, V2), (65535, V2), (0, V1), (-1, V1), (None, V1), ("2", V1), (True, V1)]
)
def test_a_client_gets_the_highest_version_that_both_know(asked: Any, chosen: Version) -> None:
    assert chosen_version({"protocolVersion": asked}) is chosen
    assert chosen_version(asked) is V1


@pytest.mark.parametrize(
    ("answer", "spoken"),
    [
        ({"protocolVersion": 1}, V1),
        ({"protocolVersion": 1, "agentCapabilities": {}}, V1),
        ({"protocolVersion": 2, "info": INFO}, V2),
        ({"protocolVersion": 2, "capabilities": {"session": {}}}, V2),
        ({"protocolVersion": 2.0, "info": INFO}, V2),
        ({"protocolVersion": 2, "agentCapabilities": {"loadSession": True}, "agentInfo": INFO}, V1),
        ({"protocolVersion": 2}, V1),
        ({"agentCapabilities": {}}, V1),
        ({"protocolVersion": 3, "info": INFO}, None),
        ({"protocolVersion": 0}, None),
        ({"protocolVersion": "two"}, None),
        ({"protocolVersion": 1e300}, None),
        ({}, None),
        ("hello", None),
        (None, None),
    ],
)
def test_an_agent_speaks_what_its_answer_looks_like_whatever_number_it_echoes(
    answer: Any, spoken: Version | None
) -> None:
    assert spoken_version(answer) is spoken


def test_a_refused_version_says_which_ones_are_known() -> None:
    error = unsupported_version(9)
    assert (error["code"], error["data"]) == (-32022, {"requested": 9, "supported": [1, 2]})
    assert supported_by(error) == [1, 2]
    assert supported_by({"code": -32022, "message": "no", "data": {"supported": [2, "x", None]}}) == [2]
    assert supported_by({"code": -32022, "message": "no"}) == []
    assert supported_by({"code": -32601, "message": "no"}) is None


def test_our_own_initialize_says_in_both_spellings_what_we_can_do() -> None:
    capabilities = {"fs": {"readTextFile": True}, "terminal": True, "elicitation": {"form": {}}}
    asked = initialize_params(V2, info=INFO, capabilities=capabilities)
    assert asked == {
        "protocolVersion": 2,
        "info": INFO,
        "capabilities": {"elicitation": {"form": {}}},
        "clientInfo": INFO,
        "clientCapabilities": capabilities,
    }
    assert initialize_params(V1, info=INFO, capabilities=capabilities) == {
        "protocolVersion": 1,
        "clientInfo": INFO,
        "clientCapabilities": capabilities,
    }


def test_capabilities_of_a_version_1_agent_are_markers_for_a_version_2_client() -> None:
    answer = {
        "protocolVersion": 1,
        "agentInfo": INFO,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False},
            "mcpCapabilities": {"http": True, "sse": True},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
            "auth": {"logout": {}},
        },
        "authMethods": [{"id": "key", "name": "Key"}],
    }
    told = initialize_result(answer, from_=V1, to=V2)
    assert told["protocolVersion"] == 2
    assert told["info"] == INFO
    assert told["capabilities"]["session"] == {
        "prompt": {"image": {}, "audio": None},
        "mcp": {"stdio": {}, "http": {}},
        "delete": {},
    }
    assert told["authMethods"] == [{"methodId": "key", "name": "Key", "type": "agent"}]
    assert initialize_result(told, from_=V2, to=V1) == answer


def test_a_version_1_client_hears_that_a_version_2_agent_loads_lists_resumes_and_closes() -> None:
    told = initialize_result({"protocolVersion": 2, "info": INFO, "capabilities": {"session": {}}}, from_=V2, to=V1)
    assert told["agentCapabilities"]["loadSession"] is True
    assert told["agentCapabilities"]["sessionCapabilities"] == {"list": {}, "resume": {}, "close": {}}
