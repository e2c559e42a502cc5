"""What is served at /ui/, without a browser."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from support.browser import ROOT, find_tool, missing
from support.server import Server

BUILT = ROOT / "src" / "sandbox_agent" / "http" / "ui_assets"
LIMIT = 500_000
FIRST_LOAD = 200_000


async def _get(server: Server, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as http:
        return await http.request(method, f"{server.url}{path}", headers=headers)


async def test_the_page_and_its_files_are_served_with_a_strict_policy(server: Server) -> None:
    page = await _get(server, "/ui/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"].startswith("nosniff")
    script = next(file for file in _first_load() if file.suffix == ".js")
    assert f"./assets/{script.name}" in page.text
    served = await _get(server, f"/ui/assets/{script.name}")
    assert served.content == script.read_bytes()
    assert served.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in served.headers["cache-control"]


async def test_nothing_but_the_built_files_exists_below_ui(server: Server) -> None:
    for path in ("/ui/nope.js", "/ui/assets/", "/ui/..%2f..%2fui.py", "/ui/%2e%2e/ui.py", "/ui/assets/../../ui.py"):
        assert (await _get(server, path)).status_code == 404, path
    assert (await _get(server, "/ui/", "POST")).status_code == 405


async def test_the_address_without_slash_leads_to_the_one_with_it_under_any_base_path(server: Server) -> None:
    answer = await _get(server, "/ui")
    assert answer.status_code == 308
    assert answer.headers["location"] == "ui/"


async def test_head_and_not_modified_have_no_body(server: Server) -> None:
    page = await _get(server, "/ui/")
    head = await _get(server, "/ui/", "HEAD")
    assert head.status_code == 200
    assert head.content == b""
    again = await _get(server, "/ui/", **{"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""


def test_the_whole_inspector_stays_below_its_size_limit() -> None:
    size = sum(len(gzip.compress(file.read_bytes())) for file in BUILT.rglob("*") if file.is_file())
    assert 0 < size < LIMIT


def test_what_the_page_loads_first_stays_below_its_size_limit() -> None:
    assert 0 < sum(len(gzip.compress(file.read_bytes())) for file in _first_load()) < FIRST_LOAD


def _first_load() -> list[Path]:
    """The page, and what it names: everything else is fetched when it is needed."""
    page = BUILT / "index.html"
    return [page, *(BUILT / name for name in re.findall(r'"\./([^"]+)"', page.read_text()))]


@pytest.mark.timeout(300)
def test_the_committed_files_are_what_the_sources_build(tmp_path: Path) -> None:
    npx = find_tool("npx")
    folder = ROOT / "inspector"
    if not (folder / "node_modules").is_dir():
        missing("run npm ci in inspector/")
    out = tmp_path / "built"
    words = [npx, "vite", "build", "--outDir", str(out), "--emptyOutDir", "--logLevel", "warn"]
    subprocess.run(words, cwd=folder, check=True, timeout=240, env={**os.environ, "CI": "1"})
    assert _tree(out) == _tree(BUILT), "run npm run build in inspector/ and commit the result"
    shutil.rmtree(out)


def _tree(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def test_the_licence_notices_of_every_package_in_the_bundle_are_served_beside_it(server: Server) -> None:
    notices = await _get(server, "/ui/third-party-licenses.txt")
    assert notices.headers["content-type"] == "text/plain; charset=utf-8"
    for package in ("react ", "react-dom ", "markdown-it ", "zod ", "@agentclientprotocol/sdk "):
        assert f"\n{package}" in notices.text
    assert notices.text.count("Permission is hereby granted, free of charge") >= 5


def test_colours_and_sizes_of_type_come_from_one_scale_and_each_sheet_belongs_to_a_component() -> None:
    source = ROOT / "inspector" / "src"
    tokens = source / "styles" / "tokens.css"
    size = r"font-size:(?!\s*(?:var\(--text-|inherit|0;|[\d.]+em))"
    colour = r"^(?!\s*--[\w-]+: light-dark\().*(?:#[0-9a-fA-F]{3,8}\b|\brgba?\()"
    for sheet in sorted(source.rglob("*.css")):
        lines = sheet.read_text().splitlines() if sheet != tokens else []
        assert [line for line in lines if re.search(f"{size}|{colour}", line)] == [], sheet.name
    sheets = {sheet.stem for sheet in (source / "views").glob("*.css")}
    assert sheets <= {component.stem for component in (source / "views").glob("*.tsx")}
