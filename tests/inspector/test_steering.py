"""Prompts that go into a turn that runs, where the agent can take them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.browser import Inspector
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

AGENT = Path(__file__).with_name("steered_agent.py")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    config = f"[agents.steered]\nname = 'Steered'\ncommand = {[sys.executable, str(AGENT)]!r}\n"
    async with running_server(tmp_path / "home", config=config) as running:
        yield running


async def test_a_prompt_is_added_to_the_turn_that_runs_and_stays_there(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session(agent="steered")
    await inspector.say("wait")
    await inspector.until_answer("I wait for more.")
    await browser.each(["fill", "#prompt", "use tabs"], ["press", "Control+Enter"])  # at once
    await inspector.until_answer("Heard: use tabs")
    await inspector.say("enough")  # or after it had to wait
    await browser.click(".waiting button[aria-label='Add to the running turn: enough']")
    await inspector.until_answer("Heard: enough")
    await inspector.until_status("Ready")
    said = ["wait", "I wait for more.", "use tabs", "Heard: use tabs", "enough", "Heard: enough"]
    texts = "[...document.querySelectorAll('.entry .message')].map(node => node.innerText.trim())"
    assert await browser.eval(texts) == said
    assert await browser.eval("document.querySelector('.waiting')") is None
    await browser.until_text("added to the turn", within=".conversation")
    await browser.run("reload")
    await inspector.until_status("Ready")
    await inspector.until_answer("Heard: enough")
    assert await browser.eval(texts) == said


async def test_an_agent_that_cannot_is_not_asked_to(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("tool ls")
    await inspector.until_status("Asking")
    await inspector.say("later")
    await browser.until("document.querySelector('.waiting li')")
    await browser.fill("#prompt", "more")
    await browser.until("document.querySelector('#send')")
    assert await browser.eval("document.querySelector('#steer, [aria-label^=\"Add to the running\"]')") is None
