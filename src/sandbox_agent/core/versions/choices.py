"""What a session offers to choose from, and its answer that tells so: modes, models and config options.

Version 1 has `modes` (and in older agents `models`) beside `configOptions`; version 2 has options alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sandbox_agent.core.json_values import as_list, as_object, as_text
from sandbox_agent.core.versions.pairs import ABSENT, Custom, Each, Field, Record, Tagged
from sandbox_agent.core.versions.version import Object, Version


class Plain(NamedTuple):
    """How version 1 spells a choice that is a config option in version 2."""

    option: str
    """The option's category, and its id where we make it up."""
    name: str
    member: str
    current: str
    listed: str
    choice: str
    """The id of a choice, in the list."""
    method: str
    value: str
    """The id of a choice, in the params of the method."""


PLAIN = (
    Plain("mode", "Mode", "modes", "currentModeId", "availableModes", "id", "session/set_mode", "modeId"),
    Plain("model", "Model", "models", "currentModelId", "availableModels", "modelId", "session/set_model", "modelId"),
)


def _select_of_unknown(option: Object, is_exact: bool) -> Object:
    value = as_text(option.get("currentValue"))
    return {**option, "type": "select", "currentValue": value, "options": [{"value": value, "name": value or "none"}]}


class _Select(Record):
    """Version 2 wants at least one choice, in each group too."""

    def plain(self, value: Object, to: Version, *, is_exact: bool) -> Object:
        there = super().plain(value, to, is_exact=is_exact)
        options = there.get("options")
        if to is Version.V1 or not isinstance(options, list):
            return there
        filled = [entry for entry in options if as_object(entry).get("options") != []]
        current = as_text(there.get("currentValue"))
        return {**there, "options": filled or [{"value": current, "name": current or "none"}]}


_NAMED = Field("id", "configId")
_GROUP = Record(Field("group", "groupId"))
_SELECT = _Select(_NAMED, Field("options", reading=Each(_GROUP)))
_UNKNOWN = Custom(
    up=lambda option, _: {("configId" if name == "id" else name): member for name, member in option.items()},
    down=lambda option, is_exact: _select_of_unknown(
        {("id" if name == "configId" else name): member for name, member in option.items()}, is_exact
    ),
)
OPTION = Tagged("type", {"select": _SELECT, "boolean": Record(_NAMED)}, otherwise=_UNKNOWN)
OPTIONS = Each(OPTION)


def mode_option(options: Any, category: str = "mode") -> Object | None:
    """The option of a category, in a list of either version."""
    return next((o for o in as_list(options) if isinstance(o, dict) and o.get("category") == category), None)


def option_id(option: Object) -> Any:
    return option.get("configId", option.get("id"))


def flat_choices(option: Object) -> Iterator[Object]:
    """The choices of a select, those in groups too."""
    for entry in as_list(option.get("options")):
        if isinstance(entry, dict) and isinstance(entry.get("options"), list):
            yield from (inner for inner in entry["options"] if isinstance(inner, dict))
        elif isinstance(entry, dict):
            yield entry


def option_of(plain: Plain, state: Any) -> Object | None:
    """A version 2 option made of `modes` or `models`; None where there is nothing to choose from."""
    state = as_object(state)
    choices = [_choice(entry, plain.choice) for entry in as_list(state.get(plain.listed)) if isinstance(entry, dict)]
    if not choices or not isinstance(state.get(plain.current), str):
        return None
    return {
        "configId": plain.option,
        "name": plain.name,
        "category": plain.option,
        "type": "select",
        "currentValue": state[plain.current],
        "options": choices,
    }


def plain_of(plain: Plain, option: Object) -> Object:
    """`modes` made of a select."""
    listed = [
        {
            (plain.choice if name == "value" else name): member
            for name, member in choice.items()
            if name in ("value", "name", "description")
        }
        for choice in flat_choices(option)
    ]
    return {plain.current: option.get("currentValue"), plain.listed: listed}


def v2_options(answer: Any) -> list[Any] | None:
    """All options of an answer of version 1, as version 2 lists them; None if it has nothing to choose from."""
    answer = as_object(answer)
    listed = answer.get("configOptions")
    options = OPTIONS.read(listed, Version.V2) if isinstance(listed, list) else []
    made = [option_of(plain, answer.get(plain.member)) for plain in PLAIN if not mode_option(options, plain.option)]
    found = [option for option in made if option is not None] + options
    return found if found or isinstance(listed, list) else None


def with_choice(options: list[Any], category: str, value: Any) -> list[Any]:
    """The options after another choice in the one of this category."""
    chosen = mode_option(options, category)
    return [{**chosen, "currentValue": value} if chosen and option is chosen else option for option in options]


def _choice(entry: Object, key: str) -> Object:
    return {("value" if name == key else name): member for name, member in entry.items()}


def _answer_up(answer: Object, is_exact: bool) -> Object:
    members = {plain.member for plain in PLAIN} | {"configOptions"}
    there = {name: member for name, member in answer.items() if name not in members}
    options = v2_options(answer)
    return there if options is None else {**there, "configOptions": options}


def _answer_down(answer: Object, is_exact: bool) -> Object:
    options = answer.get("configOptions", ABSENT)
    if options is ABSENT:
        return dict(answer)
    there = {**answer, "configOptions": OPTIONS.read(options, Version.V1, is_exact=is_exact)}
    option = mode_option(options)
    if option is not None and option.get("type") == "select":
        there.setdefault("modes", plain_of(PLAIN[0], option))
    return there


SESSION_ANSWER = Custom(up=_answer_up, down=_answer_down)
"""The answer to session/new, load, resume and fork. The mode option is in `modes` too for version 1."""
