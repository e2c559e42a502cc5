"""docs/settings.md names every setting with the default that it has, and nobody else has a default."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox_agent.core.lines import LineSplitter
from sandbox_agent.core.relay import Relay
from sandbox_agent.core.window import Window
from sandbox_agent.files import FileLimits, FileService
from sandbox_agent.http.app import App, AppLimits
from sandbox_agent.hub.agents.options import AgentOptions
from sandbox_agent.hub.hub import Hub, HubOptions
from sandbox_agent.settings import Settings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
IN_WORDS = {"acp_registry_url": "the public index"}


def shown(value: Any) -> str:
    if value is None or value in ((), {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_the_page_names_every_setting_with_its_default() -> None:
    page = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE))
    found: dict[str, str] = {}
    for field in msgspec.structs.fields(Settings):
        if field.name != "environ":  # not a setting: our own environment
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            found[field.name] = IN_WORDS.get(field.name, shown(default))
    assert page == found


@pytest.mark.parametrize(
    "fed", [HubOptions, AgentOptions, FileLimits, AppLimits, Hub, App, FileService, Relay, Window, LineSplitter]
)
def test_nothing_that_a_setting_feeds_has_a_default_of_its_own(fed: type) -> None:
    parameters = inspect.signature(fed).parameters.values()
    assert [each.name for each in parameters if each.default is not inspect.Parameter.empty] == []
