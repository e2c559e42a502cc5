"""What is built: `make dist` names its directory in SANDBOX_AGENT_DIST, otherwise the tests build it for themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.dist import ROOT, build


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("SANDBOX_AGENT_DIST")
    return ROOT / given if given else build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    (found,) = dist.glob("*.tar.gz")
    return found
