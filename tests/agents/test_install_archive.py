"""Installs of binary archives that a loopback registry lists."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox_agent.agents import Catalog, InstallWish, Progress
from sandbox_agent.agents.surroundings import current_platform
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import InstallError, InstallImpossible, UnknownAgent
from support.loopback_site import TINY_AGENT, LoopbackSite, Page, binary_entry, tar_of

TINY = AgentId("tiny")
FILES = {"bin/tiny": TINY_AGENT}


class World:
    """A site with the agent `tiny` on it, and a catalog that looks there."""

    def __init__(self, site: LoopbackSite, data_dir: Path, env: dict[str, str]) -> None:
        self.site, self.data_dir, self.env = site, data_dir, env
        self.archive = site.publish_archive("/tiny.tar.gz", FILES)
        self.list_tiny()

    def list_tiny(self, **target: Any) -> None:
        options = {"archive": self.archive, "platform": current_platform(), **target}
        self.site.publish_registry(binary_entry("tiny", **options))

    def catalog(self, **options: Any) -> Catalog:
        url = self.site.url("/registry.json")
        return Catalog({}, data_dir=self.data_dir, registry_url=url, env=self.env, **options)

    def installs(self) -> set[str]:
        shelf = self.data_dir / "agents" / "tiny"
        return {path.name for path in shelf.iterdir() if path.name != ".lock"} if shelf.exists() else set()


@pytest.fixture
def world(site: LoopbackSite, tmp_path: Path, machine_env: dict[str, str]) -> World:
    return World(site, tmp_path / "data", machine_env)


async def test_an_agent_of_the_registry_is_installed_by_its_slug_verified_and_launchable(world: World) -> None:
    catalog, told = world.catalog(), list[Progress]()
    result = await catalog.install(TINY, progress=told.append)

    assert (result.already_installed, result.source, result.version) == (False, "registry", "1.0.0")
    [artifact] = result.artifacts
    assert (artifact.kind, artifact.name, artifact.version) == ("agent_process", "tiny", "1.0.0")
    assert artifact.size_bytes >= len(TINY_AGENT)
    assert Path(artifact.path).is_dir()
    assert told[0].step == "plan"
    assert {"download", "unpack", "verify", "done"} <= {p.step for p in told}
    assert [p for p in told if p.step == "download"][-1].fraction == 1.0

    spec = await catalog.ensure(TINY)
    assert Path(spec.command[0]).read_text() == TINY_AGENT
    listing = catalog.describe(TINY)
    assert (listing.installed, listing.verified, listing.source, listing.version) == (True, True, "registry", "1.0.0")
    assert TINY in catalog.ids()


async def test_the_receipt_says_what_was_installed_from_where_and_when(world: World) -> None:
    await world.catalog().install(TINY)
    receipt = msgspec.json.decode((world.data_dir / "agents/tiny/current/install.json").read_bytes())
    assert receipt["verified"] is True
    assert receipt["installedAt"].startswith("20")
    assert set(receipt["artifacts"][0]) == {"kind", "name", "version", "path", "source", "sizeBytes"}


async def test_an_install_that_is_there_is_not_done_again(world: World) -> None:
    await world.catalog().install(TINY)
    result = await world.catalog().install(TINY)
    assert result.already_installed
    assert result.artifacts
    assert world.site.hits["/tiny.tar.gz"] == 1


async def test_a_reinstall_replaces_it_without_a_moment_of_absence_and_keeps_the_previous_one(world: World) -> None:
    catalog = world.catalog()
    await catalog.install(TINY)
    for _ in range(3):
        before = Path((await catalog.ensure(TINY)).command[0])
        result = await catalog.install(TINY, InstallWish(reinstall=True))
        assert not result.already_installed
        after = Path((await catalog.ensure(TINY)).command[0])
        assert before != after
        assert before.is_file()
        assert after.is_file()
        assert len(world.installs()) == len({"current", "this one", "the one before"})


async def test_a_newer_version_in_the_registry_comes_with_a_reinstall_only(world: World) -> None:
    catalog = world.catalog()
    await catalog.install(TINY)
    world.list_tiny(version="2.0.0")
    assert (await catalog.install(TINY)).version == "1.0.0"
    assert (await catalog.install(TINY, InstallWish(reinstall=True))).version == "2.0.0"
    assert world.installs() == {"current", "1.0.0", "2.0.0"}


async def test_a_slug_that_was_seen_in_the_registry_is_installed_on_first_use(world: World) -> None:
    catalog = world.catalog()
    with pytest.raises(UnknownAgent):
        await catalog.ensure(TINY)
    with pytest.raises(UnknownAgent, match="tiny"):
        await catalog.install(AgentId("nobody"))  # asks the registry on the way
    spec = await catalog.ensure(TINY)
    assert Path(spec.command[0]).is_file()


async def test_ten_installs_at_once_are_one(world: World) -> None:
    catalogs = [world.catalog() for _ in range(5)]
    results = await asyncio.gather(*(catalog.install(TINY) for catalog in catalogs * 2))
    assert world.site.hits["/tiny.tar.gz"] == 1
    assert sorted(result.already_installed for result in results) == [False] + [True] * 9
    assert world.installs() == {"current", "1.0.0"}


async def test_those_who_wait_for_an_install_ask_the_registry_nothing(world: World) -> None:
    catalog = world.catalog()
    await asyncio.gather(*(catalog.install(TINY) for _ in range(10)))
    assert world.site.hits["/registry.json"] == 1


@pytest.mark.promise("P-install-3")
async def test_a_published_checksum_and_size_are_checked(world: World) -> None:
    body = world.site.pages["/tiny.tar.gz"].body
    world.list_tiny(sha256=hashlib.sha256(body).hexdigest(), size=len(body))
    assert not (await world.catalog().install(TINY)).already_installed


LIES: dict[str, tuple[dict[str, Any], Page | None, str]] = {
    "checksum": ({"sha256": "0" * 64}, None, "checksum"),
    "too small": ({"size": 10_000_000}, None, "bytes, the registry says"),
    "too large": ({"size": 10}, None, "larger than 10"),
    "not an archive": ({}, Page(b"<html>sorry</html>"), "not a good archive"),
    "half an archive": ({}, Page(tar_of({**FILES, "pad": "x" * 9999})[:-30]), "not a good archive"),
    "half a download": ({}, Page(b"x" * 10, headers={"content-length": "5000"}), "tiny.tar.gz"),
    "gone": ({}, Page(b"", status=404), "answered 404"),
    "redirect to a file": ({}, Page(status=302, headers={"location": "file:///etc/passwd"}), "refused"),
    "redirect to the open web": ({}, Page(status=302, headers={"location": "http://example.org/x"}), "refused"),
    "no such program": ({}, Page(tar_of({"other": "x"})), "has no 'bin/tiny'"),
    "hostile archive": ({}, Page(tar_of({"../../bin/tiny": "x"})), "leads out of"),
    "gzip of nothing": ({}, Page(gzip.compress(b"")), "archive|bin/tiny"),
    "not an agent": ({}, Page(tar_of({"bin/tiny": "#!/bin/sh\necho hello\n"})), "failed at initialize"),
    "an agent that refuses": (
        {},
        Page(tar_of({"bin/tiny": '#!/bin/sh\necho \'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}\'\n'})),
        "failed at initialize",
    ),
    "not a program": ({}, Page(tar_of({"bin/tiny": "\0\0\0\0"})), "cannot be started|failed at initialize"),
    "unencrypted": ({"archive": "http://example.org/tiny.tar.gz"}, None, "https only"),
    "a local file": ({"archive": "file:///etc/passwd"}, None, "https only"),
    "a command outside": ({"cmd": "../../../bin/sh"}, None, "outside"),
    "a version that is a path": ({"version": "../../x"}, None, "version"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lying_registry_installs_nothing_and_leaves_nothing(world: World, lie: str) -> None:
    target, page, complaint = LIES[lie]
    world.list_tiny(**target)
    if page is not None:
        world.site.pages["/tiny.tar.gz"] = page
    catalog = world.catalog()
    with pytest.raises(InstallError, match=complaint):
        await catalog.install(TINY)
    assert world.installs() == set()
    assert TINY not in catalog.ids()


@pytest.mark.promise("P-install-2")
async def test_a_failed_reinstall_leaves_the_old_install_in_use(world: World) -> None:
    catalog = world.catalog()
    await catalog.install(TINY)
    world.list_tiny(sha256="0" * 64, version="2.0.0")
    with pytest.raises(InstallError):
        await catalog.install(TINY, InstallWish(reinstall=True))
    assert catalog.describe(TINY).version == "1.0.0"
    assert world.installs() == {"current", "1.0.0"}


async def test_an_archive_for_another_platform_is_refused_before_it_is_downloaded(world: World) -> None:
    world.list_tiny(platform="windows-x86_64")
    with pytest.raises(InstallImpossible, match="windows-x86_64"):
        await world.catalog().install(TINY)
    assert world.site.hits["/tiny.tar.gz"] == 0


async def test_a_zip_and_a_redirect_within_the_scheme_are_followed(world: World) -> None:
    world.site.publish_archive("/real.zip", FILES)
    world.site.pages["/moved.zip"] = Page(status=302, headers={"location": "/real.zip"})
    world.list_tiny(archive=world.site.url("/moved.zip"))
    # the published name decides the format, wherever it is stored
    assert (await world.catalog().install(TINY)).version == "1.0.0"
