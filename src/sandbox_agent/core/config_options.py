"""What a session offers to choose from (modes, models, config options), in either spelling of ACP.

Older agents answer `session/new` with `modes` and `models` and take `session/set_mode` and `session/set_model`;
newer ones have `configOptions` with a category and take `session/set_config_option`. Clients may speak either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Category = Literal["mode", "model"]
Offered = dict[str, Any]

_PLAIN: dict[Category, tuple[str, str, str, str, str]] = {
    "mode": ("modes", "currentModeId", "availableModes", "session/set_mode", "modeId"),
    "model": ("models", "currentModelId", "availableModels", "session/set_model", "modelId"),
}
_MEMBERS = ("modes", "models", "configOptions")


def from_answer(result: Any) -> Offered:
    """What there is to choose from in an answer to session/new, load, resume or fork."""
    return {name: result[name] for name in _MEMBERS if isinstance(result, Mapping) and result.get(name) is not None}


def only_options(offered: Offered) -> Offered:
    """Without the older spelling: version 2 of ACP has config options only."""
    return {name: value for name, value in offered.items() if name not in ("modes", "models")}


def with_current_mode(offered: Offered) -> Offered:
    """The same, with the mode in the older spelling as it is chosen in the newer one."""
    mode = current(offered, "mode")
    member, chosen, *_ = _PLAIN["mode"]
    if member not in offered or mode is None:
        return offered
    return {**offered, member: {**_dict(offered[member]), chosen: mode}}


def current(offered: Offered, category: Category) -> str | None:
    """The chosen mode or model."""
    option = _option(offered, category)
    if option is not None and isinstance(option.get("currentValue"), str):
        return str(option["currentValue"])
    member, field, *_ = _PLAIN[category]
    value = _dict(offered.get(member)).get(field)
    return value if isinstance(value, str) else None


def choices(offered: Offered, category: Category) -> list[dict[str, Any]]:
    """What there is to choose from: `{id, name, description?}` each."""
    option = _option(offered, category)
    if option is not None:
        return [_choice(entry, "value") for entry in _flat_options(option)]
    member, _, available, _, field = _PLAIN[category]
    listed = _dict(offered.get(member)).get(available)
    key = field if category == "model" else "id"
    return [_choice(entry, key) for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def choose(offered: Offered, category: Category, value: str) -> tuple[str, dict[str, Any]] | None:
    """The method and params (without sessionId) that set a mode or model; None where there is nothing to set."""
    option = _option(offered, category)
    if option is not None:
        return "session/set_config_option", {"configId": option.get("id"), "value": value}
    member, _, _, method, field = _PLAIN[category]
    return (method, {field: value}) if member in offered else None


def translate(method: str, params: Mapping[str, Any], offered: Offered) -> tuple[str, dict[str, Any]] | None:
    """The same wish in the spelling that this session's agent knows; None to pass the request on as it is.

    An agent may have both spellings with values of their own: then the value decides."""
    for category, (member, _, _, plain, field) in _PLAIN.items():
        option = _option(offered, category)
        if method == plain and option is not None:
            value = params.get(field)
            if member not in offered or (value in _values(option) and value not in _plain_values(offered, category)):
                return "session/set_config_option", {"configId": option.get("id"), "value": value}
        is_plain_only = option is None and member in offered and params.get("configId") in [category, member]
        if method == "session/set_config_option" and is_plain_only:
            return plain, {field: params.get("value")}
    return None


def other_spelling(method: str, params: Mapping[str, Any], offered: Offered) -> tuple[str, dict[str, Any]] | None:
    """The same wish once more, for an agent that offers both spellings and turns out to know only the other."""
    for category, (member, _, _, plain, field) in _PLAIN.items():
        option = _option(offered, category)
        if option is None or member not in offered:
            continue
        if method == plain:
            return "session/set_config_option", {"configId": option.get("id"), "value": params.get(field)}
        if method == "session/set_config_option" and params.get("configId") == option.get("id"):
            return plain, {field: params.get("value")}
    return None


def after_set(offered: Offered, method: str, params: Mapping[str, Any], result: Any) -> Offered:
    """What is offered and chosen once the agent has agreed to a change."""
    if isinstance(result, Mapping) and isinstance(result.get("configOptions"), list):
        return {**offered, "configOptions": result["configOptions"]}
    for category, (member, chosen, _, plain, field) in _PLAIN.items():
        if method == plain:
            return _with_current(offered, category, member, chosen, params.get(field))
    return offered


def after_update(offered: Offered, kind: str, update: Mapping[str, Any]) -> Offered:
    """What is offered and chosen once the agent has told of a change by itself."""
    if kind == "config_option_update" and isinstance(update.get("configOptions"), list):
        return {**offered, "configOptions": update["configOptions"]}
    if kind == "current_mode_update":
        return _with_current(offered, "mode", "modes", "currentModeId", update.get("currentModeId"))
    return offered


def _with_current(offered: Offered, category: Category, member: str, chosen: str, value: Any) -> Offered:
    if not isinstance(value, str):
        return offered
    changed = dict(offered)
    if member in offered:
        changed[member] = {**_dict(offered[member]), chosen: value}
    option = _option(offered, category)
    if option is not None and value in (_values(option) or [value]):  # else the two spellings have values of their own
        changed["configOptions"] = [
            {**other, "currentValue": value} if other is option else other for other in offered["configOptions"]
        ]
    return changed


def _option(offered: Offered, category: Category) -> dict[str, Any] | None:
    options = offered.get("configOptions")
    if not isinstance(options, list):
        return None
    return next((o for o in options if isinstance(o, dict) and o.get("category") == category), None)


def _flat_options(option: dict[str, Any]) -> list[dict[str, Any]]:
    flat: list[dict[str, Any]] = []
    offered = option.get("options")
    for entry in offered if isinstance(offered, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("options"), list):
            flat += [inner for inner in entry["options"] if isinstance(inner, dict)]
        elif isinstance(entry, dict):
            flat.append(entry)
    return flat


def _values(option: dict[str, Any]) -> list[Any]:
    return [entry.get("value") for entry in _flat_options(option)]


def _plain_values(offered: Offered, category: Category) -> list[Any]:
    member = {name: value for name, value in offered.items() if name != "configOptions"}
    return [choice["id"] for choice in choices(member, category)]


def _choice(entry: dict[str, Any], key: str) -> dict[str, Any]:
    chosen = {"id": entry.get(key), "name": entry.get("name")}
    return {**chosen, "description": entry["description"]} if entry.get("description") else chosen


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
