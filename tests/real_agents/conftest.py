"""The real agents behind our server: one world per agent, shared by its tests, and the table that a run can write."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.fake_llm import FakeLLM
from support.matrix_report import MatrixReport
from support.real_agents import REAL_AGENTS
from support.real_world import RealWorld, install_real, real_cache

# installs gigabytes: `make test-agents` names the directory that keeps them
IS_WANTED = bool(os.environ.get("SANDBOX_AGENT_REAL_AGENTS"))
collect_ignore_glob = [] if IS_WANTED else ["test_*.py"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "feature(name): the row of the matrix in docs/agents.md that a test fills")
    is_worker = hasattr(config, "workerinput")
    if IS_WANTED and not is_worker:
        config.pluginmanager.register(MatrixReport(write=os.environ.get("REGENERATE") == "1"), "matrix-report")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of one agent in one worker: they share its server."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "world" in callspec.params:
            item.add_marker(pytest.mark.xdist_group(callspec.params["world"]))


@pytest.fixture(scope="session")
def llm() -> Iterator[FakeLLM]:
    with FakeLLM() as llm:
        yield llm


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=REAL_AGENTS)
async def world(
    request: pytest.FixtureRequest, llm: FakeLLM, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RealWorld]:
    agent: str = request.param
    await install_real(agent)
    made = RealWorld(agent, llm, real_cache(), tmp_path_factory.mktemp(agent))
    await made.start()
    yield made
    await made.close()
    assert not made.processes()


@pytest.fixture(autouse=True)
def _row(request: pytest.FixtureRequest, world: RealWorld, record_property: Callable[[str, object], None]) -> None:
    mark = request.node.get_closest_marker("feature")
    record_property("cell", [mark.args[0], world.agent])


@pytest.fixture
def work(world: RealWorld) -> Path:
    return world.work
