"""Prompts that wait, and what is asked meanwhile: the page shows what runs, what waits, and who decided."""

from __future__ import annotations

import asyncio
import json

import pytest

from support.browser import Inspector
from support.rpc import connected
from support.server import Server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

WAITING = "[...document.querySelectorAll('.waiting li .text')].map(node => node.innerText.trim())"
ALLOW = ".ask.open .choices button"


async def _until_waiting(inspector: Inspector, *texts: str) -> None:
    await inspector.browser.until(
        f"JSON.stringify({WAITING}) === {json.dumps(json.dumps(list(texts), separators=(',', ':')))}"
    )


async def _ask_and_queue(inspector: Inspector, *texts: str) -> None:
    await inspector.start_session()
    await inspector.say("tool ls")
    await inspector.until_status("Asking")
    for count, text in enumerate(texts, 1):
        await inspector.say(text)
        await _until_waiting(inspector, *texts[:count])


async def test_a_prompt_that_waits_leaves_the_open_permission_answerable(inspector: Inspector) -> None:
    browser = inspector.browser
    await _ask_and_queue(inspector, "second words")
    await inspector.until_status("Asking")
    await browser.until_text("Asking", within=".session-list")
    assert await browser.eval("document.querySelectorAll('.entry.user').length") == 1
    await browser.screenshot("queued")
    await browser.click(ALLOW)
    await inspector.until_answer("second words")
    await inspector.until_status("Ready")
    await _until_waiting(inspector)
    assert await inspector.answers() == ["The tool ran.", "second words"]


async def test_an_open_permission_stands_at_the_bottom_with_the_keyboard_on_it(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("tool ls; tool pwd")
    await browser.until("document.querySelector('.dock .ask.open button:enabled')")
    await browser.eval("document.querySelector('.dock .ask.open button').focus()")
    await browser.press("Enter")
    await browser.until_text("pwd", within=".dock .ask.open")
    await browser.until("document.activeElement.closest('.ask.open')")
    await browser.press("Enter")
    await inspector.until_status("Ready")
    await browser.until("document.activeElement.id === 'prompt'")


async def test_a_waiting_prompt_is_removed_edited_and_moved(inspector: Inspector) -> None:
    browser = inspector.browser
    await _ask_and_queue(inspector, "alpha", "beta", "gamma")
    await browser.click(".waiting li:nth-child(3) button[aria-label^='Run before']")
    await _until_waiting(inspector, "alpha", "gamma", "beta")
    await browser.click(".waiting li:nth-child(1) button[aria-label^='Remove']")
    await _until_waiting(inspector, "gamma", "beta")
    await browser.click(".waiting li:nth-child(2) button[aria-label^='Edit']")
    await _until_waiting(inspector, "gamma")
    await browser.until("document.querySelector('#prompt').value === 'beta'")
    await inspector.say("delta")
    await _until_waiting(inspector, "gamma", "delta")
    await browser.click(ALLOW)
    await inspector.until_answer("delta")
    assert await inspector.answers() == ["The tool ran.", "gamma", "delta"]


@pytest.mark.promise("P-inspector-3")
async def test_cancelling_says_so_once_and_keeps_what_waited(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("hang")
    await inspector.until_status("Working")
    await inspector.say("for later")
    await _until_waiting(inspector, "for later")
    await browser.click("#cancel")
    await inspector.until_status("Ready")
    await browser.until_text("Not sent", within=".waiting")
    text = await browser.eval("document.querySelector('.conversation').innerText")
    assert text.count("Stopped") == 1
    await browser.click(".waiting li button.small")
    await inspector.until_answer("for later")
    await _until_waiting(inspector)


async def test_a_turn_of_another_client_ends_without_asking_the_server_again_and_again(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("slow 60")
    await inspector.until_answer("tick 2")
    await browser.run("reload")
    await inspector.until_status("Working")
    await browser.run("network", "requests", "--clear")
    await inspector.until_answer("tick 60")
    await inspector.until_status("Ready")
    session = (await browser.eval("location.hash")).split("/")[2].split("?")[0]
    asked = [url for url in await browser.requests() if url.split("?")[0].endswith(f"/v1/sessions/{session}")]
    assert len(asked) <= 2


async def test_what_waits_is_shown_again_after_a_reload(inspector: Inspector) -> None:
    browser = inspector.browser
    await _ask_and_queue(inspector, "second words")
    await browser.run("reload")
    await inspector.ready()
    await _until_waiting(inspector, "second words")
    await inspector.until_status("Asking")
    await browser.click(ALLOW)
    await inspector.until_answer("second words")
    await _until_waiting(inspector)
    await inspector.until_status("Ready")


async def test_the_list_is_told_of_changes_and_does_not_ask_again_and_again(
    server: Server, inspector: Inspector
) -> None:
    browser = inspector.browser
    await browser.until_text("No sessions yet")
    await asyncio.sleep(1)  # the lists that are asked for at the start have been
    await browser.run("network", "requests", "--clear")
    async with connected(server.url) as rpc:
        session = await rpc.new_session()
        await browser.until("document.querySelectorAll('.session-list li').length === 1")
        asked = asyncio.create_task(rpc.prompt(session, "tool ls"))
        await browser.until_text("Asking", within=".session-list")
        await asyncio.sleep(5)  # longer than lists were asked for before
        listed = [url for url in await browser.requests() if "/v1/sessions" in url]
        assert listed == []
        asked.cancel()
