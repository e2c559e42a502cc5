"""`/docs/`: every guide as a page without scripts, as text, and in llms.txt, with links that lead somewhere."""

from __future__ import annotations

import re

import httpx
import pytest

from support.samples import PAGES
from support.server import Server

NAMES = ["index" if page.stem == "README" else page.stem for page in PAGES]


async def test_every_guide_is_listed_and_served_as_page_and_as_text(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        listed = (await http.get("/docs/llms.txt")).text
        for name, source in zip(NAMES, PAGES, strict=True):
            assert f"({name}.md)" in listed
            page = await http.get(f"/docs/{name}.html")
            assert page.headers["content-type"].startswith("text/html")
            assert "script-src" not in page.headers["content-security-policy"]
            assert "<h1>" in page.text
            text = await http.get(f"/docs/{name}.md")
            assert text.text.partition("\n")[0] == source.read_text().partition("\n")[0]
            assert "<!-- P-" not in text.text
        assert (await http.get("/docs/")).text == (await http.get("/docs/index.html")).text


async def test_every_link_between_guides_leads_to_a_page_and_a_heading(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        pages = {name: (await http.get(f"/docs/{name}.html")).text for name in NAMES}
    for name, text in pages.items():
        for target, anchor in re.findall(r'href="([\w-]+)\.html(?:#([\w-]+))?"', text):
            assert target in pages, f"{name} leads to {target}"
            assert not anchor or f'id="{anchor}"' in pages[target], f"{name} leads to {target}#{anchor}"


@pytest.mark.parametrize("path", ["nope.html", "quickstart", "quickstart.txt", "..%2Fpyproject.html", "adr.md"])
async def test_nothing_else_is_served(server: Server, path: str) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.get(f"/docs/{path}")).status_code == 404
