"""Every promise that users read has an id and a test that names it, and no test names one that nobody makes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.samples import ROOT

PAGE = ROOT / "docs" / "promises.md"
ELSEWHERE = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page != PAGE)]
_MARK = re.compile(r"<!-- (P-[a-z]+-\d+) -->")
_ID = re.compile(r"P-[a-z]+-\d+")


def promised() -> list[str]:
    return re.findall(r"^\| (P-[a-z]+-\d+) \| ", PAGE.read_text(), re.MULTILINE)


def marked() -> dict[str, set[str]]:
    """Ids in the sentences of other pages, by page."""
    return {page.name: set(_MARK.findall(page.read_text())) for page in ELSEWHERE}


@cache
def kept() -> dict[str, list[str]]:
    """The tests that name each promise."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for test, promise in _markers(path):
            found.setdefault(promise, []).append(f"{path.name}::{test}")
    return found


def _markers(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.promise":
                    for argument in decorator.args:
                        yield node.name, str(ast.literal_eval(argument))


def test_each_promise_has_one_id() -> None:
    assert len(promised()) == len(set(promised())) > 50
    assert set(promised()) == set(_ID.findall(PAGE.read_text())), "an id that is no row of a table"


def test_every_promise_is_kept_by_a_test() -> None:
    assert sorted(set(promised()) - kept().keys()) == []


def test_no_test_keeps_a_promise_that_nobody_makes() -> None:
    made = promised()
    assert {promise: tests for promise, tests in kept().items() if promise not in made} == {}


def test_every_promise_is_made_on_a_page_that_users_read_and_every_mark_is_a_promise() -> None:
    everywhere = set().union(*marked().values())
    assert everywhere == set(promised())


def test_a_promise_is_made_on_the_page_that_the_list_links_to() -> None:
    marks = marked()
    for promise, page in re.findall(r"^\| (P-\S+) \| .* \| \[[^]]+\]\((\S+)\) \|$", PAGE.read_text(), re.MULTILINE):
        assert promise in marks[Path(page).name], (promise, page)


def _parts(page: str, after: str, before: str, part: str) -> list[str]:
    section = (ROOT / page).read_text().partition(after)[2].partition(before)[0]
    return re.findall(part, section, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("page", "after", "before", "part"),
    [
        ("README.md", "history in SQLite or PostgreSQL\n```", "## Installation", r"^- \*\*.*?(?=^- |\Z)"),
        ("docs/security.md", "## Guarantees", "**Not guaranteed:**", r"^- .*?$"),
        ("docs/sessions.md", "## Failures and restarts", "While the disk", r"^\| The .*?$"),
    ],
)
def test_each_sentence_of_a_list_of_promises_carries_an_id(page: str, after: str, before: str, part: str) -> None:
    found = _parts(page, after, before, part)
    assert len(found) > 3
    assert [one for one in found if not _MARK.search(one)] == []
