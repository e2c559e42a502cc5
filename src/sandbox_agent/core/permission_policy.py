"""Who decides on an agent's permission request: a rule of the session, or a person.

Rules go by the tool's kind, never by its title, which the agent words as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from sandbox_agent.core.frames import META
from sandbox_agent.core.json_values import as_list, as_object
from sandbox_agent.errors import InvalidParams

Rule = Literal["ask", "allow", "reject"]
Grant = Literal["once", "always", "reject"]

RULES: tuple[str, ...] = get_args(Rule)
TOOL_KINDS = frozenset(
    {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
)


class AskPerson(msgspec.Struct, frozen=True):
    """Nobody has decided yet: put it to the clients."""

    reason: str


class Decided(msgspec.Struct, frozen=True):
    """An answer made in place of a person. `fallback` says how it strays from what was wanted."""

    outcome: dict[str, str]
    reason: str
    fallback: str | None = None

    @property
    def result(self) -> dict[str, Any]:
        """The `result` member of the JSON-RPC answer, with the reason under `_meta`."""
        meta: dict[str, Any] = {"automatic": True, "reason": self.reason}
        if self.fallback is not None:
            meta["fallback"] = self.fallback
        return {"outcome": self.outcome, "_meta": {META: meta}}


class Choice(NamedTuple):
    option_id: str
    fallback: str | None


class PermissionPolicy(msgspec.Struct, frozen=True):
    """`rules` maps tool kinds to verdicts; `default` holds for the rest."""

    default: Rule = "ask"
    rules: dict[str, Rule] = {}

    def rule_for(self, kind: str) -> Rule:
        return self.rules.get(kind if kind in TOOL_KINDS else "other", self.default)

    def decide(self, params: Any, *, known_kind: str | None = None) -> AskPerson | Decided:
        """Decide on the params of a `session/request_permission`.

        `known_kind` is what an earlier `tool_call` gave, for agents that send only the call's id here."""
        params = as_object(params)
        kind = as_object(params.get("toolCall")).get("kind")
        if not isinstance(kind, str) or not kind:
            kind = known_kind or "other"
        verdict = self.rule_for(kind)
        rule = f"policy: {verdict} for tools of kind {kind!r}"
        if verdict == "ask":
            return AskPerson(rule)
        return _answer(params, ("once", "always") if verdict == "allow" else ("reject",), rule)


ASK = PermissionPolicy()

NAMED_POLICIES: Mapping[str, PermissionPolicy] = {
    "ask": ASK,
    "allow": PermissionPolicy("allow"),
    "reject": PermissionPolicy("reject"),
    "default": PermissionPolicy("ask"),
    "acceptEdits": PermissionPolicy("ask", {"edit": "allow"}),
    "plan": PermissionPolicy("ask", {"edit": "reject", "delete": "reject", "move": "reject", "execute": "reject"}),
    "bypass": PermissionPolicy("allow"),
    "bypassPermissions": PermissionPolicy("allow"),
    "dontAsk": PermissionPolicy("reject"),
}
"""Our own names, then those of the old `permissionMode` and of the agents that it was handed to."""


def parse_policy(value: Any, *, field: str = "permissionMode") -> PermissionPolicy:
    """A policy from a name or from an object of verdicts by tool kind, with `default`. Raises InvalidParams.

    The kinds may also stand one level down, under `rules`."""
    if isinstance(value, str):
        policy = NAMED_POLICIES.get(value)
        if policy is None:
            known = ", ".join(NAMED_POLICIES)
            raise InvalidParams(f"{field}: unknown policy {value!r}; known: {known}", field=field)
        return policy
    if not isinstance(value, Mapping):
        raise InvalidParams(f"{field}: must be a name or an object of rules by tool kind", field=field)
    given = dict(value)
    nested = given.pop("rules", {})
    if not isinstance(nested, Mapping):
        raise InvalidParams(f"{field}.rules: must be an object", field=f"{field}.rules")
    given.update(nested)
    for kind, verdict in given.items():
        where = f"{field}.{kind}"
        if kind != "default" and kind not in TOOL_KINDS:
            known = ", ".join(sorted(TOOL_KINDS))
            raise InvalidParams(f"{where}: no such tool kind; known: default, {known}", field=where)
        if not isinstance(verdict, str) or verdict not in RULES:
            raise InvalidParams(f"{where}: must be ask, allow or reject, not {verdict!r}", field=where)
    default = given.pop("default", "ask")
    return PermissionPolicy(default, given)


def choose_option(options: Any, reply: Grant) -> Choice | None:
    """The offered option that fits a reply: by its kind, then by its id, then the closest on the safe side.

    `always` may become once and `reject` may become for good, each with a note. `once` never becomes always:
    that would grant more than was said. None when nothing fits."""
    offered = [o for o in map(as_object, as_list(options)) if isinstance(o.get("optionId"), str)]
    wanted, closest = _KINDS[reply]
    for option in offered:
        if option.get("kind") == wanted:
            return Choice(option["optionId"], None)
    for option in offered:
        has_kind = option.get("kind") in _ALL_KINDS
        if not has_kind and _normal(option["optionId"]) in _IDS[reply]:
            return Choice(option["optionId"], f"chosen by its id: no option of kind {wanted} was offered")
    for option in offered:
        if closest is not None and option.get("kind") == closest:
            return Choice(option["optionId"], f"{closest} in place of {wanted}, which was not offered")
    return None


def timed_out(params: Any) -> Decided:
    """The answer when nobody was there to give one."""
    return _answer(as_object(params), ("reject",), "nobody answered in time")


def _answer(params: dict[str, Any], replies: tuple[Grant, ...], reason: str) -> Decided:
    for reply in replies:
        choice = choose_option(params.get("options"), reply)
        if choice is None:
            continue
        fallback = choice.fallback
        if reply != replies[0]:
            fallback = f"{_KINDS[reply][0]} in place of {_KINDS[replies[0]][0]}, which was not offered"
        outcome = {"outcome": "selected", "optionId": choice.option_id}
        return Decided(outcome, reason, fallback)
    note = f"cancelled: no option offered fits {replies[0]!r}"
    return Decided({"outcome": "cancelled"}, reason, note)


def _normal(option_id: str) -> str:
    return option_id.lower().replace("-", "_")


_KINDS: Mapping[Grant, tuple[str, str | None]] = {
    "once": ("allow_once", None),
    "always": ("allow_always", "allow_once"),
    "reject": ("reject_once", "reject_always"),
}
_ALL_KINDS = frozenset({"allow_once", "allow_always", "reject_once", "reject_always"})
_IDS: Mapping[Grant, frozenset[str]] = {
    "once": frozenset({"once", "allow_once", "allow", "accept", "approve", "approved", "yes", "proceed_once"}),
    "always": frozenset({"always", "allow_always", "accept_for_session", "approved_for_session", "proceed_always"}),
    "reject": frozenset({"reject", "reject_once", "deny", "denied", "decline", "no", "abort", "cancel"}),
}
