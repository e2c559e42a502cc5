"""Signing in, and the basics that make the page usable for everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.browser import Browser, Inspector
from support.server import running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

_NAMELESS = """
[...document.querySelectorAll('button, a, input, select, textarea, summary, [tabindex="0"]')]
  .filter(node => node.checkVisibility() && !(
    node.getAttribute('aria-label') || node.innerText?.trim() || node.labels?.length || node.closest('label')
    || document.getElementById(node.getAttribute('aria-labelledby')) || node.getAttribute('title')))
  .map(node => node.outerHTML.slice(0, 120))
"""
_CONTRASTS = """
(() => {
  const probe = document.body.appendChild(document.createElement('span'));
  const light = name => {
    probe.style.color = `var(--${name})`;
    const [r, g, b] = getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number)
      .map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const pairs = ['text', 'muted', 'accent', 'good', 'busy', 'bad', 'ask'].flatMap(
    a => ['bg', 'surface'].map(b => [a, b]))
    .concat([['on-accent', 'accent'], ['muted', 'sunken'], ['bad', 'bad-soft'], ['ask', 'ask-soft']])
    .concat([['accent-strong', 'accent-soft'], ['text', 'added'], ['text', 'removed']]);
  const found = pairs.map(([a, b]) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return [`${a} on ${b}`, (x + 0.05) / (y + 0.05)];
  });
  probe.remove();
  return found;
})()
"""


async def test_a_token_is_asked_for_and_never_stands_in_the_address(tmp_path: Path, browser: Browser) -> None:
    async with running_server(tmp_path / "home", env={"SANDBOX_AGENT_TOKEN": "correct-horse"}) as server:
        await browser.open(f"{server.url}/ui/")
        await browser.until("document.querySelector('input[type=password]')")
        await browser.screenshot("sign-in")
        await browser.fill("input[type=password]", "wrong")
        await browser.press("Enter")
        await browser.until("document.querySelector('input[type=password]')?.value === ''")
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


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
async def test_every_control_has_a_name_and_text_stands_out(inspector: Inspector, theme: str, width: int) -> None:
    browser = inspector.browser
    await browser.eval(f"localStorage.setItem('sandbox-agent.theme', '{theme}')")
    await browser.run("reload")
    await browser.run("set", "viewport", str(width), "844" if width == 390 else "800")
    await inspector.start_session()
    await inspector.say("demo")
    await inspector.until_status("Asking")
    for tab in ("conversation", "protocol", "files"):
        await inspector.show(tab)
        assert await browser.eval(_NAMELESS) == []
        assert await browser.eval("document.documentElement.scrollWidth <= innerWidth"), tab
        await browser.screenshot(f"{tab}-{theme}-{width}")
    await browser.click(".topbar nav a:nth-child(2)")
    await browser.until_text("Mock", within=".agent-grid")
    assert await browser.eval(_NAMELESS) == []
    await browser.screenshot(f"agents-{theme}-{width}")
    low = [pair for pair in await browser.eval(_CONTRASTS) if pair[1] < 4.5]
    assert low == []


async def test_a_session_is_driven_by_keyboard_alone(inspector: Inspector) -> None:
    browser = inspector.browser
    await browser.run("focus", "#new-session")
    await browser.press("Enter")
    await browser.until("document.querySelector('dialog[open]')")
    await browser.until("document.querySelector('select[name=agent]')?.options.length")
    assert await browser.eval("document.querySelector('dialog').contains(document.activeElement)")
    await browser.run("focus", "#start-session")
    await browser.press("Enter")
    await inspector.ready()
    await browser.run("focus", "#prompt")
    await browser.run("keyboard", "type", "tool ls")
    await browser.press("Enter")
    await inspector.until_status("Asking")
    await browser.run("focus", ".ask.open .choices button")
    await browser.press("Space")
    await browser.until_text("The tool ran.")
