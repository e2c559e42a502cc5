"""Requests and answers that the versions spell differently."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core import versions
from sandbox_agent.core.versions import Version

V1, V2 = Version.V1, Version.V2
MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}


def to_v2(method: str, params: Any, **known: Any) -> tuple[str, Any]:
    return versions.request(method, params, from_=V1, to=V2, known=known)


def to_v1(method: str, params: Any, **known: Any) -> tuple[str, Any]:
    return versions.request(method, params, from_=V2, to=V1, known=known)


def test_load_is_resume_from_the_start() -> None:
    load = {"sessionId": "s", "cwd": "/", "mcpServers": []}
    resume = {**load, "replayFrom": {"type": "start"}}
    assert to_v2("session/load", load) == ("session/resume", resume)
    assert to_v1("session/resume", resume) == ("session/load", load)
    assert to_v1("session/resume", load) == ("session/resume", load)


def test_what_a_resume_has_beside_its_cursor_comes_back_with_it() -> None:
    resume = {"sessionId": "s", "cwd": "/", "replayFrom": {"type": "start", "_own": 1}}
    assert to_v2(*to_v1("session/resume", resume)) == ("session/resume", resume)


def test_version_1_gets_the_lists_that_it_requires() -> None:
    server = {"type": "stdio", "name": "tools", "command": "/bin/tools"}
    _, params = to_v1("session/new", {"cwd": "/", "mcpServers": [server]})
    [told] = params["mcpServers"]
    assert (told["args"], told["env"]) == ([], [])
    assert "type" not in told
    assert to_v1("session/new", {"cwd": "/"})[1]["mcpServers"] == []


def test_a_mode_is_set_in_the_way_that_the_agent_knows() -> None:
    set_mode = {"sessionId": "s", "modeId": "code"}
    set_option = {"sessionId": "s", "configId": "mode", "type": "id", "value": "code"}
    assert to_v2("session/set_mode", set_mode) == ("session/set_config_option", set_option)
    assert to_v1("session/set_config_option", set_option, modes=MODES) == ("session/set_mode", set_mode)
    own = [{"configId": "how", "category": "mode", "type": "select"}]
    assert to_v2("session/set_mode", set_mode, configOptions=own)[1]["configId"] == "how"
    other = {"sessionId": "s", "configId": "effort", "value": "high"}
    assert to_v1("session/set_config_option", {**other, "type": "id"}, modes=MODES) == (
        "session/set_config_option",
        other,
    )


def test_setting_a_mode_is_answered_with_all_options_to_version_2() -> None:
    asked = {"sessionId": "s", "configId": "mode", "type": "id", "value": "code"}
    answer = versions.result("session/set_config_option", {}, from_=V1, to=V2, asked=asked, known={"modes": MODES})
    [option] = answer["configOptions"]
    assert (option["configId"], option["currentValue"], len(option["options"])) == ("mode", "code", 2)
    assert versions.result("session/set_mode", answer, from_=V2, to=V1) == {}


def test_modes_of_version_1_are_an_option_in_version_2_and_back() -> None:
    answer = {"sessionId": "s", "modes": MODES}
    told = versions.result("session/new", answer, from_=V1, to=V2)
    assert "modes" not in told
    assert [option["category"] for option in told["configOptions"]] == ["mode"]
    back = versions.result("session/new", {**told, "_meta": {}}, from_=V2, to=V1)
    assert back["modes"] == MODES


def test_logging_in_and_out_changes_its_name() -> None:
    assert to_v2("authenticate", {"methodId": "key"}) == ("auth/login", {"methodId": "key"})
    assert to_v1("auth/logout", {}) == ("logout", {})


def test_methods_that_one_version_does_not_know_pass_for_the_agent_to_refuse() -> None:
    params = {"sessionId": "s", "toolCallId": "c"}
    assert to_v1("tool_call/cancel", params) == ("tool_call/cancel", params)
    assert to_v2("_vendor/method", params) == ("_vendor/method", params)


OPTIONS = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]


def test_a_permission_names_its_tool_call_in_either_version() -> None:
    asked = {"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "Run ls"}, "options": OPTIONS}
    _, told = versions.ask("session/request_permission", asked, from_=V1, to=V2)
    assert told["title"] == "Run ls"
    assert told["subject"] == {"type": "tool_call", "toolCall": asked["toolCall"]}
    assert versions.ask("session/request_permission", told, from_=V2, to=V1)[1] == asked


def test_a_permission_for_a_command_is_shown_to_version_1_as_a_tool_call_that_runs_it() -> None:
    subject = {"type": "command", "command": "rm -rf /tmp/x", "cwd": "/tmp", "toolCallId": "c9"}
    asked = {"sessionId": "s", "title": "Delete?", "subject": subject, "options": OPTIONS}
    _, told = versions.ask("session/request_permission", asked, from_=V2, to=V1)
    call = told["toolCall"]
    assert (call["toolCallId"], call["title"], call["kind"]) == ("c9", "Delete?", "execute")
    assert call["rawInput"] == {"command": "rm -rf /tmp/x", "cwd": "/tmp"}
    assert versions.ask("session/request_permission", told, from_=V1, to=V2)[1] == asked


def test_an_option_of_a_kind_that_version_1_does_not_know_never_looks_like_one_that_allows() -> None:
    options = [{"optionId": "x", "name": "Hm", "kind": "_perhaps"}]
    asked = {"sessionId": "s", "title": "?", "options": options}
    _, told = versions.ask("session/request_permission", asked, from_=V2, to=V1)
    assert told["options"][0]["kind"] == "reject_once"


def test_an_outcome_that_version_1_does_not_know_is_a_cancel() -> None:
    answer = {"outcome": {"outcome": "_later", "when": 5}}
    told = versions.ask_result("session/request_permission", answer, from_=V2, to=V1)
    assert told["outcome"]["outcome"] == "cancelled"


def test_peers_of_the_same_version_get_what_was_sent() -> None:
    params: dict[str, Any] = {"cwd": "/"}
    assert versions.request("session/new", params, from_=V2, to=V2)[1] is params
    assert versions.ask("elicitation/create", params, from_=V1, to=V1)[1] is params
