"""Sessions as OpenCode describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sandbox_agent.core.json_values import as_object, as_text
from sandbox_agent.history.opencode.changes import FileChanges
from sandbox_agent.history.opencode.fold import DEFAULT_MODEL
from sandbox_agent.history.opencode.ids import session_id
from sandbox_agent.history.opencode.infos import SessionView
from sandbox_agent.history.opencode.telling import milliseconds
from sandbox_agent.history.opencode.tools import Edit
from sandbox_agent.history.opencode.turn import Usage
from sandbox_agent.store.base import SessionRecord

VERSION = "1.18.33"
"""The version of OpenCode whose protocol this is."""
PROJECT = "global"
ARCHIVED = "archived"
"""A session that was put away has this in its metadata, as in the inspector."""
ARCHIVED_AT = "archivedAt"
PARENT = "opencodeParentID"
"""In a session's metadata: the id of the session that an OpenCode client has made it a child of."""


def id_of(record: SessionRecord) -> str:
    return session_id(record.key, record.created)


def view_of(record: SessionRecord, directory: str) -> SessionView:
    """How the record's history is to be folded; `directory` is where sessions are that have none."""
    return SessionView(id_of(record), record.key.stream, record.agent, record.cwd or directory)


def title_of(record: SessionRecord) -> str:
    return record.title or record.first_prompt or f"New session - {record.agent}"


def describe(record: SessionRecord, directory: str) -> dict[str, Any]:
    """OpenCode's Session."""
    time: dict[str, Any] = {"created": milliseconds(record.created), "updated": milliseconds(record.updated)}
    if record.metadata.get(ARCHIVED) is True:
        at = record.metadata.get(ARCHIVED_AT)
        time["archived"] = at if isinstance(at, int | float) else time["updated"]
    usage = Usage()
    usage.update(record.usage)
    told: dict[str, Any] = {
        "id": id_of(record),
        "slug": slug(record),
        "projectID": PROJECT,
        "directory": record.cwd or directory,
        "path": "",
        "title": title_of(record),
        "agent": record.mode or "build",
        "model": {"id": record.model or DEFAULT_MODEL, "providerID": record.agent},
        "version": VERSION,
        "time": time,
        "cost": usage.cost,
        "tokens": usage.tokens(),
    }
    parent = record.metadata.get(PARENT)
    return {**told, "parentID": parent} if isinstance(parent, str) and parent.startswith("ses") else told


def slug(record: SessionRecord) -> str:
    letters = [letter if letter.isalnum() and letter.isascii() else "-" for letter in title_of(record).lower()[:40]]
    return "-".join(part for part in "".join(letters).split("-") if part) or record.agent


def seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def edits_in(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The files that tool calls among the parts have changed."""
    changes = FileChanges()
    for part in parts:
        state = as_object(part.get("state"))
        patch = as_object(state.get("metadata")).get("diff")
        if part.get("tool") == "edit" and state.get("status") == "completed" and isinstance(patch, str):
            changes.add(Edit(as_text(state["input"].get("filePath")), patch, "modified"))
    return changes.listed()
