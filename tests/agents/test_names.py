from __future__ import annotations

from pathlib import Path

import pytest

from sandbox_agent.agents import Catalog
from sandbox_agent.agents.names import (
    check_agent_id,
    check_npm_name,
    check_pypi_name,
    check_version,
    version_key,
)
from sandbox_agent.agents.plan import InstallRequest
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import InvalidParams

HOSTILE = [
    *("", "-g", "--prefix=/", "a b", "a;id", "$(id)", "`id`", "a|b", "a&b", "../x", "a/../b", "/etc/passwd", "a\n"),
    *(
        "a\0",
        "é",
        "x" * 300,
        ".hidden",
        "a..b",
        "git+ssh://host/x",
        "file:../x",
        "http://evil.example/x.tgz",
        "npm:x@1",
    ),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_no_agent_name_version_or_package(name: str) -> None:
    for check in (check_agent_id, check_version, check_npm_name, check_pypi_name):
        with pytest.raises(InvalidParams):
            check(name)


@pytest.mark.parametrize("version", ["latest", "^1.0.0", ">=1", "*", "1.0.0 || 2", "1/../../x", "=1"])
def test_a_version_is_one_exact_version(version: str) -> None:
    with pytest.raises(InvalidParams):
        InstallRequest(agent="claude", agent_process_version=version)


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_agent_name_is_refused_before_anything_is_touched(name: str, tmp_path: Path) -> None:
    catalog = Catalog({}, data_dir=tmp_path / "data", registry_url="file:///nonexistent")
    with pytest.raises(InvalidParams):
        await catalog.install(AgentId(name))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("version", ["1.0.0", "0.0.1790142911-g7618fb", "2.0.0+build.5", "3"])
def test_real_versions_pass(version: str) -> None:
    assert check_version(version) == version


def test_versions_compare_by_their_numbers() -> None:
    assert version_key("v22.19.0") > version_key("22.2") > version_key("9.99")
    assert version_key("Python 3.11.7") == (3, 11, 7)
