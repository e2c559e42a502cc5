"""OpenCode itself: its program, installed once as any agent, and the document in which it describes its protocol.

It is large, so these tests run beside those of the real agents: `make test-agents` names the directory of it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.browser import ROOT, Browser
from support.fake_llm import FakeLLM
from support.opencode_program import opencode_serving
from support.real_world import install_real, real_cache

IS_WANTED = bool(os.environ.get("SANDBOX_AGENT_REAL_AGENTS"))
collect_ignore_glob = [] if IS_WANTED else ["test_*.py"]
_PATIENCE = 240.0
"""Seconds for a test with the program in it: its first answers take long on a loaded machine."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two of OpenCode's own processes at once are enough for a machine."""
    for item in items:
        if "opencode" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("opencode"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_PATIENCE))


@pytest.fixture(scope="session")
def program() -> Path:
    """The program `opencode`."""

    with ThreadPoolExecutor(1) as elsewhere:  # the loop of this thread is the tests' own
        elsewhere.submit(asyncio.run, install_real("opencode")).result()
    found = sorted(
        path for path in (real_cache() / "agents" / "opencode").rglob("bin/opencode") if path.stat().st_size > 10**7
    )
    assert found, "the installed opencode has no program"
    return found[0]


@pytest.fixture(scope="session")
def original(program: Path) -> Iterator[str]:
    """The address of OpenCode's own server."""
    with tempfile.TemporaryDirectory() as home, opencode_serving(program, Path(home)) as url:
        yield url


@pytest.fixture(scope="session")
def document(original: str) -> dict[str, Any]:
    """OpenCode's OpenAPI document, from the running program."""
    found: dict[str, Any] = httpx.get(f"{original}/doc", timeout=_PATIENCE, trust_env=False).json()
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    opened = Browser(ROOT / "artifacts" / "opencode")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def llm() -> Iterator[FakeLLM]:
    with FakeLLM() as llm:
        yield llm
