"""`make docs`: a site with every page, every link checked, and llms.txt."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.samples import PAGES, ROOT

needs_mkdocs = pytest.mark.skipif(find_spec("mkdocs") is None, reason="`make docs` installs it")


def test_every_page_has_its_place_in_the_navigation() -> None:
    listed = set(re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {page.name for page in PAGES} - {"README.md"} <= listed
    assert "index.md" in listed


@needs_mkdocs
def test_the_site_builds_without_a_broken_link_and_asks_nobody_else(tmp_path: Path) -> None:
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    listed = (tmp_path / "site" / "llms.txt").read_text()
    for page in PAGES:
        name = "index" if page.stem == "README" else page.stem
        assert (tmp_path / "site" / f"{name}.html").exists()
        assert f"({name}.html): " in listed
    assert (tmp_path / "site" / "search" / "search_index.json").exists()
    home = (tmp_path / "site" / "index.html").read_text()
    assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', home) == []
