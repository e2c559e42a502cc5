from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from sandbox_agent.core.permission_policy import (
    NAMED_POLICIES,
    TOOL_KINDS,
    AskPerson,
    Decided,
    Grant,
    PermissionPolicy,
    choose_option,
    parse_policy,
)
from sandbox_agent.errors import InvalidParams
from support.history import json_values, options

ALL = options("reject_always", "allow_always", "reject_once", "allow_once")


def asking(kind: str | None = None, offered: Any = ALL, **call: Any) -> dict[str, Any]:
    tool = {"toolCallId": "c", **call}
    return {"toolCall": tool if kind is None else {**tool, "kind": kind}, "options": offered}


def answered(decision: AskPerson | Decided) -> Decided:
    assert isinstance(decision, Decided)
    return decision


def test_ask_leaves_it_to_the_clients() -> None:
    assert isinstance(parse_policy("ask").decide(asking("read")), AskPerson)


@pytest.mark.parametrize(("policy", "option"), [("allow", "id-allow_once"), ("reject", "id-reject_once")])
def test_allow_and_reject_choose_the_option_that_holds_once(policy: str, option: str) -> None:
    answer = answered(parse_policy(policy).decide(asking("execute")))
    assert answer.outcome == {"outcome": "selected", "optionId": option}
    assert answer.fallback is None
    assert answer.result["_meta"]["sandboxagent.dev"] == {
        "automatic": True,
        "reason": f"policy: {policy} for tools of kind 'execute'",
    }


def test_rules_go_by_kind_and_the_default_holds_for_the_rest() -> None:
    policy = parse_policy({"read": "allow", "execute": "reject", "default": "ask"})
    assert answered(policy.decide(asking("read"))).outcome["optionId"] == "id-allow_once"
    assert answered(policy.decide(asking("execute"))).outcome["optionId"] == "id-reject_once"
    assert isinstance(policy.decide(asking("edit")), AskPerson)


def test_rules_may_stand_one_level_down() -> None:
    assert parse_policy({"default": "reject", "rules": {"read": "allow"}}) == PermissionPolicy(
        "reject", {"read": "allow"}
    )


def test_without_a_default_an_object_of_rules_asks() -> None:
    assert parse_policy({"read": "allow"}).default == "ask"


def test_a_title_never_decides() -> None:
    policy = parse_policy({"read": "allow", "default": "reject"})
    answer = answered(policy.decide(asking(None, title="read", name="read")))
    assert answer.outcome["optionId"] == "id-reject_once"


def test_a_missing_or_unheard_of_kind_counts_as_other() -> None:
    policy = parse_policy({"other": "reject", "default": "allow"})
    for kind in (None, "", "teleport"):
        assert answered(policy.decide(asking(kind))).outcome["optionId"] == "id-reject_once"


def test_the_kind_remembered_from_the_tool_call_fills_in() -> None:
    policy = parse_policy({"execute": "reject", "default": "allow"})
    assert answered(policy.decide(asking(), known_kind="execute")).outcome["optionId"] == "id-reject_once"
    assert answered(policy.decide(asking("read"), known_kind="execute")).outcome["optionId"] == "id-allow_once"


@pytest.mark.parametrize(
    ("mode", "kind", "verdict"),
    [
        ("default", "edit", "ask"),
        ("acceptEdits", "edit", "allow"),
        ("acceptEdits", "execute", "ask"),
        ("plan", "edit", "reject"),
        ("plan", "execute", "reject"),
        ("plan", "read", "ask"),
        ("bypass", "execute", "allow"),
        ("bypassPermissions", "execute", "allow"),
        ("dontAsk", "edit", "reject"),
    ],
)
def test_the_old_permission_modes_have_a_meaning(mode: str, kind: str, verdict: str) -> None:
    assert parse_policy(mode).rule_for(kind) == verdict


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ("yolo", "yolo"),
        (None, "permissionMode"),
        (3, "permissionMode"),
        ({"raed": "allow"}, "permissionMode.raed"),
        ({"read": "maybe"}, "permissionMode.read"),
        ({"read": ["allow"]}, "permissionMode.read"),
        ({"default": "x"}, "permissionMode.default"),
        ({"rules": []}, "permissionMode.rules"),
    ],
)
def test_a_wrong_policy_is_refused_with_its_place(value: Any, match: str) -> None:
    with pytest.raises(InvalidParams, match=match):
        parse_policy(value)


@pytest.mark.parametrize(
    ("reply", "offered", "expected", "has_fallback"),
    [
        ("once", ALL, "id-allow_once", False),
        ("always", ALL, "id-allow_always", False),
        ("reject", ALL, "id-reject_once", False),
        ("always", options("reject_once", "allow_once"), "id-allow_once", True),
        ("reject", options("allow_once", "reject_always"), "id-reject_always", True),
        ("once", [{"optionId": "proceed-once"}, {"optionId": "cancel"}], "proceed-once", True),
        ("reject", [{"optionId": "yes"}, {"optionId": "DENY"}], "DENY", True),
        ("always", [{"optionId": "always", "kind": "new_kind"}], "always", True),
    ],
)
def test_a_reply_maps_by_kind_then_id_then_the_closest(
    reply: Grant, offered: Any, expected: str, has_fallback: bool
) -> None:
    choice = choose_option(offered, reply)
    assert choice is not None
    assert choice.option_id == expected
    assert (choice.fallback is not None) == has_fallback


def test_an_id_never_overrules_a_kind() -> None:
    trap = [{"optionId": "reject", "kind": "allow_always"}, {"optionId": "allow", "kind": "reject_once"}]
    choice = choose_option(trap, "reject")
    assert choice is not None
    assert choice.option_id == "allow"
    assert choose_option(trap, "once") is None


def test_once_never_becomes_always() -> None:
    assert choose_option(options("allow_always", "reject_once"), "once") is None


def test_an_allow_policy_takes_always_when_nothing_else_is_offered_and_says_so() -> None:
    answer = answered(parse_policy("allow").decide(asking("read", options("allow_always", "reject_once"))))
    assert answer.outcome["optionId"] == "id-allow_always"
    assert answer.result["_meta"]["sandboxagent.dev"]["fallback"] == (
        "allow_always in place of allow_once, which was not offered"
    )


@pytest.mark.parametrize("offered", [[], None, options("allow_once"), [{"kind": "reject_once"}], ["reject"]])
def test_nothing_that_fits_is_a_cancelled_outcome_with_the_reason(offered: Any) -> None:
    answer = answered(parse_policy("reject").decide(asking("edit", offered)))
    assert answer.outcome == {"outcome": "cancelled"}
    assert answer.fallback == "cancelled: no option offered fits 'reject'"


@settings(max_examples=150, deadline=None)
@given(json_values, json_values)
def test_any_request_is_decided(call: Any, offered: Any) -> None:
    for policy in NAMED_POLICIES.values():
        policy.decide({"toolCall": call, "options": offered})
        policy.decide(call)
    assert all(policy.rules.keys() <= TOOL_KINDS for policy in NAMED_POLICIES.values())
