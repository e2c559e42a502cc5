from __future__ import annotations

from sandbox_agent.history.diffs import COMPARED_LINES, unified_diff


def test_only_changed_lines_and_their_surroundings_are_shown() -> None:
    old = "".join(f"{n}\n" for n in range(20))
    assert unified_diff("/a", old, old.replace("10\n", "ten\n")) == (
        "--- /a\n+++ /a\n@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13"
    )


def test_nothing_changed_is_an_empty_diff() -> None:
    assert unified_diff("/a", "x", "x") == ""


def test_a_path_cannot_add_lines_to_the_diff() -> None:
    assert unified_diff("/a\n+++ /b", None, "x").split("\n")[1] == "+++ /a +++ /b"


def test_a_large_change_is_shown_whole_instead_of_being_searched_for() -> None:
    old, new = "a\n" * COMPARED_LINES, "b\n" * COMPARED_LINES
    lines = unified_diff("/a", old, new).split("\n")
    assert lines[2] == f"@@ -1,{COMPARED_LINES} +1,{COMPARED_LINES} @@"
    assert lines[3:] == ["-a"] * COMPARED_LINES + ["+b"] * COMPARED_LINES
