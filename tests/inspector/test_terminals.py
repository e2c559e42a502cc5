"""What commands print, as it comes in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support import showing_agent
from support.browser import Browser, Inspector
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

CONFIG = f"[agents.shows]\ncommand = {[sys.executable, showing_agent.__file__]!r}\n"
PRINTED = ".tool .terminal pre"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path / "home", config=CONFIG) as running:
        yield running


async def _start(inspector: Inspector, folder: Path) -> Browser:
    folder.mkdir()
    await inspector.start_session(str(folder), agent="shows")
    return inspector.browser


async def test_the_output_of_a_terminal_grows_while_its_command_runs(inspector: Inspector, tmp_path: Path) -> None:
    browser = await _start(inspector, tmp_path / "work")
    await inspector.say("streams")
    await browser.until_text("100 %", within=PRINTED)
    assert await browser.eval(f"document.querySelector('{PRINTED}').innerText") == "ok 1 tests/test_one.py\n100 %\n"
    assert await browser.eval("document.querySelector('.tool .terminal .t-green').innerText") == "ok"
    await browser.screenshot("terminal-running")
    await asyncio.sleep(0.6)  # so that it is worth telling how long the step took
    (tmp_path / "work" / "go").touch()
    await browser.until_text("Exit code 1", within=".tool")
    await browser.until("/^\\d+\\.\\d s$/.test(document.querySelector('.tool .tool-took')?.innerText)")
    await browser.until_text("onerror", within=PRINTED)
    box = f"document.querySelector('{PRINTED}')"
    assert await browser.eval(f"{box}.scrollTop + {box}.clientHeight >= {box}.scrollHeight - 8"), "it did not follow"
    assert await browser.eval(f"{box}.clientHeight") < 300
    assert await browser.eval("[typeof window.pwned, document.querySelectorAll('.tool img').length]") == [
        "undefined",
        0,
    ]
    await browser.click(".tool .terminal button")
    await browser.until_text("\nok 2\n", within=PRINTED)
    await browser.run("reload")
    await inspector.ready()
    await browser.until("document.querySelector('.tool')?.innerText.includes('Done')")
    if not await browser.eval("document.querySelector('.tool').open"):
        await browser.click(".tool summary")
    await browser.until_text(f"ok {showing_agent.LINES}\n", within=PRINTED)


async def test_output_that_an_agent_sends_again_and_again_is_shown_once(inspector: Inspector, tmp_path: Path) -> None:
    browser = await _start(inspector, tmp_path / "work")
    await inspector.say("grows")
    await browser.until_text("first line", within=PRINTED)
    assert await browser.eval(f"document.querySelector('{PRINTED}').innerText") == "first line"
    (tmp_path / "work" / "go").touch()
    await browser.until_text("second line", within=PRINTED)
    assert await browser.eval(f"document.querySelector('{PRINTED}').innerText") == "first line\nsecond line"
    assert await browser.eval("document.querySelectorAll('.tool').length") == 1


async def test_a_reader_who_looks_back_is_left_there(inspector: Inspector, tmp_path: Path) -> None:
    browser = await _start(inspector, tmp_path / "work")
    await inspector.say("streams")
    await browser.until_text("100 %", within=PRINTED)
    await browser.click(".tool summary")
    await browser.until("!document.querySelector('.tool').open")
    (tmp_path / "work" / "go").touch()
    await inspector.until_status("Ready")
    assert not await browser.eval("document.querySelector('.tool').open")


async def test_a_diff_is_read_inline_or_side_by_side(inspector: Inspector, tmp_path: Path) -> None:
    browser = await _start(inspector, tmp_path / "work")
    await inspector.say("changes")
    await browser.until_text("and one more", within=".diff")
    assert await browser.eval("document.querySelectorAll('.diff tr.added, .diff tr.removed').length") == 4
    assert await browser.eval("document.querySelectorAll('.diff tr.cut').length") == 2
    await browser.click(".diff figcaption button")
    await browser.until("document.querySelector('.diff table.split')")
    pair = "[...document.querySelectorAll('.diff tr')].find(row => row.innerText.includes('twelve')).innerText"
    assert (await browser.eval(pair)).split() == ["12", "line", "12", "12", "line", "twelve"]


async def test_a_terminal_of_the_server_shows_what_it_prints(inspector: Inspector, tmp_path: Path) -> None:
    browser = inspector.browser
    script = tmp_path / "script"
    script.write_text(f"echo begun; until test -e {tmp_path}/go; do sleep 0.05; done; echo ended; exit 4")
    await inspector.start_session()
    await inspector.say(f"terminal sh {script}")
    await browser.until_text("begun", within=PRINTED)
    (tmp_path / "go").touch()
    await browser.until_text("Exit code 4", within=".tool")
    assert await browser.eval(f"document.querySelector('{PRINTED}').innerText") == "begun\nended\n"
