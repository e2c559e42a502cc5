"""The table of updates: what each kind of `session/update` reads as in the other version."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.versions.choices import OPTIONS
from sandbox_agent.core.versions.contents import BLOCK, BLOCKS, TOOL_CONTENTS, is_same_content
from sandbox_agent.core.versions.pairs import Closed, Custom, Each, Field, Reading, Record
from sandbox_agent.core.versions.version import Object, Version

MAIN_PLAN = "main"
"""The id that version 1's only plan has in version 2."""

_TOOL_KINDS = "read edit delete move search execute think fetch switch_mode other"
_TOOL_STATUSES = "pending in_progress completed failed"


class _Line:
    """The number of a line, from 1 on. Some agents of version 1 count from 0, which version 2 does not allow."""

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        return None if to is Version.V2 and value == 0 else value


_TOOL_FIELDS = (
    Field("kind", reading=Closed(_TOOL_KINDS, otherwise="other")),
    Field(
        "status",
        reading=Closed(
            _TOOL_STATUSES,
            nearest={"paused": "in_progress", "cancelled": "failed"},
            otherwise="in_progress",
        ),
    ),
    Field("content", reading=TOOL_CONTENTS),
    Field("locations", reading=Each(Record(Field("line", reading=_Line())))),
)


def tool_title(call: Object) -> str:
    """A title for a tool call that came without one: version 1 requires it of a new call."""
    name = call.get("name")
    return name if isinstance(name, str) and name else "Tool call"


class _Announced(Record):
    """A tool call that is new: `tool_call` in version 1, an ordinary `tool_call_update` in version 2."""

    def plain(self, value: Object, to: Version, *, is_exact: bool) -> Object:
        kind = "tool_call" if to is Version.V1 else "tool_call_update"
        return {**super().plain(value, to, is_exact=is_exact), "sessionUpdate": kind}


TOOL_CALL_UPDATE = Record(*_TOOL_FIELDS)
TOOL_CALL = _Announced(
    *_TOOL_FIELDS,
    Field("title", v1_needs=tool_title),
    v1_bare=("title", "kind", "status", "content", "locations"),
)

_KNOWN_KINDS, _KNOWN_STATUSES = frozenset(_TOOL_KINDS.split()), frozenset(_TOOL_STATUSES.split())


def is_same_call(update: Object) -> bool:
    """Whether both versions surely write an update of a tool call alike, but for what they call it.

    Streams consist of such updates, which then cost no more than this look."""
    if "_meta" in update:
        return False
    if "title" in update and not isinstance(update["title"], str):
        return False
    if "locations" in update and not _are_same_places(update["locations"]):
        return False
    kind, status, content = update.get("kind", "other"), update.get("status", "pending"), update.get("content", ())
    if not isinstance(kind, str) or not isinstance(status, str) or not isinstance(content, list | tuple):
        return False
    return kind in _KNOWN_KINDS and status in _KNOWN_STATUSES and all(map(is_same_content, content))


def _are_same_places(locations: Any) -> bool:
    if not isinstance(locations, list):
        return False
    return all(isinstance(one, dict) and "_meta" not in one and one.get("line") != 0 for one in locations)


PLAN_ENTRY = Record(
    Field("priority", reading=Closed("high medium low", otherwise="medium")),
    Field(
        "status",
        reading=Closed("pending in_progress completed", nearest={"cancelled": "completed"}, otherwise="pending"),
    ),
)
_ENTRIES = Each(PLAN_ENTRY)


def _plan_up(update: Object, is_exact: bool) -> Object:
    if update.get("sessionUpdate") != "plan":
        return update
    there = {name: member for name, member in update.items() if name != "entries"}
    plan: Object = {"type": "items", "planId": MAIN_PLAN}
    if "entries" in update:
        plan["entries"] = _ENTRIES.read(update["entries"], Version.V2, is_exact=is_exact)
    return {**there, "sessionUpdate": "plan_update", "plan": plan}


def _plan_down(update: Object, is_exact: bool) -> Object:
    plan = as_object(update.get("plan"))
    there = {name: member for name, member in update.items() if name not in ("plan", "planId")}
    there["sessionUpdate"] = "plan"
    if "entries" in plan:
        there["entries"] = _ENTRIES.read(plan["entries"], Version.V1, is_exact=is_exact)
    else:
        text = plan.get("content", plan.get("uri"))
        entry = {"content": text, "priority": "medium", "status": "pending"}
        there["entries"] = [entry] if isinstance(text, str) else []
    return there


PLAN = Custom(up=_plan_up, down=_plan_down)

COMMAND = Record(
    Field("input", reading=Record(Field("hint", v1_needs=""), v2_says={"type": "text"})),
    v2_says={"type": "command"},
)
COMMANDS = Each(COMMAND)

CHUNK = Record(Field("content", reading=BLOCK))
_BLOCKS = Record(Field("content", reading=BLOCKS))
_SAME_KIND: dict[str, Reading] = {
    "user_message_chunk": CHUNK,
    "agent_message_chunk": CHUNK,
    "agent_thought_chunk": CHUNK,
    "available_commands_update": Record(Field("availableCommands", reading=COMMANDS)),
    "config_option_update": Record(Field("configOptions", reading=OPTIONS)),
    "session_info_update": Record(),
    "usage_update": Record(),
    "notice": Record(),
    "compaction_update": Record(Field("summary", reading=BLOCKS)),
    "compaction_summary_chunk": CHUNK,
    "subagent_update": Record(),
    "session_message": _BLOCKS,
    "session_message_chunk": CHUNK,
    "tool_call_update": TOOL_CALL_UPDATE,
}
KINDS: dict[Version, dict[str, Reading]] = {
    Version.V1: {**_SAME_KIND, "plan_update": PLAN, "plan_removed": PLAN},
    Version.V2: {**_SAME_KIND, "plan": PLAN, "plan_update": PLAN, "plan_removed": PLAN, "tool_call": TOOL_CALL},
}
"""By the version that is read *to*: the kinds of the other version that have a counterpart there."""

V2_ONLY = frozenset(
    "user_message agent_message agent_thought state_update tool_call_content_chunk terminal_update "
    "terminal_output_chunk".split()
)
"""Kinds that version 1 has no word for: they are told as other kinds, or kept in an empty `session_info_update`."""
