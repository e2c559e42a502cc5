"""Every view in light and dark, wide and narrow: nothing without a name, nothing cut off, everything readable."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox_agent.agents.surroundings import current_platform
from support import showing_agent
from support.browser import Browser, Inspector
from support.loopback_site import TINY_AGENT, LoopbackSite, Page, binary_entry, tar_of
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]

SIZES = {1280: 800, 390: 844}
THEMES = ("light", "dark")
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
_SCROLLS = """[document.documentElement.scrollWidth > innerWidth, document.documentElement.scrollHeight > innerHeight,
  [...document.querySelectorAll('dialog, .usage-turns')].some(box => box.scrollWidth > box.clientWidth)]"""


@pytest.fixture
def site() -> Iterator[LoopbackSite]:
    with LoopbackSite() as site:
        entries = [binary_entry(name, site.url(f"/{name}.tar.gz"), platform=current_platform()) for name in _AGENTS]
        site.publish_registry(*entries)
        site.pages["/gemini.tar.gz"] = Page(tar_of({"bin/tiny": TINY_AGENT}), stalled=threading.Event())
        yield site


_AGENTS = ("gemini", "qwen-code")


@pytest.fixture
async def server(site: LoopbackSite, tmp_path: Path) -> AsyncIterator[Server]:
    config = f"[agents.shows]\nname = 'Showing'\ncommand = {[sys.executable, showing_agent.__file__]!r}\n"
    env = {"SANDBOX_AGENT_ACP_REGISTRY_URL": site.url("/registry.json"), "PATH": "/usr/bin:/bin"}
    async with running_server(tmp_path / "home", config=config, env=env) as running:
        yield running


async def _look(browser: Browser, view: str) -> None:
    """Take the view's pictures, and check each."""
    commands: list[list[str]] = []
    for width, height in SIZES.items():
        commands.append(["set", "viewport", str(width), str(height)])
        for theme in THEMES:
            where = json.dumps(f"{view}, {theme}, {width} wide")
            commands += [
                ["eval", f"void (document.documentElement.dataset.theme = '{theme}')"],
                ["eval", f"JSON.stringify([{where}, {_NAMELESS.strip()}, {_SCROLLS}, {_CONTRASTS.strip()}])"],
                ["screenshot", str(browser.artifact(f"{view}-{theme}-{width}.png"))],
            ]
    answers = await browser.each(*commands, ["set", "viewport", "1280", "800"])
    seen = [json.loads(answer["result"]) for answer in answers if isinstance(answer.get("result"), str)]
    assert len(seen) == len(SIZES) * len(THEMES)
    for where, nameless, scrolls, contrasts in seen:
        assert nameless == [], where
        assert scrolls == [False, False, False], f"{where}: the page itself, or a dialog sideways, scrolls"
        assert [pair for pair in contrasts if pair[1] < 4.5] == [], where


async def test_the_views_of_a_conversation(inspector: Inspector, tmp_path: Path) -> None:
    browser = inspector.browser
    await _look(browser, "empty")
    await browser.click("#new-session")
    await browser.until("document.querySelector('select[name=model]:enabled')?.options.length > 2")
    await _look(browser, "new-session")
    await browser.press("Escape")
    await inspector.start_session()
    await browser.fill("#prompt", "/")
    await browser.until("document.querySelectorAll('.commands [role=option]').length > 10")
    await _look(browser, "commands")
    await inspector.say("demo")
    await inspector.until_status("Asking")
    await _look(browser, "permission")
    await browser.click(".ask.open .choices button")
    await browser.until_text("hello, world", within=".ask.open")
    await _look(browser, "permission-diff")
    await browser.click(".ask.open .choices button")
    await inspector.until_status("Ready")
    await inspector.say("question multi")
    await inspector.until_status("Asking")
    await _look(browser, "question")
    await browser.click(".ask.open input")
    await browser.click(".ask.open button[type=submit]")
    await inspector.until_status("Ready")
    await inspector.say("elicit")
    await browser.until("document.querySelector('.ask.open input[name=name]')")
    await _look(browser, "form")
    await browser.fill(".ask.open input[name=name]", "Ada")
    await browser.click(".ask.open button[type=submit]")
    await inspector.until_status("Ready")
    await inspector.say("image; usage; crash 3")
    await browser.until_text("The agent stopped (exit code 3)")
    await _look(browser, "failure")
    await inspector.ready()
    await browser.click(".usage-link")
    await browser.until("document.querySelector('.usage-turns td')")
    await _look(browser, "usage")
    await browser.press("Escape")
    for tab in ("protocol", "both"):
        await inspector.show(tab)
        await browser.until("document.querySelectorAll('.envelope').length > 5")
        await _look(browser, tab)
    waterfall = "[...document.querySelectorAll('.protocol .toolbar button')].find(b => b.innerText === 'Waterfall')"
    await browser.eval(f"{waterfall}.click()")
    await browser.until("document.querySelector('.turn-spans .span')")
    await _look(browser, "waterfall")
    await browser.eval(f"{waterfall}.click()")
    await browser.until("document.querySelectorAll('.envelope').length > 5")
    await browser.click(".virtual-row:nth-last-child(3) .envelope")
    await browser.until("document.querySelector('.envelope-detail')")
    await _look(browser, "envelope")
    await browser.click(".menu summary")
    await _look(browser, "menu")
    await browser.click(".menu-items button.danger")
    await _look(browser, "terminate")
    await browser.click("dialog footer button.danger")
    await inspector.until_status("Ended")
    await inspector.show("conversation")
    await browser.until_text("ended", within=".session-list .tag")
    assert await browser.eval("document.querySelector('.note.error button')") is None
    await _look(browser, "ended")


