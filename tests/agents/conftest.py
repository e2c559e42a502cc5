from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.loopback_site import LoopbackSite

# installs gigabytes: `make test-agents` names the directory that keeps them
collect_ignore = (
    [] if os.environ.get("SANDBOX_AGENT_REAL_AGENTS") else ["test_real_agents.py", "test_real_conformance.py"]
)


@pytest.fixture
def site() -> Iterator[LoopbackSite]:
    with LoopbackSite() as site:
        yield site


@pytest.fixture
def machine_env(tmp_path: Path, site: LoopbackSite) -> dict[str, str]:
    """An environment with a home of its own, whose npm knows only the loopback site."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".npmrc").write_text(f"registry={site.url('/npm/')}\nfetch-retries=0\n")
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


@pytest.fixture
def npm_env(machine_env: dict[str, str]) -> dict[str, str]:
    if shutil.which("npm") is None and os.environ.get("REQUIRE_ALL") != "1":
        pytest.skip("npm is not installed")
    return machine_env
