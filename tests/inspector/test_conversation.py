"""The inspector end to end: a real server, the built-in agent, a real browser."""

from __future__ import annotations

import pytest

from support.browser import Inspector

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


async def test_a_message_is_sent_and_its_answer_streams_in(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("Hello **world**")
    await browser.until("document.querySelector('.entry.agent strong')?.innerText === 'world'")
    await inspector.until_status("Ready")
    assert await inspector.answers() == ["Hello world"]
    await inspector.say("slow 40")
    await browser.until_text("tick 2")
    assert "tick 40" not in (await inspector.answers())[-1]
    await browser.until_text("tick 40")
    await browser.screenshot("conversation")


async def test_a_permission_is_asked_and_answered(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("edit notes.txt")
    await inspector.until_status("Asking")
    await browser.until_text("hello, world", within=".ask.open .diff")
    await browser.screenshot("permission")
    await browser.click(".ask.open .choices button")
    await browser.until_text("Allow once · by you", within=".ask")
    await browser.until_text("Edited /tmp/notes.txt.")
    await inspector.say("tool ls")
    await browser.until("document.querySelector('.ask.open .command')?.innerText.trim() === 'ls'")
    await browser.click(".ask.open .choices button:nth-child(3)")
    await browser.until_text("The permission was rejected.")
    await inspector.until_status("Ready")


async def test_a_step_is_one_quiet_line_with_who_allowed_it_and_a_prompt_tells_when_and_how_long(
    inspector: Inspector,
) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("tool ls")
    await browser.click(".ask.open .choices button")
    await inspector.until_answer("The tool ran.")
    assert await browser.eval("document.querySelectorAll('.tool').length") == 1
    assert await browser.eval("document.querySelector('.tool').offsetHeight") < 40
    assert not await browser.eval("document.querySelector('.tool').open")
    assert await browser.eval("document.querySelector('.entry:has(.tool) .ask.of-tool').innerText.includes('by you')")
    await browser.click(".tool summary")
    await browser.until("document.querySelector('.tool .tool-body').checkVisibility()")
    await inspector.say("edit notes.txt")
    await browser.click(".ask.open .choices button")
    await inspector.until_answer("Edited /tmp/notes.txt.")
    both = "[...document.querySelectorAll('.entry:has(.tool)')].at(-1)"
    assert await browser.eval(f"[{both}.querySelectorAll('.diff').length, {both}.querySelectorAll('.ask').length]") == [
        1,
        1,
    ]
    await browser.until(
        "/^\\d+:\\d\\d.* · (\\d+\\.\\d s|\\d+ ms)$/.test(document.querySelector('.entry.user .when').innerText)"
    )


async def test_a_question_and_a_form_are_answered(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("question multi")
    await browser.click(".ask.open input[value=green]")
    await browser.screenshot("question")
    await browser.click(".ask.open button[type=submit]")
    await browser.until_text('"answers":[["green"]]')
    await inspector.say("elicit")
    await browser.until("document.querySelector('.ask.open input[name=name]')")
    await browser.fill(".ask.open input[name=name]", "Ada")
    await browser.click(".ask.open button[type=submit]")
    await browser.until_text('"name":"Ada"')


async def test_a_turn_is_cancelled(inspector: Inspector) -> None:
    await inspector.start_session()
    await inspector.say("hang")
    await inspector.until_status("Working")
    await inspector.browser.click("#cancel")
    await inspector.until_status("Ready")
    await inspector.browser.until_text("Stopped", within=".conversation")


async def test_a_failure_says_why(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("crash 3")
    await browser.until_text("The agent stopped (exit code 3)", within=".note.error strong")
    await inspector.until_status("Failed")  # as the list of sessions says
    await browser.until_text("Failed", within=".session-list .status")
    assert "about to crash" not in await browser.eval("document.querySelector('.note.error').innerText")
    await browser.click(".note.error summary")
    await browser.until_text("mock agent: about to crash", within=".note.error")
    await inspector.ready()
    await inspector.say("hello again")
    await inspector.until_answer("hello again")
    await inspector.until_status("Ready")


@pytest.mark.promise("P-inspector-1")
async def test_a_reload_keeps_the_history_and_the_open_question(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("first words")
    await browser.until_text("first words", within=".entry.agent")
    await inspector.say("tool ls")
    await inspector.until_status("Asking")
    await browser.run("reload")
    await inspector.ready()
    assert await inspector.answers() == ["first words"]
    await inspector.until_status("Asking")
    await browser.until("document.querySelector('.ask.open .choices button:enabled')")
    await browser.click(".ask.open .choices button")
    await browser.until_text("The tool ran.")
    await inspector.until_status("Ready")


async def test_the_protocol_view_shows_envelopes_both_ways(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("plan")
    await inspector.until_status("Ready")
    await inspector.show("protocol")
    await browser.until("document.querySelectorAll('.envelope').length > 5")
    directions = await browser.eval("[...document.querySelectorAll('.envelope .direction')].map(n => n.innerText)")
    assert {"→ client", "← agent"} <= set(directions)
    await browser.fill(".protocol input[type=search]", "session/prompt")
    await browser.until("document.querySelectorAll('.envelope').length === 1")
    await browser.click(".envelope")
    await browser.until_text('"method": "session/prompt"', within=".envelope-detail")
    await browser.screenshot("protocol")


async def test_twenty_thousand_updates_leave_the_page_usable(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("chunks 20000 60")
    await browser.fill("#prompt", "typed while it streams")
    await inspector.until_status("Ready")
    assert await browser.eval("document.querySelector('#prompt').value") == "typed while it streams"
    await browser.until("document.querySelector('.conversation').innerText.includes('20000 ')")
    await inspector.show("protocol")
    await browser.until("document.querySelectorAll('.envelope').length > 10")
    count = await browser.eval("Number(document.querySelector('.count').innerText.match(/\\d+/)[0])")
    assert count > 20_000
    assert await browser.eval("document.querySelectorAll('.envelope').length") < 200
