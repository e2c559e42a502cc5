"""axe-core in every view, light and dark, narrow and wide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.browser import ROOT, Browser, Inspector, missing

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
    found |= await _look(browser, "new session")
    await browser.press("Escape")
    await inspector.start_session(str(tmp_path))
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
    await inspector.say("elicit")
    await browser.until("document.querySelector('.ask.open input[name=name]')")
    found |= await _look(browser, "form")
    await browser.click(".ask.open .choices button:nth-child(2)")
    await inspector.until_status("Ready")
    await browser.press("Control+k")
    await browser.until("document.querySelector('.palette')")
    found |= await _look(browser, "palette")
    await browser.press("Escape")
    for tab, ready in ((2, ".envelope"), (3, ".envelope"), (4, ".entry-row"), (5, ".hunks .diff")):
        await browser.click(f".tabs a:nth-child({tab})")
        await browser.until(f"document.querySelector({json.dumps(ready)})")
        found |= await _look(browser, f"tab {tab}")
    await inspector.show_agents()
    found |= await _look(browser, "agents")
    assert found == {}, json.dumps(found, indent=1)
