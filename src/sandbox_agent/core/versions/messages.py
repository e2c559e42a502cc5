"""Requests, notifications and answers in the other version. Updates are in `updates`, `initialize` in `handshake`."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.versions.calls import ASKS, CALLS, LOAD, Call
from sandbox_agent.core.versions.choices import (
    PLAIN,
    SESSION_ANSWER,
    Plain,
    mode_option,
    option_id,
    v2_options,
)
from sandbox_agent.core.versions.version import Object, Version

_SET_OPTION = "session/set_config_option"
_BY_METHOD = {
    Version.V2: {call.v1: call for call in CALLS},
    Version.V1: {call.v2: call for call in CALLS},
}
_ASKS = {call.v1: call for call in ASKS}


def request(method: str, params: Any, *, from_: Version, to: Version, known: Object | None = None) -> tuple[str, Any]:
    """A client's request or notification as an agent of version `to` expects it: method and params.

    `known` is what the session's agent offers, in the agent's own spelling (`modes`, `models`, `configOptions` of its
    answers): it says whether a mode is set with `session/set_mode` or as a config option.
    `session/load` and `session/resume` with `replayFrom` are one another. Methods without a counterpart pass unchanged,
    so that the agent refuses them itself."""
    if from_ is to:
        return method, params
    if to is Version.V2 and method == "session/load":
        return "session/resume", LOAD.read(params, to)
    if to is Version.V1 and method == "session/resume" and _replays(params):
        return "session/load", LOAD.read(params, to)
    chosen = _choice(method, as_object(params), to, known or {})
    if chosen is not None:
        return chosen
    call = _BY_METHOD[to].get(method)
    if call is None:
        return method, params
    return _name(call, to), call.params.read(params, to)


def result(
    method: str, result: Any, *, from_: Version, to: Version, asked: Any = None, known: Object | None = None
) -> Any:
    """An agent's answer as a client of version `to` expects it.

    `method` and `asked` are the client's method and params as the client spelled them; `known` as in `request`. An
    answer to `session/prompt` is not here: the versions end a turn differently, see `turns` and
    `UpdateTranslator.prompt_ended`."""
    if from_ is to:
        return result
    if method == "session/load":
        return SESSION_ANSWER.read(result, to)
    if any(method == plain.method for plain in PLAIN):
        return {}  # it went out as an option, whose answer lists all of them
    if to is Version.V2 and method == _SET_OPTION and not isinstance(as_object(result).get("configOptions"), list):
        return {**as_object(result), "configOptions": _options_after(as_object(asked), known or {})}
    call = _BY_METHOD[from_].get(method)
    return result if call is None else call.answer.read(result, to)


def ask(method: str, params: Any, *, from_: Version, to: Version) -> tuple[str, Any]:
    """An agent's request or notification (other than `session/update`) as a client of version `to` expects it."""
    call = _ASKS.get(method)
    return method, params if call is None or from_ is to else call.params.read(params, to)


def ask_result(method: str, result: Any, *, from_: Version, to: Version) -> Any:
    """A client's answer to an agent's request as an agent of version `to` expects it."""
    call = _ASKS.get(method)
    return result if call is None or from_ is to else call.answer.read(result, to)


def _name(call: Call, version: Version) -> str:
    return call.v1 if version is Version.V1 else call.v2


def _replays(params: Any) -> bool:
    return as_object(as_object(params).get("replayFrom")).get("type") == "start"


def _choice(method: str, params: Object, to: Version, known: Object) -> tuple[str, Object] | None:
    """Setting a mode or a model, where the versions spell it differently."""
    for plain in PLAIN:
        if to is Version.V2 and method == plain.method:
            option = mode_option(known.get("configOptions"), plain.option)
            rest = {name: member for name, member in params.items() if name != plain.value}
            chosen = {
                "configId": option_id(option or {}) or plain.option,
                "type": "id",
                "value": params.get(plain.value),
            }
            return _SET_OPTION, {**rest, **chosen}
        if to is Version.V1 and method == _SET_OPTION and _is_plain(plain, params, known):
            rest = {name: member for name, member in params.items() if name not in ("configId", "type", "value")}
            return plain.method, {**rest, plain.value: params.get("value")}
    return None


def _is_plain(plain: Plain, params: Object, known: Object) -> bool:
    """Whether an option is one that we made up for this agent, which knows it as a mode or a model."""
    is_made = plain.member in known and mode_option(known.get("configOptions"), plain.option) is None
    return is_made and params.get("configId") == plain.option


def _options_after(asked: Object, known: Object) -> list[Any]:
    options = v2_options(known) or []
    chosen, value = asked.get("configId"), asked.get("value")
    return [
        {**option, "currentValue": value} if isinstance(option, dict) and option_id(option) == chosen else option
        for option in options
    ]
