"""Texts and patches are one another, at a linear cost."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core.versions import UpdateTranslator, Version
from sandbox_agent.core.versions.patches import Texts, git_patch, read_patch

_lines = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "-x\n", "+y\n", " z\n", "\\ no\n", "diff --git q\n", "c"]), max_size=6
)
_texts = _lines.map("".join)


@given(st.none() | _texts, _texts)
def test_texts_can_be_read_out_of_their_patch(old: str | None, new: str) -> None:
    texts = Texts("/a b/ü.txt", old, new)
    assert read_patch(git_patch(texts), texts.path, is_new=old is None) == texts


def test_git_applies_the_patch(tmp_path: Path) -> None:
    old, new = "one\ntwo\nthree", "one\n2\nthree\nfour\n"
    path = tmp_path / "file.txt"
    path.write_text(old)
    patch = git_patch(Texts("file.txt", old, new))
    subprocess.run(["git", "apply", "-p0", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    assert path.read_text() == new


def test_a_patch_of_several_files_is_several_diffs_for_version_1() -> None:
    patch = git_patch(Texts("/a", "x\n", "y\n")) + git_patch(Texts("/b", None, "new\n"))
    changes = [{"operation": "modify", "path": "/a"}, {"operation": "add", "path": "/b"}]
    diff = {"type": "diff", "changes": changes, "patch": {"format": "git_patch", "text": patch}}
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "T", "content": [diff]}
    down = UpdateTranslator("s", from_=Version.V2, to=Version.V1)
    [line] = down.update({"sessionId": "s", "update": update})
    shown = [{name: item[name] for name in ("path", "oldText", "newText")} for item in line["update"]["content"]]
    assert shown == [
        {"path": "/a", "oldText": "x\n", "newText": "y\n"},
        {"path": "/b", "oldText": None, "newText": "new\n"},
    ]
    up = UpdateTranslator("s", from_=Version.V1, to=Version.V2)
    assert up.update(line) == [{"sessionId": "s", "update": update}]


def test_a_change_without_texts_is_named_to_version_1() -> None:
    diff = {"type": "diff", "changes": [{"operation": "move", "oldPath": "/a", "path": "/b"}]}
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "T", "content": [diff]}
    [line] = UpdateTranslator("s", from_=Version.V2, to=Version.V1).update({"sessionId": "s", "update": update})
    assert line["update"]["content"][0]["content"] == {"type": "text", "text": "move /a /b"}
