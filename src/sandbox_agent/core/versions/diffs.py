"""A diff: two texts of one file in version 1, changes of files with a Git patch in version 2."""

from __future__ import annotations

import re

from sandbox_agent.core.versions.pairs import Custom, with_kept
from sandbox_agent.core.versions.patches import Texts, git_patch, read_patch
from sandbox_agent.core.versions.version import Object, Version

_V1_MEMBERS = ("path", "oldText", "newText")
_V2_MEMBERS = ("changes", "patch")
_SECTION = re.compile(r"^(?=diff --git )", re.MULTILINE)


def text_content(text: str) -> Object:
    """Text as the content of a tool call."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def further_diffs(diff: Object) -> list[Object]:
    """What version 1 shows of a version 2 diff after its first change, which `DIFF` gives."""
    shown = _shown_changes(diff)
    return [with_kept(item, None, Version.V2) for item in shown[1:]]


def _up(diff: Object, is_exact: bool) -> Object:
    path, old, new = diff.get("path"), diff.get("oldText"), diff.get("newText")
    if not isinstance(path, str) or not isinstance(new, str) or not (old is None or isinstance(old, str)):
        return diff
    change = {"operation": "add" if old is None else "modify", "path": path, "fileType": "text"}
    there = {name: member for name, member in diff.items() if name not in _V1_MEMBERS}
    patch = {"format": "git_patch", "text": git_patch(Texts(path, old, new))}
    return {**there, "changes": [change], "patch": patch}


def _down(diff: Object, is_exact: bool) -> Object:
    shown = _shown_changes(diff)
    if not shown:
        return diff
    return {**{name: member for name, member in diff.items() if name not in _V2_MEMBERS}, **shown[0]}


DIFF = Custom(up=_up, down=_down)


def _shown_changes(diff: Object) -> list[Object]:
    """Each change as a version 1 diff, or as text where there are no texts to compare. Empty if it is no diff."""
    changes, patch = diff.get("changes"), diff.get("patch")
    if not isinstance(changes, list) or not all(isinstance(change, dict) for change in changes):
        return []
    text = patch.get("text") if isinstance(patch, dict) else None
    if not isinstance(patch, dict) or not isinstance(text, str):
        return [_named_change(change) for change in changes] or [text_content("[no changes]")]
    sections = _SECTION.split(text)[1:]
    if patch.get("format") != "git_patch" or not sections or len(sections) != len(changes):
        return [text_content(text)]
    return [_shown_change(change, section) for change, section in zip(changes, sections, strict=True)]


def _shown_change(change: Object, section: str) -> Object:
    path = change.get("path")
    if not isinstance(path, str):
        return text_content(section)
    texts = read_patch(section, path, is_new=change.get("operation") == "add")
    if texts is None:
        return text_content(section)
    return {"type": "diff", "path": texts.path, "oldText": texts.old, "newText": texts.new}


def _named_change(change: Object) -> Object:
    names = [change.get(name) for name in ("operation", "oldPath", "path")]
    return text_content(" ".join(str(name) for name in names if isinstance(name, str)) or "[change]")
