"""The nodes of a cluster in the inspector: listed, drained, and a session used at a node that has it not."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.browser import Browser, Inspector
from support.cluster import cluster
from support.postgres import PostgresServer

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


async def test_nodes_are_listed_and_drained_and_their_sessions_used_from_any_of_them(
    postgres: PostgresServer, browser: Browser, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("north"), await nodes.start("south")
        client = await nodes.client(second)
        session = await client.new_session(title="Lives in the south")
        inspector = Inspector(browser, first.url)
        await inspector.open()
        await browser.until_text("Nodes", within=".topbar nav")
        await browser.click(".topbar nav a:nth-child(4)")
        await browser.until_text("north (this one)", within=".nodes")
        assert await browser.eval("[...document.querySelectorAll('.nodes .status')].map(e => e.innerText)") == [
            "Up",
            "Up",
        ]
        await browser.screenshot("nodes")

        await browser.click(".topbar nav a:nth-child(1)")
        await browser.until_text("Lives in the south")
        await client.new_session(title="Made there meanwhile")
        await browser.until_text("Made there meanwhile")
        await browser.eval(f"void (location.hash = '#/sessions/{session}?agent=mock')")
        await inspector.ready()
        await inspector.say("from north to south")
        await browser.until_text("from north to south", within=".entry.agent")

        await browser.click(".topbar nav a:nth-child(4)")
        await browser.click("[aria-label='Drain south']")
        await browser.until_text("Draining", within=".nodes")
        await browser.click("[aria-label='Resume south']")
        await browser.until("!document.querySelector('.nodes').innerText.includes('Draining')")


async def test_a_server_that_stands_alone_has_no_page_of_nodes(inspector: Inspector) -> None:
    browser = inspector.browser
    assert "Nodes" not in await browser.eval("document.querySelector('.topbar nav').innerText")
    await browser.eval("void (location.hash = '#/nodes')")
    await browser.until_text("This server stands alone")
