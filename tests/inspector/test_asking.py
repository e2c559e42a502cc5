"""Forms and questions of every shape, and messages whose parts keep their order."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.browser import Inspector
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

AGENT = Path(__file__).with_name("asking_agent.py")
SEND = ".ask.open button[type=submit]"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    config = f"[agents.asks]\nname = 'Asking'\ncommand = {[sys.executable, str(AGENT)]!r}\n"
    async with running_server(tmp_path / "home", config=config) as running:
        yield running


async def test_a_form_lets_nothing_through_that_its_schema_forbids(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session(agent="asks")
    await inspector.say("form")
    await browser.until("document.querySelector('.ask.open input[name=age]:enabled')")
    assert await browser.eval("document.querySelector('.ask.open input[name=day]').type") == "date"
    await browser.each(["fill", "input[name=age]", "500"], ["fill", "input[name=mail]", "nobody"], ["click", SEND])
    assert await browser.eval("document.querySelector('.ask.open input[name=age]').validity.rangeOverflow")
    await browser.each(["fill", "input[name=age]", "50"], ["click", SEND])
    assert await browser.eval("document.querySelector('.ask.open input[name=mail]').validity.typeMismatch")
    await browser.each(["fill", "input[name=mail]", "ada@example.org"], ["click", SEND])
    await browser.until_text("Choose at least one", within=".ask.open")
    for topping in ("olive", "onion", "caper"):
        await browser.click(f".ask.open input[value={topping}]")
    await browser.click(SEND)
    await browser.until_text("Choose at most 2", within=".ask.open")
    await browser.screenshot("form-checked")
    await browser.each(["click", ".ask.open input[value=caper]"], ["select", "select[name=size]", "l"], ["click", SEND])
    await inspector.until_answer('"age": 50, "mail": "ada@example.org", "size": "l", "toppings": ["olive", "onion"]')
    await browser.until_text("ada@example.org", within=".settled-ask")


async def test_a_question_without_options_or_with_plain_ones_can_be_answered(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session(agent="asks")
    await inspector.say("bare")
    await browser.fill(".ask.open input[type=text]", "Rosebud")
    await browser.click(SEND)
    await inspector.until_answer('[["Rosebud"]]')
    await inspector.say("plain")
    await browser.until_text("blue", within=".ask.open")
    await browser.click(".ask.open input[value=blue]")
    await browser.click(SEND)
    await inspector.until_answer('[["blue"]]')
    await inspector.say("earlier")
    await browser.click(".ask.open input[value=right]")
    await browser.click(SEND)
    await inspector.until_answer('"_meta": {"sandboxagent.dev": {"answers": [["right"]]')


async def test_text_and_images_of_a_message_keep_their_order_and_images_can_be_enlarged(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session(agent="asks")
    await inspector.say("mixed")
    await inspector.until_status("Ready")
    messages = "[...document.querySelectorAll('.entry.agent .message')]"
    seen = f"{messages}.map(one => one.querySelector('img') ? 'image' : one.innerText)"
    assert await browser.eval(seen) == ["before the picture", "image", "after the picture"]
    await browser.click(".entry.agent .zoom")
    await browser.until("document.querySelector('dialog .large-image')?.naturalWidth === 40")
    await browser.press("Escape")
    await browser.until("!document.querySelector('dialog')")


async def test_a_large_diff_shows_what_changed_and_which_words(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session(agent="asks")
    await inspector.say("change")
    await browser.until("document.querySelectorAll('.diff tr.added').length === 2")
    assert await browser.eval("document.querySelectorAll('.diff tr.removed').length") == 2
    changed = "[...document.querySelectorAll('.diff .changed')].map(node => node.innerText)"
    assert await browser.eval(changed) == ["1500", "'other'"]
    await browser.until("document.querySelector('.diff .hljs-number')")
    await browser.screenshot("diff-large")


async def test_a_fork_that_the_agent_refuses_says_so_and_what_to_do_instead(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session(agent="asks")
    await inspector.choose("Fork")
    await browser.until_text("The session could not be forked", within="dialog h2")
    await browser.until_text("This agent cannot fork sessions. Start a new session in the same", within="dialog")
    await browser.until("[...document.querySelectorAll('dialog button')].some(one => one.innerText === 'Try again')")
    await browser.press("Escape")
    await browser.until("!document.querySelector('dialog')")
