"""Looking closely: what a session changed, which answer belongs to which request, what is in a file."""

from __future__ import annotations

import base64
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support import showing_agent
from support.browser import Inspector
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

PICTURE = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
"""One pixel."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    config = f"[agents.shows]\nname = 'Showing'\ncommand = {[sys.executable, showing_agent.__file__]!r}\n"
    async with running_server(tmp_path / "home", config=config) as running:
        yield running


async def test_what_a_session_changed_is_listed_by_file_and_turn_and_leads_to_the_file(
    inspector: Inspector, tmp_path: Path
) -> None:
    browser, work = inspector.browser, tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src" / "lines.txt").write_text(showing_agent.NEW)
    await inspector.start_session(str(work), agent="shows")
    await browser.click(".tabs a:nth-child(5)")
    await browser.until_text("Nothing has been changed yet", within=".changes")
    await browser.click(".tabs a:nth-child(1)")
    await inspector.ready()
    await inspector.say("changes")
    await inspector.until_status("Ready")
    await browser.click(".tabs a:nth-child(5)")
    await browser.until_text("lines.txt", within=".tree")
    await browser.until_text("+2", within=".tree .counts")
    await browser.until("document.querySelectorAll('.hunks .diff tr.added').length === 2")
    await browser.until("document.querySelector('.changes select').options.length === 2")
    await browser.screenshot("changes")
    await browser.click(".hunks .diff figcaption button")
    await browser.until("document.querySelector('.hunks .diff table.split')")
    await browser.click(".tabs a:nth-child(1)")
    await inspector.say("changes again")
    await inspector.until_status("Ready")
    await browser.click(".tabs a:nth-child(5)")
    await browser.until("document.querySelectorAll('.hunks .diff').length === 2")
    second = await browser.eval("[...document.querySelectorAll('.changes select option')].at(-1).value")
    await browser.run("select", ".changes select", second)
    await browser.until("document.querySelectorAll('.hunks .diff').length === 1")
    await browser.click(".open-file")
    await browser.until_text("line twelve", within=".file pre")
    await browser.until("document.querySelector('.changed-mark')")


async def test_requests_are_paired_with_their_answers_and_runs_are_folded(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("chunks 300 20")
    await inspector.until_status("Ready")
    await inspector.show("protocol")
    await browser.until("document.querySelectorAll('.envelope').length > 20")
    await browser.click(".protocol button[aria-pressed] + button[aria-pressed]")
    await browser.until("document.querySelectorAll('.envelope').length < 20")
    await browser.until_text("300", within=".virtual")
    await browser.run("select", ".protocol select[aria-label=Method]", "session/prompt")
    await browser.until("document.querySelectorAll('.envelope').length === 2")
    await browser.until("/\\d (ms|s)$/.test(document.querySelector('.envelope .latency').innerText)")
    await browser.click(".virtual-row:nth-child(2) .envelope")
    await browser.until_text("answer · session/prompt", within=".envelope-detail strong")
    await browser.click(".envelope-detail header button")
    await browser.until_text('"method": "session/prompt"', within=".envelope-detail pre")
    await browser.eval("void (navigator.clipboard.writeText = async text => { window.copied = text })")
    await browser.click(".envelope-detail header button:nth-of-type(3)")
    await browser.until("window.copied?.startsWith('curl -X POST') && window.copied.includes('session/prompt')")
    await browser.run("select", ".protocol select[aria-label=Direction]", "client")
    await browser.until("document.querySelectorAll('.envelope').length === 1")


async def test_files_are_in_natural_order_with_line_numbers_colours_and_a_preview(
    inspector: Inspector, tmp_path: Path
) -> None:
    browser = inspector.browser
    for name, text in {"part10.py": "x = 1\n", "part2.py": "def f():\n    return 2\n", "notes.md": "# Title\n"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "picture.gif").write_bytes(PICTURE)
    await inspector.start_session(str(tmp_path))
    await inspector.show("files")
    await browser.until_text("part10.py", within=".entries")
    names = await browser.eval("[...document.querySelectorAll('.entries .name')].map(node => node.innerText.trim())")
    assert [name for name in names if name.startswith("part")] == ["part2.py", "part10.py"]
    await browser.eval(
        "[...document.querySelectorAll('.entry-row')].find(row => row.innerText.includes('part2')).click()"
    )
    await browser.until("document.querySelector('.file .hljs-keyword')?.innerText === 'def'")
    assert await browser.eval("document.querySelector('.file .numbers').innerText") == "1\n2"
    await browser.eval(
        "[...document.querySelectorAll('.entry-row')].find(row => row.innerText.includes('notes')).click()"
    )
    await browser.until_text("# Title", within=".file pre")
    await browser.click(".file header button[aria-pressed]")
    await browser.until_text("Title", within=".file .markdown h1")
    await browser.eval(
        "[...document.querySelectorAll('.entry-row')].find(row => row.innerText.includes('picture')).click()"
    )
    await browser.until("document.querySelector('.file img')?.naturalWidth === 1")
