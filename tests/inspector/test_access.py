"""Signing in, and a page that needs no mouse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.browser import Browser, Inspector
from support.server import running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


@pytest.mark.promise("P-inspector-7")
async def test_a_token_is_asked_for_and_never_stands_in_the_address(tmp_path: Path, browser: Browser) -> None:
    async with running_server(tmp_path / "home", env={"SANDBOX_AGENT_TOKEN": "correct-horse"}) as server:
        await browser.open(f"{server.url}/ui/")
        await browser.until("document.querySelector('input[type=password]')")
        for theme in ("light", "dark"):
            await browser.run("set", "media", theme)
            for width in (390, 1280):
                await browser.resize(width, 800)
                await browser.screenshot(f"sign-in-{theme}-{width}")
        assert await browser.eval("document.querySelector('[role=alert]')") is None
        await browser.fill("input[type=password]", "wrong")
        await browser.press("Enter")
        await browser.until_text("This token is not valid. Check it and try again.", within="[role=alert]")
        assert await browser.eval("document.activeElement.getAttribute('aria-describedby')") == "wrong"
        await browser.screenshot("sign-in-refused-dark-1280")
        await browser.fill("input[type=password]", "correct-horse")
        await browser.press("Enter")
        await browser.until("document.querySelector('#new-session')")
        inspector = Inspector(browser, server.url)
        await inspector.start_session()
        await inspector.say("hello")
        await browser.until_text("hello", within=".entry.agent")
        assert "correct-horse" not in "".join(await browser.requests())
        assert "correct-horse" not in await browser.eval(
            "JSON.stringify(localStorage) + document.documentElement.outerHTML"
        )
        await _follow_a_shared_link(inspector)


async def _follow_a_shared_link(inspector: Inspector) -> None:
    """Somebody who has no token opens the link, and is at the same conversation."""
    browser = inspector.browser
    await browser.eval("void (navigator.clipboard.writeText = async text => { window.copied = text })")
    place = await browser.eval("location.hash")
    await inspector.choose("Copy a link to share")
    await browser.until("window.copied")
    link = str(await browser.eval("window.copied"))
    await browser.each(["cookies", "clear"], ["open", "about:blank"], ["open", link])
    await browser.until_text("hello", within=".entry.agent")
    assert await browser.eval("location.href") == f"{inspector.url}/ui/{place}"
    await browser.each(["cookies", "clear"], ["open", "about:blank"], ["open", link])
    await browser.until("document.querySelector('input[type=password]')")


@pytest.mark.promise("P-inspector-5")
async def test_a_session_is_driven_by_keyboard_alone(inspector: Inspector) -> None:
    browser = inspector.browser
    await _tab_to(browser, "#new-session")
    await browser.press("Enter")
    await browser.until("document.querySelector('dialog[open]')")
    await browser.until("document.querySelector('select[name=agent]')?.options.length")
    await browser.until("document.querySelector('select[name=model]:enabled')")
    await browser.until("document.activeElement?.name === 'agent'")
    order = await _tab_to(browser, "#start-session")
    assert [name for name in order if name] == ["cwd", "model", "mode", "permissionMode", "title", "start-session"]
    await browser.press("Enter")
    await inspector.ready()
    await browser.until("document.activeElement?.id === 'prompt'")
    await browser.run("keyboard", "type", "tool ls")
    await browser.press("Enter")
    await inspector.until_status("Asking")
    await _tab_to(browser, ".ask.open .choices button", key="Shift+Tab")
    assert await browser.eval("getComputedStyle(document.activeElement).outline.includes('solid 2px')")
    if not await browser.eval("document.activeElement.matches(':first-child')"):
        await _tab_to(browser, ".ask.open .choices button:first-child", key="Shift+Tab")
    await browser.press("Enter")
    await browser.until_text("The tool ran.")
    await _tab_to(browser, ".menu summary", key="Shift+Tab")
    await browser.press("Enter")
    await browser.until("document.querySelector('.menu').open")
    await browser.press("Tab")
    await browser.press("Enter")
    await browser.until("document.activeElement?.name === 'title'")
    await browser.press("Escape")
    await browser.until("!document.querySelector('dialog')")
    await browser.until("document.activeElement?.closest('.menu')")


async def _tab_to(browser: Browser, selector: str, *, key: str = "Tab") -> list[str]:
    """Press a key until the element has the focus; gives the names of what had it on the way."""
    focus = f"""(() => {{
      const node = document.activeElement;
      return [node.matches({json.dumps(selector)}), node.name || node.id || ""];
    }})()"""
    seen: list[str] = []
    for _ in range(40):
        _, there = await browser.each(["press", key], ["eval", focus])
        is_there, name = there["result"]
        seen.append(name)
        if is_there:
            return seen
    raise AssertionError(f"{selector} is not reached: {seen}")
