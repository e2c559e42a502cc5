"""Sessions with very many updates: what is drawn stays small, and everything can be reached."""

from __future__ import annotations

import json

import pytest

from support.browser import Browser, Inspector
from support.rpc import RpcClient, connected
from support.server import Server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]

TURNS = 100
NEEDLE = "needle-in-the-haystack"
ELEMENTS = "document.querySelectorAll('*').length"
ENVELOPES = "document.querySelectorAll('.envelope').length"
TEXT = "document.querySelector('.conversation')?.innerText"


async def _say(rpc: RpcClient, session: str, *prompts: str) -> None:
    for prompt in prompts:
        assert "result" in await rpc.prompt(session, prompt)


async def _open(browser: Browser, server: Server, session: str, *, tab: str) -> Inspector:
    await browser.open(f"{server.url}/ui/#/sessions/{session}?agent=mock&tab={tab}")
    return Inspector(browser, server.url)


async def test_of_twenty_thousand_updates_only_those_in_sight_are_drawn(server: Server, browser: Browser) -> None:
    async with connected(server.url) as rpc:
        session = await rpc.new_session(permissionMode="allow")
        await _say(rpc, session, "The very first words")
        for turn in range(TURNS):
            await _say(rpc, session, f"thought About part {turn}; tool ls {turn}; chunks 193 40; plan", f"Part {turn}")
        await _say(rpc, session, "The very last words")
        inspector = await _open(browser, server, session, tab="conversation")
        await inspector.ready()
        await browser.until_text("The very last words", within=".conversation")
        assert await browser.eval(ELEMENTS) < 1_000

        await browser.eval("document.querySelector('.conversation').scrollTo(0, 0)")
        await browser.until_text("The very first words", within=".conversation")
        assert "The very last words" not in await browser.eval(TEXT)
        assert await browser.eval(ELEMENTS) < 1_000
        await _say(rpc, session, "Something new")
        await browser.fill("#prompt", "typed among many")
        assert await browser.eval("document.querySelector('#prompt').value") == "typed among many"
        assert "The very first words" in await browser.eval(TEXT), "what is being read must not move"

        await browser.press("Enter")
        await browser.eval("document.querySelector('.conversation').scrollTo(0, 1e9)")
        await browser.until("[...document.querySelectorAll('.entry.agent')].at(-1)?.innerText === 'typed among many'")
        assert await browser.eval(ELEMENTS) < 1_000


async def test_a_conversation_comes_back_as_it_was_left(server: Server, browser: Browser) -> None:
    """What was unfolded and scrolled away from is unfolded again; a place in the middle stays where it is."""
    async with connected(server.url) as rpc:
        session = await rpc.new_session()
        await _say(rpc, session, "thought the plan of the whole")
        for turn in range(150):
            await _say(rpc, session, f"# Part {turn}\n\n{'Some words. ' * (turn % 40)}")
        await _open(browser, server, session, tab="conversation")
        await browser.until_text("Part 149", within=".conversation")
        await browser.eval("document.querySelector('.conversation').scrollTo(0, 0)")
        await browser.click(".thought summary")
        await browser.until_text("the plan of the whole", within=".thought")
        await browser.eval("document.querySelector('.conversation').scrollTo(0, 1e9)")
        await browser.until_text("Part 149", within=".conversation")
        await browser.until("!document.querySelector('.thought')")
        await browser.eval("document.querySelector('.conversation').scrollTo(0, 0)")
        await browser.until("document.querySelector('.thought')?.open")

        first = "document.elementFromPoint(700, 300).closest('.tall-row').dataset.key"
        await browser.eval("document.querySelector('.conversation').scrollTo(0, 4000)")
        await browser.until(f"{first} !== '1.0'")
        before = await browser.eval(first)
        await _say(rpc, session, "chunks 500 80")
        await browser.until_text("Ready", within=".session-header .status")
        assert await browser.eval(first) == before


async def test_one_row_is_found_among_a_hundred_thousand(server: Server, browser: Browser) -> None:
    async with connected(server.url) as rpc:
        session = await rpc.new_session()
        await _say(rpc, session, "chunks 50000 20", NEEDLE, "chunks 50000 20")
        await _open(browser, server, session, tab="protocol")
        await browser.until("Number.parseInt(document.querySelector('.count')?.innerText) > 100000", deadline=90)
        assert 10 < await browser.eval(ENVELOPES) < 200
        await browser.eval("document.querySelector('.virtual').scrollTo(0, 0)")
        await browser.until("document.querySelector('.virtual-row')?.ariaPosInSet === '1'")
        assert await browser.eval(ELEMENTS) < 1_000
        await browser.fill(".protocol input[type=search]", NEEDLE.upper())
        await browser.until(f"document.querySelector('.envelope')?.innerText.includes({json.dumps(NEEDLE)})")
        await browser.until("document.querySelector('.count').ariaBusy === 'false'")
        assert await browser.eval(ENVELOPES) == await browser.eval(
            "Number.parseInt(document.querySelector('.count').innerText)"
        )
        await browser.fill(".protocol input[type=search]", "chunks 50000")
        await browser.until_text("chunks 50000", within=".envelope")
