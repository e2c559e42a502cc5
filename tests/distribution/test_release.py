"""What `make release-check` looks at before it builds anything."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from sandbox_agent.version import __version__

ROOT = Path(__file__).parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = _load()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that have the version in them, as a repository of their own, released as 7.8.9."""
    for place in (*release.PLACES, release.CHANGELOG):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    changelog = tmp_path / release.CHANGELOG
    changelog.write_text(f"# Changelog\n\n## [Unreleased]\n\n### Added\n- something\n\n{changelog.read_text()[-200:]}")
    git(tmp_path, "init", "--quiet")
    release.set_version(tmp_path, "7.8.9", "2026-11-18")
    commit(tmp_path)
    return tmp_path


def git(where: Path, *words: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=where, check=True, capture_output=True)


def commit(where: Path) -> None:
    git(where, "add", "-A")
    git(where, "commit", "--quiet", "-m", "a change")


def test_the_version_is_the_same_wherever_it_stands() -> None:
    said = {version for versions in release.versions(ROOT).values() for version in versions}
    assert said == {__version__}
    assert all(len(release.versions(ROOT)[place]) == times for place, (_, times) in release.PLACES.items())


def _edit(copy: Path, place: str, old: str, new: str) -> None:
    text = (copy / place).read_text()
    assert old in text
    (copy / place).write_text(text.replace(old, new))
    commit(copy)


def _tag_and_go_on(copy: Path) -> None:
    git(copy, "tag", "v7.8.9")
    _edit(copy, "CHANGELOG.md", "something", "more")


def test_a_version_that_was_written_everywhere_is_ready(copy: Path) -> None:
    assert list(release.problems(copy)) == []
    assert "## [Unreleased]\n\n## [7.8.9] - 2026-11-18\n" in (copy / release.CHANGELOG).read_text()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda copy: (copy / "new.txt").write_text("x"), "not committed"),
        (lambda copy: _edit(copy, "sdks/typescript/package.json", "7.8.9", "7.8.8"), "package.json says 7.8.8"),
        (lambda copy: _edit(copy, "sdks/typescript/src/connection.ts", "7.8.9", "7.8.8"), "connection.ts says 7.8.8"),
        (lambda copy: _edit(copy, "CHANGELOG.md", "## [7.8.9] - 2026-11-18", ""), "not 7.8.9"),
        (lambda copy: _edit(copy, "CHANGELOG.md", "## [Unreleased]", "## [Unreleased]\n\n- new"), "unreleased changes"),
        (_tag_and_go_on, "is taken"),
    ],
)
def test_what_stands_in_the_way_of_a_release_is_said(copy: Path, spoil: Callable[[Path], object], said: str) -> None:
    spoil(copy)
    assert any(said in problem for problem in release.problems(copy))


def test_the_changelog_is_well_formed() -> None:
    text = (ROOT / release.CHANGELOG).read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert sections[0].startswith("[Unreleased]\n")
    titles = [section.partition("\n")[0] for section in sections[1:]]
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", title) for title in titles), titles
    dates = [title[-10:] for title in titles]
    assert dates == sorted(dates, reverse=True)
    for section in sections:
        headings = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert len(headings) == len(set(headings)), headings
        assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    entries = re.findall(r"^- (.+)$", text, re.MULTILINE)
    assert [entry for entry in entries if entries.count(entry) > 1] == []


@pytest.mark.parametrize("wrong", ["0.2", "v0.2.0", "", "1.2.3\n"])
def test_what_is_no_version_is_refused(copy: Path, wrong: str) -> None:
    with pytest.raises(SystemExit, match="no version"):
        release.set_version(copy, wrong, "2026-11-18")
