"""axe-core in every view, light and dark, narrow and wide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.browser import ROOT, Browser, Inspector, missing
from support.server import running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(300)]

AXE = ROOT / "inspector" / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {1440: 900, 390: 844}
_RUN = """axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => JSON.stringify(
  violations.flatMap(({ id, nodes }) =>
    nodes.slice(0, 3).map(({ html, any }) => [id, html.slice(0, 160), any[0]?.message]))
))"""


async def _look(browser: Browser, view: str) -> dict[str, list[str]]:
    """What axe has against the view, by view; nothing where all is well."""
    if not AXE.exists():
        missing("run npm ci in inspector/")
    commands = [["eval", f"{AXE.read_text()};void 0"]]
    for width, height in SIZES.items():
        commands.append(["set", "viewport", str(width), str(height)])
        for theme in ("light", "dark"):
            commands += [["eval", f"void (document.documentElement.dataset.theme = '{theme}')"], ["eval", _RUN]]
    answers = await browser.each(*commands, ["set", "viewport", "1280", "800"])
    found = [json.loads(answer["result"]) for answer in answers if isinstance(answer.get("result"), str)]
    assert len(found) == 2 * len(SIZES), view
    problems = {str(violation) for violations in found for violation in violations}
    return {view: sorted(problems)} if problems else {}


async def test_no_view_has_violations(inspector: Inspector, tmp_path: Path) -> None:
    browser = inspector.browser
    found: dict[str, list[str]] = {}
    (tmp_path / "notes.md").write_text("# Notes\n")
    found |= await _look(browser, "empty")
    await browser.press("n")
    await browser.until("document.querySelector('select[name=model]:enabled')")
    await browser.click(".setup summary")
    await browser.click(".mcp-servers > button")
    found |= await _look(browser, "new session")
    await browser.press("Escape")
    await inspector.start_session(str(tmp_path))
    await browser.fill("#prompt", "/")
    await browser.until("document.querySelectorAll('.commands [role=option]').length > 10")
    found |= await _look(browser, "commands")
    await inspector.say("hang")
    await inspector.until_status("Working")
    found |= await _look(browser, "working")
    await browser.click("#cancel")
    await inspector.until_status("Ready")
    await inspector.say("demo")
    await inspector.until_status("Asking")
    await inspector.say("this waits")
    await browser.until("document.querySelector('.waiting li')")
    found |= await _look(browser, "permission and queue")
    for _ in range(2):
        await browser.click(".ask.open .choices button")
    await inspector.until_status("Ready")
    await inspector.say("- [x] done\n\n```python\nx = 1\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |")
    await browser.until("document.querySelector('.entry.agent .hljs-number')")
    found |= await _look(browser, "conversation")
    await inspector.say("usage; plan")
    await browser.until("document.querySelector('.usage-link')")
    await inspector.say("$x^2$\n\n```mermaid\ngraph LR\n  A --> B\n```")
    await browser.until("document.querySelector('.entry.agent .diagram.drawn')")
    await browser.click(".usage-link")
    await browser.until("document.querySelector('.usage-turns td')")
    found |= await _look(browser, "usage")
    await browser.press("Escape")
    await inspector.say("elicit")
    await browser.until("document.querySelector('.ask.open input[name=name]')")
    found |= await _look(browser, "form")
    await browser.click(".ask.open .choices button:nth-child(2)")
    await inspector.until_status("Ready")
    await browser.press("Control+k")
    await browser.until("document.querySelector('.palette')")
    found |= await _look(browser, "palette")
    await browser.press("Escape")
    await browser.eval("document.activeElement.blur()")
    await browser.press("?")
    await browser.until("document.querySelector('.shortcuts')")
    found |= await _look(browser, "shortcuts")
    await browser.press("Escape")
    await inspector.say("question")
    await browser.until("document.querySelector('.ask.open input')")
    found |= await _look(browser, "question")
    await browser.click(".ask.open input")
    await browser.click(".ask.open button[type=submit]")
    await inspector.until_status("Ready")
    await inspector.say("auth")
    await browser.until("document.querySelector('.note.error button')")
    await browser.click(".menu summary")
    found |= await _look(browser, "failure and menu")
    await browser.press("Escape")
    await browser.fill(".sidebar input[type=search]", "this waits")
    await browser.until("document.querySelector('.search-results .hit mark')")
    found |= await _look(browser, "search")
    await browser.fill(".sidebar input[type=search]", "")
    for tab, ready in ((2, ".envelope"), (3, ".envelope"), (4, ".entry-row"), (5, ".hunks .diff")):
        await browser.click(f".tabs a:nth-child({tab})")
        await browser.until(f"document.querySelector({json.dumps(ready)})")
        found |= await _look(browser, f"tab {tab}")
    await browser.click(".tabs a:nth-child(4)")
    await browser.until_text("notes.md", within=".entries")
    await browser.click(".entries > ul > li:last-child .entry-row")
    await browser.until("document.querySelector('.file .source')")
    found |= await _look(browser, "file")
    await browser.click(".tabs a:nth-child(5)")
    await browser.until("document.querySelector('.hunks .diff')")
    await browser.click(".hunks .diff figcaption button")
    await browser.until("document.querySelector('.hunks .diff table.split')")
    found |= await _look(browser, "changes side by side")
    await browser.click(".tabs a:nth-child(2)")
    await browser.until("document.querySelector('.envelope')")
    await browser.click(".virtual-row:nth-last-child(3) .envelope")
    await browser.until("document.querySelector('.envelope-detail')")
    found |= await _look(browser, "message of the protocol")
    buttons = "[...document.querySelectorAll('.protocol .toolbar button')]"
    await browser.eval(f"{buttons}.find(one => one.innerText === 'Waterfall').click()")
    await browser.until("document.querySelector('.waterfall')")
    found |= await _look(browser, "waterfall")
    await browser.click(".tabs a:nth-child(6)")
    await browser.click(".process-tabs > button")
    await browser.until("document.querySelector('.pane .status.good')")
    found |= await _look(browser, "terminal")
    await browser.click(".topbar nav a:nth-child(3)")
    await browser.until("document.querySelector('.process-list li')")
    found |= await _look(browser, "processes")
    await inspector.show_agents()
    found |= await _look(browser, "agents")
    await browser.click(".topbar nav a:nth-child(1)")
    await browser.click(".session-list a")
    await inspector.choose("Terminate")
    await browser.until("document.querySelector('dialog footer button.danger')")
    found |= await _look(browser, "terminate")
    await browser.click("dialog footer button.danger")
    await inspector.until_status("Ended")
    found |= await _look(browser, "ended")
    assert found == {}, json.dumps(found, indent=1)


async def test_the_sign_in_has_no_violations(tmp_path: Path, browser: Browser) -> None:
    async with running_server(tmp_path / "home", env={"SANDBOX_AGENT_TOKEN": "correct-horse"}) as server:
        await browser.open(f"{server.url}/ui/")
        await browser.until("document.querySelector('input[type=password]')")
        found: dict[str, list[str]] = {}
        for scheme in ("light", "dark"):  # nobody has chosen a theme yet
            await browser.run("set", "media", scheme)
            found |= await _look(browser, f"sign-in {scheme}")
        await browser.fill("input[type=password]", "wrong")
        await browser.press("Enter")
        await browser.until("document.querySelector('[role=alert]')")
        for scheme in ("light", "dark"):
            await browser.run("set", "media", scheme)
            found |= await _look(browser, f"sign-in refused {scheme}")
        assert found == {}, json.dumps(found, indent=1)