async def test_the_views_of_work_files_and_agents(inspector: Inspector, tmp_path: Path) -> None:
    browser, work = inspector.browser, tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "a-rather-long-file-name-that-has-to-be-cut-somewhere-in-a-narrow-window.txt").write_text("x" * 3000)
    (work / "notes.md").write_text("# Notes\n\n" + "Some words that go on for a while. " * 30)
    await inspector.start_session(str(work), agent="shows")
    await inspector.say("changes")
    await inspector.until_status("Ready")
    await _look(browser, "diff-inline")
    await browser.click(".diff figcaption button")
    await _look(browser, "diff-split")
    await browser.resize(390, 844)
    name = "document.querySelector('.diff figcaption .path').lastElementChild"
    assert await browser.eval(f"{name}.innerText") == "lines.txt"
    seen = "(({ right }, box) => right <= box.right)"
    frame = "document.querySelector('.diff figcaption .path').getBoundingClientRect()"
    assert await browser.eval(f"{seen}({name}.getBoundingClientRect(), {frame})")
    await inspector.say("streams")
    await browser.until_text("100 %", within=".tool .terminal pre")
    await _look(browser, "terminal-running")
    (work / "go").touch()
    await browser.until_text("Exit code 1")
    await _look(browser, "terminal-ended")
    await inspector.show("files")
    await browser.until_text("notes.md", within=".entries")
    await _look(browser, "files")
    await browser.click(".entries li:nth-child(4) .entry-row")
    await browser.until_text("Some words", within=".file pre")
    await _look(browser, "file")
    await browser.click(".tabs a:nth-child(5)")
    await browser.until("document.querySelector('.hunks .diff')")
    await _look(browser, "changes")
    await browser.click(".tabs a:nth-child(6)")
    await browser.click(".process-tabs > button")
    await browser.until("document.querySelector('.pane .status.good') && document.activeElement.closest('.xterm')")
    await browser.each(["keyboard", "type", "ls -la"], ["press", "Enter"])
    await browser.until_text("notes.md", within=".xterm-rows")
    await _look(browser, "shell")
    await browser.click(".topbar nav a:nth-child(3)")
    await browser.until("document.querySelector('.process-list li')")
    await _look(browser, "processes")
    await browser.click(".topbar nav a:nth-child(1)")
    await browser.fill("input[aria-label='Search sessions']", "changes")
    await browser.until("document.querySelector('.search-results .hit mark')")
    await _look(browser, "search")
    await inspector.show_agents()
    await browser.run("scrollintoview", "#agent-gemini .install button")
    await browser.click("#agent-gemini .install button")
    await browser.until_text("Downloading", within="#agent-gemini .steps")  # its card has grown: nothing moves now
    await browser.run("scrollintoview", "#agent-qwen .install button")
    await browser.click("#agent-qwen .install button")
    await browser.until_text("404", within="#agent-qwen .error-line")
    await browser.run("scrollintoview", "#agent-mock")
    await browser.click("#agent-mock details:nth-of-type(1) summary")
    await browser.until_text("Mock Small", within="#agent-mock .names")
    await browser.click("#agent-mock details:nth-of-type(2) summary")
    await browser.until("document.querySelector('#agent-mock pre')")
    await _look(browser, "agents")
    await browser.run("scrollintoview", "#agent-qwen .install button")
    await _look(browser, "agents-installing")
