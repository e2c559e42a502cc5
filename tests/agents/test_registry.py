from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from sandbox_agent.agents.registry import Registry, parse_index
from sandbox_agent.agents.web import redirect_target
from sandbox_agent.errors import ConfigError, InstallError
from support.loopback_site import LoopbackSite, Page

ENTRY = {"id": "tiny", "name": "Tiny", "version": "1.0.0", "distribution": {"npx": {"package": "tiny@1.0.0"}}}


async def test_an_unchanged_registry_is_read_from_the_cache_by_its_etag(site: LoopbackSite, tmp_path: Path) -> None:
    registry = Registry(site.publish_registry(ENTRY), tmp_path, {})
    for _ in range(3):
        index = await registry.index()
        assert index is not None
        assert list(index.agents) == ["tiny"]
    assert (site.hits["/registry.json"], site.unchanged["/registry.json"]) == (3, 2)


async def test_a_changed_registry_is_read_anew(site: LoopbackSite, tmp_path: Path) -> None:
    registry = Registry(site.publish_registry(ENTRY), tmp_path, {})
    await registry.index()
    site.publish_registry(ENTRY, {**ENTRY, "id": "second"})
    index = await registry.index()
    assert index is not None
    assert list(index.agents) == ["tiny", "second"]


async def test_a_damaged_cache_is_not_trusted(site: LoopbackSite, tmp_path: Path) -> None:
    registry = Registry(site.publish_registry(ENTRY), tmp_path, {})
    await registry.index()
    next(tmp_path.glob("registry-*[0-9a-f].json")).write_text('{"agents": []}')
    index = await registry.index()
    assert index is not None
    assert list(index.agents) == ["tiny"]
    assert site.unchanged["/registry.json"] == 0


async def test_a_registry_that_goes_down_leaves_its_last_good_copy(site: LoopbackSite, tmp_path: Path) -> None:
    registry = Registry(site.publish_registry(ENTRY), tmp_path, {})
    assert registry.cached() is None
    await registry.index()
    site.stop()
    index = await registry.index()
    assert index is not None
    assert list(index.agents) == ["tiny"]


@pytest.mark.parametrize(
    "page",
    [
        Page(b"busy", status=503),
        Page(b"<html>log in first</html>"),
        Page(b'{"agents": "none"}'),
        Page(b'{"agents": [' + b" " * 5000 + b"]}"),
        Page(status=302, headers={"location": "file:///etc/passwd"}),
        Page(status=302, headers={"location": "/registry.json"}),
        Page(b'{"agents": [', headers={"content-length": "5000"}),
    ],
    ids=["status", "html", "shape", "too-large", "redirect-to-file", "redirect-loop", "half"],
)
async def test_a_registry_that_answers_nonsense_counts_as_down(site: LoopbackSite, tmp_path: Path, page: Page) -> None:
    site.pages["/registry.json"] = page
    registry = Registry(site.url("/registry.json"), tmp_path, {}, limit=4096)
    assert await registry.index() is None
    assert site.hits["/registry.json"] >= 1
    assert not list(tmp_path.iterdir())


async def test_a_registry_that_stalls_is_given_up_at_the_deadline(site: LoopbackSite, tmp_path: Path) -> None:
    body = json.dumps({"agents": [ENTRY]}).encode()
    site.pages["/registry.json"] = Page(body, stalled=threading.Event())
    assert await Registry(site.url("/registry.json"), tmp_path, {}, deadline=0.3).index() is None


async def test_a_file_is_a_registry_too(tmp_path: Path) -> None:
    path = tmp_path / "my registry.json"
    path.write_text(json.dumps({"agents": [ENTRY]}))
    index = await Registry(path.as_uri(), tmp_path / "cache", {}).index()
    assert index is not None
    assert index.agents["tiny"].distribution.npx is not None


@pytest.mark.parametrize("url", ["ftp://example.org/x", "registry.json", "javascript:alert(1)"])
def test_a_registry_of_another_kind_is_a_wrong_setting(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="http, https or file"):
        Registry(url, tmp_path, {})


def test_unknown_fields_are_let_be_and_broken_entries_left_out() -> None:
    broken = [{"id": "no-version"}, {**ENTRY, "id": 5}, "text", {**ENTRY, "id": "x", "distribution": {"npx": "y"}}]
    fresh = {**ENTRY, "icon": "x.svg", "distribution": {"npx": {"package": "a@1", "new": 1}, "wasm": {}}}
    index = parse_index(json.dumps({"version": "2", "news": [], "agents": [*broken, fresh]}).encode())
    assert list(index.agents) == ["tiny"]


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("https://example.org/r", "http://example.org/r"),
        ("https://example.org/r", "file:///etc/passwd"),
        ("http://127.0.0.1:1/r", "http://example.org/r"),
        ("http://example.org/r", "http://127.0.0.1/admin"),
        ("http://127.0.0.1:1/r", "data:application/json,{}"),
    ],
)
def test_a_redirect_to_another_scheme_or_kind_of_host_is_refused(url: str, location: str) -> None:
    with pytest.raises(InstallError, match="refused"):
        redirect_target(url, location)


def test_a_redirect_that_keeps_or_gains_encryption_is_followed() -> None:
    assert redirect_target("https://example.org/r", "https://cdn.example.org/r") == "https://cdn.example.org/r"
    assert redirect_target("http://example.org/a/r", "../s") == "http://example.org/s"
    assert redirect_target("http://example.org/r", "https://example.org/r") == "https://example.org/r"
