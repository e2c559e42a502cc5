"""What a release needs: one version everywhere, a dated section in the changelog, a clean tree, a tag that is free.

`python tools/release.py check` says what is missing; `python tools/release.py version 0.2.0` writes the version and the
section. `make release-check` and `make version VERSION=0.2.0` do these and the rest."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

_NUMBER = r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?"
PLACES: dict[str, tuple[str, int]] = {
    "src/sandbox_agent/version.py": (rf'(?<=__version__ = "){_NUMBER}', 1),
    "sdks/typescript/package.json": (rf'(?<=^  "version": "){_NUMBER}', 1),
    "sdks/typescript/package-lock.json": (
        rf'(?<=^  "version": "){_NUMBER}|(?<=^      "name": "sandbox-agent-client",\n      "version": "){_NUMBER}',
        2,
    ),
    "sdks/typescript/src/connection.ts": (rf'(?<=clientInfo: {{ name: options\.name, version: "){_NUMBER}', 1),
    "docs/openapi.json": (rf'(?<=^    "version": "){_NUMBER}', 1),
}
"""Where the version stands, and how often. The first is where it comes from."""
CHANGELOG = "CHANGELOG.md"
_UNRELEASED = "## [Unreleased]"
_SECTION = re.compile(rf"^## \[({_NUMBER})\] - (\d{{4}}-\d\d-\d\d)\n", re.MULTILINE)


def versions(root: Path) -> dict[str, list[str]]:
    """What each place says."""
    return {
        place: [match[0] for match in re.finditer(pattern, (root / place).read_text(), re.MULTILINE)]
        for place, (pattern, _) in PLACES.items()
    }


def problems(root: Path) -> Iterator[str]:
    """Why this is no release yet."""
    found = versions(root)
    source = next(iter(PLACES))
    version = found[source][0] if found[source] else "?"
    for place, (_, times) in PLACES.items():
        if found[place] != [version] * times:
            yield f"{place} says {', '.join(found[place]) or 'nothing'}, {source} says {version}"
    yield from _changelog_problems((root / CHANGELOG).read_text(), version)
    if _git(root, "status", "--porcelain"):
        yield "the work tree has changes that are not committed"
    if _git(root, "tag", "--list", f"v{version}") and f"v{version}" not in _git(root, "tag", "--points-at").split():
        yield f"the tag v{version} is taken by another commit"


def _changelog_problems(changelog: str, version: str) -> Iterator[str]:
    newest = _SECTION.search(changelog)
    if newest is None or newest[1] != version:
        has = "no dated section" if newest is None else f"{newest[1]} as its newest section"
        yield f"{CHANGELOG} has {has}, not {version}"
        return
    head, _, body = changelog.partition(newest[0])
    if "\n- " in head:
        yield f"{CHANGELOG} has unreleased changes above the section of {version}"
    if "- " not in body.partition("\n## [")[0]:
        yield f"{CHANGELOG} says nothing about {version}"


def set_version(root: Path, version: str, day: str) -> None:
    """Write the version wherever it stands, and date what was unreleased. Raises SystemExit for a wrong version."""
    if not re.fullmatch(_NUMBER, version):
        raise SystemExit(f"{version!r} is no version: use MAJOR.MINOR.PATCH")
    for place, (pattern, times) in PLACES.items():
        text, written = re.subn(pattern, version, (root / place).read_text(), flags=re.MULTILINE)
        if written != times:
            raise SystemExit(f"{place} has the version {written} times, not {times}")
        (root / place).write_text(text)
    changelog = (root / CHANGELOG).read_text()
    if f"## [{version}]" not in changelog:
        dated = changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n\n## [{version}] - {day}", 1)
        (root / CHANGELOG).write_text(dated)


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def main(words: list[str]) -> int:
    root = Path(__file__).parents[1]
    if words == ["check"]:
        missing = list(problems(root))
        for problem in missing:
            sys.stderr.write(f"not ready: {problem}\n")
        return 1 if missing else 0
    if len(words) == 2 and words[0] == "version":
        set_version(root, words[1], datetime.now(UTC).date().isoformat())
        return 0
    sys.stderr.write(f"{__doc__}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
