"""The names on the page about ACP versions are those of the table that translates them."""

from __future__ import annotations

import os
from pathlib import Path

from sandbox_agent.core.versions import UpdateTranslator, Version
from sandbox_agent.core.versions.calls import CALLS
from sandbox_agent.core.versions.choices import PLAIN
from sandbox_agent.core.versions.kinds import KINDS, V2_ONLY

PAGE = Path(__file__).parents[2] / "docs" / "acp-versions.md"
BEGIN = "<!-- generated: REGENERATE=1 python -m pytest tests/docs/test_versions_page.py -->\n"
END = "<!-- end -->\n"
_FIELDS = {
    "sessionUpdate": "",
    "toolCallId": "c",
    "title": "T",
    "entries": [],
    "plan": {"entries": []},
    "currentModeId": "m",
}


def generated() -> str:
    methods = [(call.v1, call.v2) for call in CALLS if call.v1 != call.v2]
    methods.append(("session/load", "session/resume with `replayFrom`"))
    methods += [(plain.method, f"session/set_config_option of `{plain.option}`") for plain in PLAIN]
    up = [(kind, _kind(kind, Version.V1, Version.V2)) for kind in ("tool_call", "plan", "current_mode_update")]
    down = [(_kind(kind, Version.V2, Version.V1), kind) for kind in ("plan_removed", *sorted(V2_ONLY))]
    shared = sorted(set(KINDS[Version.V1]) & set(KINDS[Version.V2]) - {"plan_update", "plan_removed"})
    rows = [("method or update in version 1", "in version 2"), ("---", "---"), *_ticked([*methods, *up, *down])]
    table = "\n".join(f"| {old} | {new} |" for old, new in rows)
    return f"{table}\n\nThe same in both: {', '.join(f'`{kind}`' for kind in shared)}.\n"


def _ticked(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(_tick(old), _tick(new)) for old, new in rows]


def _tick(name: str) -> str:
    first, _, rest = name.partition(" ")
    return f"`{first}` {rest}".strip()


def _kind(kind: str, from_: Version, to: Version) -> str:
    translator = UpdateTranslator("s", from_=from_, to=to, is_replay=True)
    option = {"configId": "mode", "category": "mode", "type": "select", "currentValue": "a", "options": []}
    translator.session_opened({"configOptions": [option]})
    blocks = [{"type": "text", "text": "a"}] if kind.startswith(("user", "agent")) else {"type": "content"}
    update = {**_FIELDS, "sessionUpdate": kind, "messageId": "m", "content": blocks, "terminalId": "t"}
    [line] = translator.update({"sessionId": "s", "update": update})
    return str(line["update"]["sessionUpdate"])


def test_the_names_on_the_page_are_those_of_the_table() -> None:
    page = PAGE.read_text("utf-8")
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    made = head + BEGIN + generated() + END + tail
    if os.environ.get("REGENERATE") == "1":
        PAGE.write_text(made, "utf-8")
        page = made
    assert page == made
