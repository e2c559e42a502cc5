"""Finding: words in all conversations, sessions by state, directory and agent, a place from its line of protocol."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.browser import Browser, Inspector
from support.rpc import connected
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]

BOX = "input[aria-label='Search sessions']"


async def test_words_are_found_in_all_conversations_and_lead_to_their_place(server: Server, browser: Browser) -> None:
    inspector = Inspector(browser, server.url)
    async with connected(server.url) as rpc:
        session = await rpc.new_session(title="About animals")
        for turn in range(60):
            needle = "a purple zebra" if turn == 10 else ""
            await rpc.prompt(session, f"# Part {turn}\n\n{needle} {'Some words. ' * 20}")
        other = await rpc.new_session(title="About fish")
        await rpc.prompt(other, "a purple fish")
        await inspector.open()
        await browser.fill(BOX, "purple zeb")
        await browser.until("document.querySelectorAll('.search-results .hit').length >= 2")
        assert "About animals" in await browser.eval("document.querySelector('.search-results').innerText")
        assert "About fish" not in await browser.eval("document.querySelector('.search-results').innerText")
        assert await browser.eval(
            "[...document.querySelectorAll('.hit mark')].map(m => m.textContent).slice(0, 2)"
        ) == [
            "purple",
            "zebra",
        ]
        await browser.screenshot("search")
        await browser.eval(f"document.querySelector({BOX!r}).focus()")
        for key in ("ArrowDown", "Enter"):
            await browser.press(key)
        await inspector.ready()
        await browser.until_text("purple zebra", within=".conversation")
        await browser.until("CSS.highlights.get('found')?.size > 0")
        found = "[...CSS.highlights.get('found')][0].getBoundingClientRect()"
        await browser.until(f"{found}.top > 0 && {found}.bottom < innerHeight")


async def test_a_line_of_the_protocol_and_its_place_in_the_conversation_lead_to_each_other(
    inspector: Inspector,
) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("tool ls")
    await inspector.until_status("Asking")
    await browser.click(".ask.open .choices button")
    await inspector.until_status("Ready")
    tool = "document.querySelector('.tall-row:has(.tool)')"
    await browser.until(tool)
    await browser.eval(f"{tool}.querySelector('.to-protocol').click()")
    await browser.until("location.hash.includes('tab=protocol')")
    await browser.until("document.querySelector('.envelope[aria-pressed=true]')?.innerText.includes('tool_call')")
    await browser.until_text("In the conversation", within=".envelope-detail")
    await browser.eval(
        "[...document.querySelectorAll('.envelope-detail button')].find(b => b.innerText.startsWith('In the')).click()"
    )
    await browser.until("!location.hash.includes('tab=') && document.querySelector('.to-protocol.arrived')")
    assert await browser.eval("document.querySelector('.tall-row:has(.arrived)').querySelector('.tool') !== null")


async def test_a_turn_is_shown_as_a_waterfall_whose_bars_lead_to_their_messages(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("tool ls")
    await inspector.until_status("Asking")
    await browser.click(".ask.open .choices button")
    await inspector.until_status("Ready")
    await inspector.show("protocol")
    await browser.until("document.querySelector('.envelope')")
    await browser.eval(
        "[...document.querySelectorAll('.protocol .toolbar button')].find(b => b.innerText === 'Waterfall').click()"
    )
    await browser.until("document.querySelectorAll('.turn-spans .span').length >= 3")
    names = await browser.eval("[...document.querySelectorAll('.span .name')].map(n => n.innerText)")
    assert names[0] == "session/prompt"
    assert "session/request_permission" in names
    await browser.until_text("first update after", within=".turn-spans header")
    await browser.screenshot("waterfall")
    await browser.eval("document.querySelectorAll('.span')[1].click()")
    await browser.until("document.querySelector('.envelope[aria-pressed=true]')")


async def test_sessions_are_shown_by_state_directory_and_agent_in_groups_and_archived_for_everybody(
    server: Server, browser: Browser, tmp_path: Path
) -> None:
    inspector = Inspector(browser, server.url)
    places = [tmp_path / "one", tmp_path / "two"]
    async with connected(server.url) as rpc:
        for place in places:
            place.mkdir()
            session = await rpc.new_session(str(place), title=f"In {place.name}")
        await rpc.prompt(session, "fail")
        untitled = await rpc.new_session(str(places[0]))
        await rpc.prompt(untitled, "null-answer")
        await inspector.open()
        await browser.until("document.querySelectorAll('.session-list li').length === 3")
        await browser.until_text("Failed", within=".filters")
        await browser.eval(
            "[...document.querySelectorAll('.filters button')].find(b => b.innerText.includes('Failed')).click()"
        )
        await browser.until("document.querySelectorAll('.session-list li').length === 1")
        await browser.until_text("In two", within=".session-list")
        await browser.click(".filters button:nth-child(1)")
        await browser.click("button[aria-label='Filter and group']")
        await browser.run("select", ".list-choices label:nth-child(3) select", "directory")
        await browser.until("document.querySelectorAll('.session-lists .group-name').length === 2")
        await browser.screenshot("list-groups")
        await browser.run("select", ".list-choices label:nth-child(2) select", str(places[1]))
        await browser.until("document.querySelectorAll('.session-list li').length === 1")
        await browser.run("select", ".list-choices label:nth-child(2) select", "")
        await browser.run("select", ".list-choices label:nth-child(3) select", "none")
        await browser.open(f"{server.url}/ui/#/sessions/{session}?agent=mock")
        await inspector.ready()
        await inspector.choose("Archive")
        await browser.until("document.querySelectorAll('.session-list li').length === 2")
        assert (await rpc.http.get(f"/v1/sessions/{session}")).json()["metadata"]["archived"] is True
        await browser.until_text("Archived", within=".filters")


async def test_sessions_are_shown_by_agent_and_by_being_at_work(tmp_path: Path, browser: Browser) -> None:
    config = f"[agents.second]\ncommand = {[sys.executable, '-m', 'sandbox_agent.mock_agent']!r}\n"
    async with running_server(tmp_path / "home", config=config) as server:
        inspector = Inspector(browser, server.url)
        await inspector.open()
        await inspector.start_session()
        await inspector.say("at rest")
        await inspector.until_status("Ready")
        await inspector.start_session(agent="second")
        await inspector.say("hang")
        await browser.until_text("Working", within=".filters")
        await browser.eval(
            "[...document.querySelectorAll('.filters button')].find(b => b.innerText.includes('Working')).click()"
        )
        await browser.until("document.querySelectorAll('.session-list li').length === 1")
        await browser.until_text("hang", within=".session-list")
        await browser.click(".filters button:nth-child(1)")
        await browser.until("document.querySelectorAll('.session-list li').length === 2")
        await browser.click("button[aria-label='Filter and group']")
        await browser.run("select", ".list-choices label:nth-child(1) select", "mock")
        await browser.until("document.querySelectorAll('.session-list li').length === 1")
        await browser.until_text("at rest", within=".session-list")


@pytest.mark.promise("P-inspector-3")
async def test_a_prompt_that_waits_can_be_removed_after_the_page_was_loaded_anew(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("slow 100000")
    await inspector.until_status("Working")
    await inspector.say("never to run")
    await browser.until_text("never to run", within=".waiting")
    await browser.eval("localStorage.clear() ?? location.reload()")
    await browser.until_text("never to run", within=".waiting")
    await browser.click(".waiting button[aria-label^='Remove']")
    await browser.until("!document.querySelector('.waiting')")


async def test_a_prompt_that_waits_can_stop_the_turn_and_go_first(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("slow 100000")
    await inspector.until_status("Working")
    await inspector.say("urgent words")
    await browser.click(".waiting button[aria-label^='Stop the turn']")
    await inspector.until_answer("urgent words")
    await browser.until_text("Stopped", within=".conversation")
    assert await browser.eval("document.querySelectorAll('.entry.user').length") == 2
