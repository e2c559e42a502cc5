"""Terminals in the page: shells, full-screen programs, several people, lost connections, what agents run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect

from support.browser import Browser, Inspector, find_tool, wait_for
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

ROWS = ".xterm-rows"
TOKEN = "correct-horse"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
_VIOLATIONS = """void (window.refused = [], addEventListener('securitypolicyviolation', event =>
  refused.push([event.effectiveDirective, event.sourceFile, event.lineNumber, event.columnNumber].join(' '))))"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path / "home", env={"SANDBOX_AGENT_TOKEN": TOKEN, "SHELL": "/bin/sh"}) as running:
        yield running


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[CuttingProxy]:
    async with cutting_proxy(server.port) as opened:
        yield opened


@pytest.fixture
async def inspector(server: Server, proxy: CuttingProxy, browser: Browser) -> Inspector:
    """Behind a line that can be cut, signed in."""
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, headers=BEARER) as http:
        ticket = (await http.post("/v1/tickets")).json()["ticket"]
    ready = wait_for("document.querySelector('#new-session')")
    await browser.open(f"{proxy.url}/ui/?ticket={ticket}", ready, ["eval", _VIOLATIONS])
    return Inspector(browser, proxy.url)


async def _type(browser: Browser, text: str, *keys: str) -> None:
    await browser.each(["keyboard", "type", text], *(["press", key] for key in keys))


async def _shows(browser: Browser, text: str) -> None:
    await browser.until_text(text, within=ROWS)


async def _shell(browser: Browser) -> None:
    await browser.click(".process-tabs > button")
    await browser.until("document.querySelector('.pane .status.good') && document.activeElement.closest('.xterm')")


async def test_programs_work_in_a_shell_in_the_directory_of_a_session(inspector: Inspector, tmp_path: Path) -> None:
    browser, work = inspector.browser, tmp_path / "work"
    for tool in ("vim", "less", "htop", "python3"):
        find_tool(tool)
    work.mkdir()
    (work / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 1001)))
    await inspector.start_session(str(work))
    await browser.click(".tabs a:nth-child(6)")
    await browser.until_text("Nothing runs here", within=".processes")
    await _shell(browser)
    await _type(browser, "stty size; pwd; printf '\\033[38;2;1;90;20mtrue\\033[0m\\n'", "Enter")
    await _shows(browser, f"{work}\ntrue")
    seen = "[...document.querySelectorAll('.xterm-rows span')].find(node => node.innerText.trim() === 'true')"
    assert await browser.eval(f"getComputedStyle({seen}).color") == "rgb(1, 90, 20)"
    await browser.screenshot("terminal-shell")
    await _type(browser, "vim -u NONE -N note.txt; echo vim-$?", "Enter")
    await _shows(browser, '"note.txt"')
    await _type(browser, "ihello from vim", "Escape")
    await _type(browser, ":wq", "Enter")
    await _shows(browser, "vim-0")
    assert (work / "note.txt").read_text() == "hello from vim\n"
    await _type(browser, "less long.txt; echo less-$?", "Enter")
    await _shows(browser, "line 12\n")
    await _type(browser, "G")
    await _shows(browser, "line 1000")
    await _type(browser, "q")  # a program that ends may throw away what was typed meanwhile
    await _shows(browser, "less-0")
    await _type(browser, "htop; echo htop-$?", "Enter")
    await _shows(browser, "F10Quit")
    await browser.screenshot("terminal-htop")
    await _type(browser, "q")
    await _shows(browser, "htop-0")
    await _type(browser, "python3 -q", "Enter")
    await _shows(browser, ">>>")
    await _type(browser, "6 * 7 * 1000", "Enter", "Control+d")
    await _shows(browser, "42000")
    await _type(browser, "exit 3", "Enter")
    await browser.until_text("Exit code 3", within=".pane-bar")
    assert await browser.eval("refused") == []


@pytest.mark.promise("P-inspector-8")
async def test_two_people_see_one_terminal_and_a_cut_line_or_a_reload_loses_nothing(
    inspector: Inspector, server: Server, proxy: CuttingProxy
) -> None:
    browser = inspector.browser
    await browser.click(".topbar nav a:nth-child(3)")
    await _shell(browser)
    await _type(browser, "stty size; echo begun-$((6*7))", "Enter")
    await _shows(browser, "begun-42")
    process = await browser.eval("new URLSearchParams(location.hash.split('?')[1]).get('process')")
    address = f"ws://127.0.0.1:{server.port}/v1/processes/{process}/terminal/ws?access_token={TOKEN}"
    async with connect(address, proxy=None) as other:
        for frame in (
            {"type": "resize", "cols": 61, "rows": 17},
            {"type": "input", "data": "stty size; echo other-$((1+1))\n"},
        ):
            await other.send(msgspec.json.encode(frame).decode())
        await _shows(browser, "17 61\nother-2")
        await browser.until_text("61 \u00d7 17", within=".pane-bar .tag")
        assert await browser.eval(f"document.querySelectorAll('{ROWS} > div').length") == 17
        await _type(browser, "stty size; echo mine-$((2+1))", "Enter")
        await _shows(browser, "mine-3")
        await browser.until("!document.querySelector('.pane-bar .tag')")
        proxy.cut()
        await other.send(msgspec.json.encode({"type": "input", "data": "echo away-$((2+2))\n"}).decode())
        await _shows(browser, "away-4")
    text = f"document.querySelector('{ROWS}').innerText"
    assert (await browser.eval(text)).count("away-4") == 1
    await browser.run("reload")
    await _shows(browser, "mine-3")
    await _shows(browser, "away-4")
    await browser.until("document.querySelector('.pane .status.good')")
    await _type(browser, "echo again-$((2+3))", "Enter")
    await _shows(browser, "again-5")


async def test_tabs_search_and_what_agents_run(inspector: Inspector, tmp_path: Path) -> None:
    browser = inspector.browser
    script = tmp_path / "script"
    script.write_text(f"echo begun; until test -e {tmp_path}/go; do sleep 0.05; done; echo ended; exit 4")
    await inspector.start_session(str(tmp_path))
    await inspector.say(f"terminal sh {script}")
    await browser.click(".tabs a:nth-child(6)")
    await browser.until_text(f"sh {script}", within=".process-list")
    await browser.screenshot("processes-list")
    await browser.click(".process-list .process")
    await _shows(browser, "begun")
    await _shell(browser)
    await _type(browser, "for i in 1 2 3; do echo needle $i; done", "Enter")
    await _shows(browser, "needle 3\n")
    await browser.press("Control+Shift+f")
    await browser.until("document.activeElement.type === 'search'")
    await _type(browser, "needle 2", "Enter")
    await browser.until_text("1 of 1", within=".pane .find")
    await browser.screenshot("terminal-find")
    await browser.press("Escape")
    await browser.until("document.activeElement.closest('.xterm')")
    await browser.press("Control+Shift+l")
    await browser.until("document.activeElement.matches('.process-tabs [aria-current]')")
    (tmp_path / "go").touch()
    await browser.click(".process-tabs li:nth-child(2) a")
    await browser.until_text("Exit code 4", within=".pane-bar")
    await _shows(browser, "begun\nended\n")
    await browser.click(".process-tabs li:nth-child(2) button")
    await browser.until("document.querySelectorAll('.process-tabs li').length === 2")
    await _shows(browser, "needle 3")
    assert json.loads(await browser.eval("sessionStorage['sandbox-agent.terminals']"))
