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
    await inspector.choose("Pin to the top")
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


async def test_a_plan_in_the_conversation_is_one_line_that_unfolds(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("plan")
    await inspector.until_status("Ready")
    await browser.until_text("of 3 done", within=".entry.plan summary")
    assert await browser.eval("document.querySelector('.entry.plan').offsetHeight") < 40
    await browser.click(".entry.plan summary")
    await browser.until("document.querySelectorAll('.entry.plan li').length === 3")


async def test_tokens_and_cost_are_told_turn_by_turn(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    for words in ("usage", "usage; usage", "no numbers", "usage"):
        await inspector.say(words)
        await inspector.until_status("Ready")
    await browser.click(".usage-link")
    prompts = "[...document.querySelectorAll('.usage-turns tbody .prompt')].map(node => node.innerText)"
    await browser.until(f'JSON.stringify({prompts}) === \'["usage","usage; usage","usage"]\'')
    widths = "[...document.querySelectorAll('.usage-turns td:nth-child(2) rect')].map(one => one.width.baseVal.value)"
    assert max(await browser.eval(widths)) == 100
    costs = "[...document.querySelectorAll('.usage-turns td:nth-child(3)')]"
    assert await browser.eval(f"{costs}.every(one => / USD$/.test(one.innerText))")
    await browser.screenshot("usage")
    await browser.press("Escape")
    await browser.until("!document.querySelector('dialog')")


async def test_the_session_list_is_resized_with_keys_and_stays_so(inspector: Inspector) -> None:
    browser = inspector.browser
    width = "document.querySelector('.sidebar').offsetWidth"
    before = await browser.eval(width)
    await browser.eval("document.querySelector('.sidebar .splitter').focus()")
    await browser.press("ArrowRight")
    await browser.until(f"{width} === {before + 16}")
    await browser.run("reload")
    await browser.until(f"document.querySelector('.sidebar') && {width} === {before + 16}")


async def test_model_and_mode_are_chosen_where_the_prompt_is_written(server: Server, inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    session = (await browser.eval("location.hash")).split("/")[2].split("?")[0]
    labels = "[...document.querySelectorAll('.composer .options label')].map(one => one.innerText.split('\\n')[0])"
    assert (await browser.eval(labels))[:2] == ["Mode", "Model"]
    await browser.run("select", ".composer .options label:nth-child(1) select", "code")
    await browser.until("document.querySelector('.composer .options label:nth-child(1) select').value === 'code'")
    await browser.run("select", ".composer .options label:nth-child(2) select", "mock-large")
    await browser.until("document.querySelector('.composer .options label:nth-child(2) select').value === 'mock-large'")
    await inspector.say("hello")
    await inspector.until_answer("hello")
    async with connected(server.url) as rpc:
        kept = (await rpc.http.get(f"/v1/sessions/{session}")).json()
    assert (kept["mode"], kept["model"]) == ("code", "mock-large")


async def test_the_theme_is_switched_and_stays_so(inspector: Inspector) -> None:
    browser = inspector.browser
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await browser.eval(ground)
    for name in ("system", "light"):
        await browser.click(f".topbar button[aria-label='Theme: {name}']")
    await browser.until(f"{ground} !== {light!r}")
    await browser.run("reload")
    await browser.until(f"document.querySelector('.topbar') && {ground} !== {light!r}")
    await browser.click(".topbar button[aria-label='Theme: dark']")
    await browser.until(f"{ground} === {light!r}")


async def test_a_page_without_a_session_leads_to_one_and_to_the_agents(inspector: Inspector) -> None:
    browser = inspector.browser
    await browser.click(".session.none button.primary")
    await browser.until("document.querySelector('dialog select[name=agent]')")
    await browser.press("Escape")
    await browser.until("!document.querySelector('dialog')")
    await browser.click(".session.none a.button")
    await browser.until_text("Mock", within=".agent-grid")
