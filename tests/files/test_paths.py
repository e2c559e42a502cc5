from __future__ import annotations

import os
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_agent.errors import Forbidden, InvalidParams, SandboxAgentError
from sandbox_agent.files.paths import Roots, Standing, absolute
from sandbox_agent.files.walk import locate

BASE = PurePath("/work/project")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("a\ud800", "not valid Unicode"),
        ("x" * 256, "256 bytes"),
        ("é" * 128, "256 bytes"),
        ("a/" * 2100, "4200 bytes"),
    ],
    ids=["empty", "NUL", "lone surrogate", "long name", "long name in UTF-8", "long path"],
)
def test_a_bad_path_is_refused_with_the_reason(path: str, words: str) -> None:
    with pytest.raises(InvalidParams, match=words):
        absolute(path, BASE)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/etc//hosts/", "/etc/hosts"),
        ("a/./b", "/work/project/a/b"),
        (".", "/work/project"),
        ("../x", "/work/project/../x"),
        ("%2e%2e/x", "/work/project/%2e%2e/x"),
        ("..%2fx", "/work/project/..%2fx"),
    ],
)
def test_relative_paths_start_at_the_base_and_nothing_is_decoded_twice(path: str, expected: str) -> None:
    assert absolute(path, BASE) == expected


def test_a_path_stands_inside_above_or_outside_the_roots() -> None:
    roots = Roots([(PurePath("/a/b"), PurePath("/a/b"))])
    assert roots.standing(("a", "b", "c")) is Standing.INSIDE
    assert roots.standing(("a", "b")) is Standing.INSIDE
    assert roots.standing(("a",)) is Standing.ABOVE
    assert roots.standing(("a", "bc")) is Standing.OUTSIDE


def test_a_root_may_be_named_as_it_was_configured() -> None:
    roots = Roots([(PurePath("/tmp/link"), PurePath("/private/tmp/real"))])
    assert roots.canonical(("tmp", "link", "x")) == ("private", "tmp", "real", "x")


_names = st.sampled_from(["a", "b", "c", "d"])
_steps = st.lists(st.sampled_from(["a", "b", "c", "d", "..", "."]), min_size=1, max_size=6).map("/".join)
_places = st.lists(_names, min_size=1, max_size=3).map("/".join)
_kinds = st.one_of(
    st.just("file"),
    st.just("directory"),
    st.tuples(st.sampled_from(["relative", "inside", "outside"]), _steps),
)
_trees = st.lists(st.tuples(_places, _kinds), max_size=12)


def _plant(top: Path, tree: list[tuple[str, str | tuple[str, str]]]) -> None:
    (top / "root").mkdir()
    (top / "other").mkdir()
    (top / "other" / "a").write_text("outside")
    for place, kind in tree:
        path = top / "root" / place
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "directory":
                path.mkdir()
            elif kind == "file":
                path.touch(exist_ok=False)
            else:
                start = {"relative": "", "inside": f"{top}/root/", "outside": f"{top}/other/"}[kind[0]]
                path.symlink_to(start + kind[1])
        except (OSError, RuntimeError):
            continue  # the place is taken: the tree is as good without it


def _reached(roots: Roots, path: str) -> str | None:
    """Where the walk leads, if there is anything."""
    with locate(roots, path) as spot:
        return None if spot.status_or_none() is None else "/" + "/".join(spot.real)


@settings(max_examples=200, deadline=None)
@given(tree=_trees, asked=_steps)
def test_without_roots_the_walk_ends_where_the_kernel_ends(
    tree: list[tuple[str, str | tuple[str, str]]], asked: str
) -> None:
    with TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        _plant(top, tree)
        path = f"{top}/root/{asked}"
        try:
            Path(path).stat()
        except OSError:
            try:
                assert _reached(Roots(), path) is None
            except SandboxAgentError:
                pass
        else:
            assert _reached(Roots(), path) == os.path.realpath(path)


@settings(max_examples=300, deadline=None)
@given(tree=_trees, asked=_steps)
def test_with_a_root_the_walk_never_ends_outside_and_else_ends_where_the_kernel_ends(
    tree: list[tuple[str, str | tuple[str, str]]], asked: str
) -> None:
    with TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        _plant(top, tree)
        real_root = str(top / "root")
        path = f"{real_root}/{asked}"
        expected = os.path.realpath(path)
        is_inside = expected == real_root or expected.startswith(f"{real_root}/")
        has_way_out = any(isinstance(kind, tuple) and kind[0] == "outside" for _, kind in tree)
        try:
            reached = _reached(Roots([(top / "root", top / "root")]), path)
        except Forbidden:
            assert not is_inside or has_way_out or ".." in path + str(tree)
        except SandboxAgentError:
            assert not Path(path).exists()
        else:
            if reached is not None:
                assert is_inside
                assert reached == expected
