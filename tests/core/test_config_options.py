from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core import config_options
from sandbox_agent.core.config_options import Category

PLAIN: dict[str, Any] = {
    "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]},
    "models": {
        "currentModelId": "big",
        "availableModels": [
            {"modelId": "big", "name": "Big", "description": "slow"},
            {"modelId": "small", "name": "S"},
        ],
    },
}


def option(category: str, current: str, values: list[str]) -> dict[str, Any]:
    offered = [{"value": value, "name": value.title()} for value in values]
    return {"id": f"{category}-id", "category": category, "currentValue": current, "options": offered}


OPTIONS: dict[str, Any] = {
    "configOptions": [
        {"id": "loud", "currentValue": "no"},
        option("mode", "ask", ["ask", "code"]),
        option("model", "big", ["big", "small"]),
    ]
}
CASES: list[tuple[Category, str, str]] = [("mode", "ask", "code"), ("model", "big", "small")]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["modes", "configOptions", "category", "options", "id", "availableModes"]),
            inner,
            max_size=4,
        )
    ),
)


def test_the_setup_is_what_an_answer_offers_and_nothing_else() -> None:
    assert config_options.from_answer({"sessionId": "s", **PLAIN, "configOptions": None}) == PLAIN
    assert config_options.from_answer({"sessionId": "s", **OPTIONS}) == OPTIONS
    assert [config_options.from_answer(result) for result in (None, 5, "x")] == [{}, {}, {}]


@pytest.mark.parametrize("spelling", [PLAIN, OPTIONS])
@pytest.mark.parametrize(("category", "now", "next_"), CASES)
def test_both_spellings_tell_the_choice_and_the_choices(
    spelling: dict[str, Any], category: Category, now: str, next_: str
) -> None:
    assert config_options.current(spelling, category) == now
    assert [choice["id"] for choice in config_options.choices(spelling, category)] == [now, next_]
    assert config_options.current({}, category) is None
    assert config_options.choices({}, category) == []


def test_descriptions_are_kept_and_groups_are_flattened() -> None:
    assert config_options.choices(PLAIN, "model")[0] == {"id": "big", "name": "Big", "description": "slow"}
    inner = [{"value": "x", "name": "X"}, {"value": "y", "name": "Y"}]
    grouped = {"configOptions": [{"id": "m", "category": "model", "options": [{"name": "Group", "options": inner}]}]}
    assert [choice["id"] for choice in config_options.choices(grouped, "model")] == ["x", "y"]


def test_choosing_uses_the_spelling_of_the_agent() -> None:
    assert config_options.choose(PLAIN, "mode", "code") == ("session/set_mode", {"modeId": "code"})
    assert config_options.choose(PLAIN, "model", "small") == ("session/set_model", {"modelId": "small"})
    assert config_options.choose(OPTIONS, "model", "small") == (
        "session/set_config_option",
        {"configId": "model-id", "value": "small"},
    )
    assert config_options.choose({}, "model", "small") is None


def test_a_plain_wish_is_translated_for_an_agent_that_has_only_options() -> None:
    assert config_options.translate("session/set_model", {"sessionId": "s", "modelId": "small"}, OPTIONS) == (
        "session/set_config_option",
        {"configId": "model-id", "value": "small"},
    )
    assert config_options.translate("session/set_mode", {"modeId": "code"}, OPTIONS) == (
        "session/set_config_option",
        {"configId": "mode-id", "value": "code"},
    )


@pytest.mark.parametrize("config_id", ["mode", "modes"])
def test_an_option_is_translated_for_an_agent_that_has_only_the_plain_method(config_id: str) -> None:
    assert config_options.translate("session/set_config_option", {"configId": config_id, "value": "code"}, PLAIN) == (
        "session/set_mode",
        {"modeId": "code"},
    )


def test_what_the_agent_knows_is_passed_on_as_it_is() -> None:
    assert config_options.translate("session/set_mode", {"modeId": "code"}, PLAIN) is None
    assert config_options.translate("session/set_mode", {"modeId": "code"}, {**PLAIN, **OPTIONS}) is None
    assert config_options.translate("session/set_config_option", {"configId": "loud", "value": "yes"}, PLAIN) is None
    assert config_options.translate("session/set_config_option", {"configId": "mode", "value": "x"}, OPTIONS) is None
    assert config_options.translate("session/set_model", {"modelId": "x"}, {}) is None


@pytest.mark.parametrize("spelling", [PLAIN, OPTIONS, {**PLAIN, **OPTIONS}])
@pytest.mark.parametrize(("category", "now", "next_"), CASES)
def test_an_agreed_change_is_the_current_choice(
    spelling: dict[str, Any], category: Category, now: str, next_: str
) -> None:
    changed = config_options.after_set(spelling, f"session/set_{category}", {f"{category}Id": next_}, {})
    assert config_options.current(changed, category) == next_
    assert config_options.current(spelling, category) == now


def test_an_answer_with_options_replaces_them() -> None:
    fresh = [option("model", "small", ["small"])]
    changed = config_options.after_set(
        OPTIONS, "session/set_config_option", {"configId": "x"}, {"configOptions": fresh}
    )
    assert changed == {"configOptions": fresh}
    assert config_options.after_set(OPTIONS, "session/set_config_option", {"configId": "x"}, {}) == OPTIONS


def test_what_the_agent_tells_by_itself_counts() -> None:
    assert (
        config_options.current(
            config_options.after_update(PLAIN, "current_mode_update", {"currentModeId": "code"}), "mode"
        )
        == "code"
    )
    both = config_options.after_update({**PLAIN, **OPTIONS}, "current_mode_update", {"currentModeId": "code"})
    assert both["modes"]["currentModeId"] == config_options.current(both, "mode") == "code"
    fresh = [option("mode", "code", ["code"])]
    assert config_options.after_update(OPTIONS, "config_option_update", {"configOptions": fresh}) == {
        "configOptions": fresh
    }
    assert config_options.after_update(OPTIONS, "config_option_update", {}) == OPTIONS
    assert config_options.after_update(OPTIONS, "plan", {"currentModeId": "x"}) == OPTIONS


@given(anything, anything, st.dictionaries(st.sampled_from(["configId", "value", "modeId"]), anything))
def test_answers_and_wishes_of_any_shape_are_borne(result: Any, update: Any, params: dict[str, Any]) -> None:
    offered = config_options.from_answer(result)
    categories: list[Category] = ["mode", "model"]
    for category in categories:
        config_options.current(offered, category)
        config_options.choices(offered, category)
        config_options.choose(offered, category, "x")
    for method in ("session/set_mode", "session/set_model", "session/set_config_option"):
        config_options.translate(method, params, offered)
        config_options.after_set(offered, method, params, update)
    if isinstance(update, dict):
        for kind in ("current_mode_update", "config_option_update"):
            config_options.after_update(offered, kind, update)


@pytest.mark.parametrize("offered", [5, "text", {"value": "x"}, [5, None]])
def test_options_that_are_no_list_are_no_choice(offered: Any) -> None:
    assert (
        config_options.choices({"configOptions": [{"id": "m", "category": "model", "options": offered}]}, "model") == []
    )


@pytest.mark.parametrize("update", [{}, {"currentModeId": None}, {"currentModeId": 5}])
def test_an_update_without_a_mode_leaves_the_mode_as_it_was(update: dict[str, Any]) -> None:
    assert config_options.after_update(PLAIN, "current_mode_update", update) == PLAIN
