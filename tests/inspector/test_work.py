"""Working with it: keys, the palette, finding words, earlier prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.browser import Browser, Inspector
from support.rpc import connected
from support.server import Server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


async def test_the_first_prompt_takes_few_keys_and_no_pointer(inspector: Inspector) -> None:
    browser = inspector.browser
    keys = ["n", "Tab", "Enter"]
    await browser.press(keys[0])
    await browser.until("document.activeElement.name === 'agent'")
    for key in keys[1:]:
        await browser.press(key)
    await inspector.ready()
    await browser.until("document.activeElement.id === 'prompt'")
    await browser.each(["keyboard", "type", "hello"], ["press", "Enter"])
    await inspector.until_answer("hello")


async def test_the_palette_and_the_list_of_shortcuts_open_with_keys(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("a session to be found")
    await inspector.until_status("Ready")
    await browser.press("Control+k")
    await browser.fill(".palette input", "files")
    await browser.press("Enter")
    await browser.until("location.hash.includes('tab=files')")
    await browser.press("Control+k")
    await browser.fill(".palette input", "to be found")
    await browser.until("document.querySelectorAll('.palette [role=option]').length === 1")
    await browser.press("Escape")
    await browser.until("!document.querySelector('dialog')")
    await browser.eval("document.activeElement.blur()")
    await browser.press("?")
    await browser.until_text("Find in the conversation", within="dialog .shortcuts")


async def test_words_are_found_in_a_conversation_of_which_little_is_drawn(server: Server, browser: Browser) -> None:
    inspector = Inspector(browser, server.url)
    async with connected(server.url) as rpc:
        session = await rpc.new_session()
        for turn in range(120):
            needle = "the needle" if turn in {20, 80} else ""
            await rpc.prompt(session, f"# Part {turn}\n\n{needle} {'Some words. ' * 20}")
        await browser.open(f"{server.url}/ui/#/sessions/{session}?agent=mock")
        await inspector.ready()
        await browser.until_text("Part 119", within=".conversation")
        await browser.press("Control+f")
        await browser.fill(".find input", "THE NEEDLE")
        await browser.until_text("1 of 4", within=".find")
        await browser.until_text("Part 20", within=".conversation")
        for _ in range(2):
            await browser.press("Enter")
        await browser.until_text("3 of 4", within=".find")
        await browser.until_text("Part 80", within=".conversation")
        await browser.until("CSS.highlights.get('found')?.size > 0")
        await browser.screenshot("find")
        await browser.press("Escape")
        await browser.until("!document.querySelector('.find')")


async def test_earlier_prompts_come_back_with_the_arrow_key(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    for words in ("the first", "the second"):
        await inspector.say(words)
        await inspector.until_answer(words)
    for expected in ("the second", "the first"):
        await browser.press("ArrowUp")
        await browser.until(f"document.querySelector('#prompt').value === '{expected}'")
    await browser.press("ArrowDown")
    await browser.until("document.querySelector('#prompt').value === 'the second'")


async def test_sessions_are_filtered_pinned_and_named_after_their_first_prompt(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("tool ls")
    await inspector.until_status("Asking")
    await browser.until_text("tool ls", within=".session-list .name")
    await inspector.start_session()
    await browser.click(".menu summary")
    await browser.click(".menu-items button:last-child")
    await browser.until("document.querySelector('.session-list li:first-child').innerText.includes('pinned')")
    await browser.click(".filters button:nth-child(2)")
    await browser.until("document.querySelectorAll('.session-list li').length === 1")
    await browser.until_text("tool ls", within=".session-list")


async def test_a_file_is_mentioned_and_sent_as_a_link(inspector: Inspector, tmp_path: Path) -> None:
    browser = inspector.browser
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("x = 1\n")
    await inspector.start_session(str(tmp_path))
    await browser.fill("#prompt", "look at @sr")
    await browser.until_text("@src/", within=".commands")
    await browser.press("Enter")
    await browser.until_text("@src/main.py", within=".commands")
    await browser.press("Enter")
    await browser.until("document.querySelector('#prompt').value === 'look at @src/main.py '")
    await browser.press("Enter")
    await inspector.until_answer("[resource_link]")
    await browser.until_text("src/main.py", within=".entry.user .attachment")


async def test_the_plan_stays_in_sight_while_its_turn_runs(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("plan; tool ls")
    await browser.until_text("2 of 3", within=".dock .pinned-plan")
    await browser.click(".ask.open .choices button")
    await inspector.until_status("Ready")
    await browser.until("!document.querySelector('.pinned-plan')")


async def test_the_session_list_is_resized_with_keys_and_stays_so(inspector: Inspector) -> None:
    browser = inspector.browser
    width = "document.querySelector('.sidebar').offsetWidth"
    before = await browser.eval(width)
    await browser.eval("document.querySelector('.sidebar .splitter').focus()")
    await browser.press("ArrowRight")
    await browser.until(f"{width} === {before + 16}")
    await browser.run("reload")
    await browser.until(f"document.querySelector('.sidebar') && {width} === {before + 16}")
