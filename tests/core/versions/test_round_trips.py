"""What goes to the other version and back is what it was, for all that the schema allows, and valid on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sandbox_agent.core import versions
from sandbox_agent.core.versions import UpdateTranslator, Version
from sandbox_agent.core.versions.kinds import KINDS, V2_ONLY
from sandbox_agent.core.versions.pairs import unpack
from support.acp_schema import check, instances, needs_schema

V1, V2 = Version.V1, Version.V2
pytestmark = needs_schema
# Shrinking nested values takes minutes; a failure shows the value as it was drawn.
_phases = [Phase.explicit, Phase.reuse, Phase.generate]
often = settings(max_examples=80, deadline=None, phases=_phases, suppress_health_check=list(HealthCheck))
sometimes = settings(often, max_examples=15)


def there_and_back(updates: list[Any], version: Version) -> tuple[list[Any], list[Any]]:
    other = V2 if version is V1 else V1
    there = UpdateTranslator("s", from_=version, to=other, is_replay=True)
    back = UpdateTranslator("s", from_=other, to=version, is_replay=True)
    told = [params for update in updates for params in there.update({"sessionId": "s", "update": update})]
    returned = [params["update"] for one in told for params in back.update(one)]
    return [params["update"] for params in told], [update for update in returned if not is_addition(update, other)]


def is_addition(update: Any, version: Version) -> bool:
    """Whether it says of itself that the other version does not say it."""
    return unpack(update, version)[::2] == (True, None)


@often
@given(st.data())
def test_updates_of_version_1_come_back_from_version_2_as_they_were(data: st.DataObject) -> None:
    updates = data.draw(st.lists(instances(1, "SessionUpdate"), max_size=4))
    told, returned = there_and_back(updates, V1)
    assert returned == updates
    for update in told:
        check(2, "SessionUpdate", update)


@often
@given(st.data())
def test_updates_of_version_2_come_back_from_version_1_as_they_were(data: st.DataObject) -> None:
    updates = data.draw(st.lists(instances(2, "SessionUpdate"), max_size=4))
    told, returned = there_and_back(updates, V2)
    assert returned == updates
    for update in told:
        if update["sessionUpdate"] in {*KINDS[V1], *V2_ONLY, "tool_call", "plan", "current_mode_update"}:
            check(1, "SessionUpdate", update)  # of other kinds version 1's schema knows nothing


def _servers_are_known(params: Any) -> bool:
    return all(server.get("type") in (None, "stdio", "http", "sse", "acp") for server in params.get("mcpServers") or [])


# method and definition in version 1, in version 2, and what only one of the two schemas refuses
REQUESTS: list[tuple[str, str, str, str, Callable[[Any], bool]]] = [
    ("session/new", "NewSessionRequest", "session/new", "NewSessionRequest", _servers_are_known),
    ("session/fork", "ForkSessionRequest", "session/fork", "ForkSessionRequest", _servers_are_known),
    ("session/resume", "ResumeSessionRequest", "session/resume", "ResumeSessionRequest", _servers_are_known),
    ("session/prompt", "PromptRequest", "session/prompt", "PromptRequest", lambda params: bool(params["prompt"])),
    ("authenticate", "AuthenticateRequest", "auth/login", "LoginAuthRequest", lambda _: True),
    ("logout", "LogoutRequest", "auth/logout", "LogoutAuthRequest", lambda _: True),
    (
        "session/set_config_option",
        "SetSessionConfigOptionRequest",
        "session/set_config_option",
        "SetSessionConfigOptionRequest",
        lambda params: params.get("type", "id") in ("id", "boolean"),
    ),
    ("session/cancel", "CancelNotification", "session/cancel", "CancelSessionNotification", lambda _: True),
]


@pytest.mark.parametrize(("v1", "named_1", "v2", "named_2", "is_shared"), REQUESTS, ids=[row[0] for row in REQUESTS])
def test_requests_come_back_as_they_were(
    v1: str, named_1: str, v2: str, named_2: str, is_shared: Callable[[Any], bool]
) -> None:
    @sometimes
    @given(instances(1, named_1).filter(is_shared), instances(2, named_2).filter(is_shared))
    def holds(old: Any, new: Any) -> None:
        method, params = versions.request(v1, old, from_=V1, to=V2)
        check(2, named_2, params)
        assert versions.request(method, params, from_=V2, to=V1) == (v1, old)
        method, params = versions.request(v2, new, from_=V2, to=V1)
        check(1, named_1, params)
        assert versions.request(method, params, from_=V1, to=V2) == (v2, new)

    holds()


ANSWERS = [
    ("session/new", "NewSessionResponse"),
    ("session/resume", "ResumeSessionResponse"),
    ("session/fork", "ForkSessionResponse"),
    ("session/set_config_option", "SetSessionConfigOptionResponse"),
    ("session/list", "ListSessionsResponse"),
]


@pytest.mark.parametrize(("method", "named"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_answers_come_back_as_they_were(method: str, named: str) -> None:
    @sometimes
    @given(instances(1, named), instances(2, named))
    def holds(old: Any, new: Any) -> None:
        up = versions.result(method, old, from_=V1, to=V2)
        check(2, named, up)
        assert versions.result(method, up, from_=V2, to=V1) == old
        down = versions.result(method, new, from_=V2, to=V1)
        check(1, named, down)
        assert versions.result(method, down, from_=V1, to=V2) == new

    holds()


ASKS = [
    ("session/request_permission", "RequestPermissionRequest", "RequestPermissionResponse"),
    ("elicitation/create", "CreateElicitationRequest", "CreateElicitationResponse"),
]


def _has_nothing_to_choose(form: Any) -> bool:
    """Version 1 allows a choice without choices, version 2 does not."""
    if isinstance(form, dict):
        is_empty = any(form.get(name) == [] for name in ("enum", "oneOf", "anyOf"))
        return is_empty or any(map(_has_nothing_to_choose, form.values()))
    return isinstance(form, list) and any(map(_has_nothing_to_choose, form))


@pytest.mark.parametrize(("method", "asked", "answered"), ASKS, ids=[row[0] for row in ASKS])
def test_what_an_agent_asks_and_is_answered_comes_back_as_it_was(method: str, asked: str, answered: str) -> None:
    def is_shared(value: Any) -> bool:
        has_values = all(member is not None for member in (value.get("content") or {}).values())
        is_form = not _has_nothing_to_choose(value.get("requestedSchema"))
        return value.get("options") != [] and value.get("requestId", 0) is not None and has_values and is_form

    @sometimes
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        for version, other in ((V1, V2), (V2, V1)):
            params = data.draw(instances(version, asked).filter(is_shared))
            _, told = versions.ask(method, params, from_=version, to=other)
            check(other, asked, told)
            assert versions.ask(method, told, from_=other, to=version) == (method, params)
            answer = data.draw(instances(version, answered).filter(is_shared))
            told = versions.ask_result(method, answer, from_=version, to=other)
            check(other, answered, told)
            assert versions.ask_result(method, told, from_=other, to=version) == answer

    holds()


@pytest.mark.parametrize(
    ("named", "read"),
    [("InitializeRequest", versions.initialize_request), ("InitializeResponse", versions.initialize_result)],
)
def test_initialize_comes_back_as_it_was_but_for_its_number(named: str, read: Callable[..., Any]) -> None:
    @sometimes
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        for version, other in ((V1, V2), (V2, V1)):
            message = data.draw(instances(version, named))
            told = read(message, from_=version, to=other)
            check(other, named, told)
            assert told["protocolVersion"] == other
            assert read(told, from_=other, to=version) == {**message, "protocolVersion": version}

    holds()


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@often
@given(st.data())
def test_nothing_raises_when_members_are_of_the_wrong_type(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from([V1, V2]))
    other = V2 if version is V1 else V1
    translator = UpdateTranslator("s", from_=version, to=other, is_replay=data.draw(st.booleans()))
    for _ in range(3):
        update = dict(data.draw(instances(version, "SessionUpdate")))
        for name in data.draw(st.lists(st.sampled_from(sorted(update)), max_size=3)):
            update[name] = data.draw(_json)
        translator.update({"sessionId": "s", "update": update})
    junk = data.draw(_json)
    translator.update(junk)
    translator.update({"update": junk})
    translator.session_opened(data.draw(_json))
    translator.prompt_started("m", junk)
    translator.prompt_ended(result=junk)
    translator.prompt_ended(error=junk)
    for method in [row[0] for row in REQUESTS] + ["session/load", "session/set_mode", "session/list"]:
        versions.request(method, junk, from_=version, to=other, known={"configOptions": junk, "modes": junk})
        versions.result(method, junk, from_=version, to=other, asked=junk, known={"configOptions": junk})
    for method, *_ in ASKS:
        versions.ask(method, junk, from_=version, to=other)
        versions.ask_result(method, junk, from_=version, to=other)
    versions.initialize_request(junk, from_=version, to=other)
    versions.initialize_result(junk, from_=version, to=other)
    versions.spoken_version(junk)
    versions.chosen_version(junk)
    versions.supported_by(junk)
