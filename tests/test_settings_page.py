"""docs/settings.md names every setting with the default that it has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

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
