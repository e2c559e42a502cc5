"""Being told while looking elsewhere. The browser of the tests shows no notifications: what it is given is kept."""

from __future__ import annotations

import pytest

from support.browser import Inspector

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

_KEEP = """void (window.told = [], window.isAway = false,
  Object.defineProperty(document, 'hidden', { get: () => window.isAway }),
  window.Notification = class {
    static permission = 'default';
    static async requestPermission() { return this.permission = 'granted'; }
    constructor(title, { body }) { window.told.push([title, body]); window.last = this; }
  })"""
TOLD = "JSON.stringify(told)"


async def test_what_is_asked_and_done_is_told_only_to_those_who_look_elsewhere(inspector: Inspector) -> None:
    browser = inspector.browser
    await browser.eval(_KEEP)
    await inspector.start_session()
    await inspector.say("hello there")
    await inspector.until_status("Ready")
    await browser.eval("void (window.isAway = true)")
    await inspector.say("while it is off")
    await inspector.until_answer("while it is off")
    await inspector.until_status("Ready")
    await browser.click(".topbar button[aria-label='Notifications are off']")
    await browser.until("document.querySelector('.topbar button[aria-label=\"Notifications are on\"]')")
    assert await browser.eval("told") == []
    await inspector.say("tool ls")
    await browser.until(f"""{TOLD} === '[["hello there","The agent waits for an answer"]]'""")
    await browser.click(".ask.open .choices button")
    await browser.until("told.length === 2")
    assert await browser.eval("told[1]") == ["hello there", "The turn is over"]
    await browser.eval("void (window.isAway = false)")
    await inspector.say("seen as it happens")
    await inspector.until_answer("seen as it happens")
    await inspector.until_status("Ready")
    place = await browser.eval("location.hash")
    await browser.click(".topbar nav a:nth-child(2)")
    await browser.until_text("Mock", within=".agent-grid")
    await browser.eval("last.onclick()")
    await browser.until(f"location.hash === {place!r}")
    assert len(await browser.eval("told")) == 2
