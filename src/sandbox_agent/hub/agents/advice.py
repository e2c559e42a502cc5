"""What to do about an agent's error that says what is wrong, but not what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sandbox_agent.errors import hint_in


def with_hint(error: dict[str, Any], advice: Mapping[str, str]) -> dict[str, Any]:
    """The error with `data.hint` added, if it contains one of the words in `advice` and has no hint of its own."""
    if not advice or hint_in(error) is not None:
        return error
    said = msgspec.json.encode([error.get("message"), error.get("data")]).decode()
    hint = next((hint for words, hint in advice.items() if words in said), None)
    if hint is None:
        return error
    data = error.get("data")
    own = data if isinstance(data, dict) else {} if data is None else {"details": data}
    return {**error, "data": {**own, "hint": hint}}
