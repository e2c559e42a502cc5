"""Conversations with an agent of ACP version 2 in the inspector: live, and after the page was loaded anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.browser import Browser, Inspector
from support.rpc import connected
from support.server import Server, mock_agents, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path / "home", config=mock_agents(second="--protocol 2")) as running:
        yield running


async def _protocol(browser: Browser) -> str:
    text: str = await browser.eval("document.querySelector('.protocol').innerText")
    return text


async def test_a_conversation_of_version_2_is_shown_whole_live_and_after_a_reload(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session(agent="second")
    await inspector.say("Hello **world**")
    await browser.until("document.querySelector('.entry.agent strong')?.innerText === 'world'")
    await inspector.until_status("Ready")
    await inspector.say("edit notes.txt; terminal echo printed; plan; kinds")
    await inspector.until_status("Asking")
    await browser.until_text("The mock agent asks first.", within=".ask.open")
    await browser.until_text("hello, world", within=".ask.open .diff")
    await browser.screenshot("second-permission")
    await browser.click(".ask.open .choices button")
    await inspector.until_status("Ready")
    await _is_whole(browser)
    await browser.screenshot("second-live")
    before = await browser.eval("document.querySelectorAll('.entry').length")
    await browser.run("reload")
    await inspector.ready()
    await _is_whole(browser)
    assert await browser.eval("document.querySelectorAll('.entry').length") == before
    await browser.screenshot("second-history")
    await inspector.show("protocol")
    await browser.until_text("state_update", within=".protocol")
    assert "user_message" in await _protocol(browser)
    await browser.screenshot("second-protocol")


async def _is_whole(browser: Browser) -> None:
    for text in ("Allow once", "The disk is nearly full", "Compaction completed", "Subagent: A helper", "printed"):
        await browser.until_text(text, within=".conversation")
    users = "[...document.querySelectorAll('.entry.user')].map(node => node.innerText.trim().split('\\n')[0])"
    assert await browser.eval(users) == ["Hello world", "edit notes.txt; terminal echo printed; plan; kinds"]
    assert "could not be read" not in await browser.eval("document.querySelector('.conversation').innerText")


async def test_work_of_a_version_2_agent_is_seen_by_all_and_ended_from_the_inspector(
    inspector: Inspector, server: Server
) -> None:
    browser = inspector.browser
    await inspector.start_session(agent="second")
    session = (await browser.eval("location.hash")).split("/")[-1].split("?")[0]
    async with connected(server.url, "second", version=2) as other, other.stream() as events:
        await other.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        await other.prompt(session, "hang")
        await inspector.until_status("Working")
        await browser.until_text("hang", within=".entry.user")
        await browser.click("#cancel")
        await inspector.until_status("Ready")
        await browser.until_text("Stopped", within=".conversation")
        await events.wait_for(lambda message: message.get("params", {}).get("update", {}).get("state") == "idle")


async def test_the_agents_view_tells_which_version_an_agent_speaks(inspector: Inspector) -> None:
    await inspector.start_session(agent="second")
    await inspector.show_agents()
    await inspector.browser.until_text("ACP 2", within=".agent-grid")
