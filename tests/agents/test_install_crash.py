"""Installs that are killed, cancelled, or done by several processes at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sandbox_agent.agents import Catalog
from sandbox_agent.agents.surroundings import current_platform
from sandbox_agent.core.ids import AgentId
from support.loopback_site import TINY_AGENT, TINY_NODE_AGENT, LoopbackSite, Page, binary_entry

TINY = AgentId("tiny")
INSTALL = """
import asyncio, sys
from pathlib import Path
from sandbox_agent.agents import Catalog
data_dir, url, home, path = sys.argv[1:]
catalog = Catalog({}, data_dir=Path(data_dir), registry_url=url, env={"HOME": home, "PATH": path})
print(asyncio.run(catalog.install("tiny")).already_installed)
"""


def start_install(data_dir: Path, url: str, env: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", INSTALL, str(data_dir), url, env["HOME"], env["PATH"]]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def working_in(directory: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(directory):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture
def registry(site: LoopbackSite) -> str:
    archive = site.publish_archive("/tiny.tar.gz", {"bin/tiny": TINY_AGENT, "pad": os.urandom(40_000).hex()})
    return site.publish_registry(binary_entry("tiny", archive, platform=current_platform()))


def names_in(shelf: Path) -> set[str]:
    return {path.name for path in shelf.iterdir() if path.name != ".lock"}


async def test_an_install_killed_in_the_middle_of_a_download_is_cleaned_up_by_the_next(
    site: LoopbackSite, registry: str, tmp_path: Path, machine_env: dict[str, str]
) -> None:
    page, shelf = site.pages["/tiny.tar.gz"], tmp_path / "data/agents/tiny"
    for _ in range(2):
        page.stalled, page.reached = threading.Event(), threading.Event()
        victim = start_install(tmp_path / "data", registry, machine_env)
        assert await asyncio.to_thread(page.reached.wait, 40)
        victim.kill()
        victim.communicate()
        page.stalled.set()
        [leftover] = names_in(shelf)
        assert leftover.startswith(".staging-")
    page.stalled = None

    catalog = Catalog({}, data_dir=tmp_path / "data", registry_url=registry, env=machine_env)
    assert TINY not in catalog.ids()
    assert not (await catalog.install(TINY)).already_installed
    assert names_in(shelf) == {"current", "1.0.0"}


async def test_what_npm_still_does_for_a_killed_install_is_ended_by_the_next(
    site: LoopbackSite, tmp_path: Path, npm_env: dict[str, str]
) -> None:
    site.publish_npm("tiny", {"1.0.0": {"tiny.js": TINY_NODE_AGENT}}, commands={"tiny": "tiny.js"})
    entry = {"id": "tiny", "version": "1.0.0", "distribution": {"npx": {"package": "tiny@1.0.0"}}}
    registry, shelf = site.publish_registry(entry), tmp_path / "data/agents/tiny"
    page = site.pages["/npm/tiny/-/1.0.0.tgz"]
    stalled = page.stalled = threading.Event()
    victim = start_install(tmp_path / "data", registry, npm_env)
    assert await asyncio.to_thread(page.reached.wait, 40)
    victim.kill()
    victim.communicate()
    orphans = working_in(shelf)
    assert orphans

    site.pages["/npm/tiny/-/1.0.0.tgz"] = Page(page.body)
    catalog = Catalog({}, data_dir=tmp_path / "data", registry_url=registry, env=npm_env)
    assert not (await catalog.install(TINY)).already_installed
    assert names_in(shelf) == {"current", "1.0.0"}
    assert not set(orphans) & set(working_in(tmp_path))
    stalled.set()


async def test_processes_that_install_at_once_share_one_install(
    site: LoopbackSite, registry: str, tmp_path: Path, machine_env: dict[str, str]
) -> None:
    page = site.pages["/tiny.tar.gz"]
    page.stalled = threading.Event()
    installs = [start_install(tmp_path / "data", registry, machine_env) for _ in range(4)]
    assert await asyncio.to_thread(page.reached.wait, 40)
    page.stalled.set()
    answers = await asyncio.gather(*(asyncio.to_thread(install.communicate, timeout=50) for install in installs))
    assert sorted(answer[0].strip() for answer in answers) == ["False", "True", "True", "True"]
    assert site.hits["/tiny.tar.gz"] == 1


async def test_a_cancelled_install_leaves_nothing_and_lets_the_next_go_on(
    site: LoopbackSite, registry: str, tmp_path: Path, machine_env: dict[str, str]
) -> None:
    page = site.pages["/tiny.tar.gz"]
    page.stalled = threading.Event()
    catalog = Catalog({}, data_dir=tmp_path / "data", registry_url=registry, env=machine_env)
    first = asyncio.create_task(catalog.install(TINY))
    assert await asyncio.to_thread(page.reached.wait, 40)
    second = asyncio.create_task(catalog.install(TINY))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    page.stalled.set()
    page.stalled = None
    assert not (await second).already_installed
    assert names_in(tmp_path / "data/agents/tiny") == {"current", "1.0.0"}


async def test_a_child_that_is_cancelled_takes_its_own_children_with_it(tmp_path: Path) -> None:
    from sandbox_agent.agents.programs import run

    script = "import subprocess, time; subprocess.Popen(['sleep', '300']); open('ready', 'w'); time.sleep(300)"
    task = asyncio.create_task(
        run(
            [sys.executable, "-c", script],
            env={"PATH": os.environ["PATH"]},
            cwd=tmp_path,
            log=tmp_path / "log",
            deadline=60,
        )
    )
    async with asyncio.timeout(40):
        while not (tmp_path / "ready").exists():
            await asyncio.sleep(0.02)
    assert len(working_in(tmp_path)) == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(20):
        while working_in(tmp_path):
            await asyncio.sleep(0.02)
