"""Where the page lives and what it outlives: a base path, a server that restarts in the middle of a turn."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from support.browser import Browser, Inspector
from support.prefix_proxy import below_prefix
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


async def test_the_page_works_below_a_prefix_and_asks_for_nothing_outside_it(
    server: Server, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "here.txt").write_text("a file")
    async with below_prefix(server.port, "/tools/agents") as url:
        inspector = Inspector(browser, url)
        await browser.open(f"{url}/ui")
        await browser.until("document.querySelector('#new-session')")
        await inspector.start_session(str(tmp_path))
        await inspector.say("tool ls")
        await browser.click(".ask.open .choices button")
        await browser.until_text("The tool ran.")
        await inspector.show("files")
        await browser.until_text("here.txt", within=".entries")
        await inspector.show_agents()
        await browser.run("reload")
        await browser.until_text("Mock", within=".agent-grid")
        asked = [urlsplit(address).path for address in await browser.requests() if address.startswith("http")]
        assert len(asked) > 8
        assert [path for path in asked if not path.startswith("/tools/agents/ui")] != []
        assert [path for path in asked if not path.startswith("/tools/agents/")] == []


async def test_signing_in_works_below_a_prefix_by_token_and_by_ticket(tmp_path: Path, browser: Browser) -> None:
    async with (
        running_server(tmp_path / "home", env={"SANDBOX_AGENT_TOKEN": "correct-horse"}) as server,
        below_prefix(server.port, "/tools/agents") as url,
    ):
        await browser.open(f"{url}/ui/")
        for token in ("wrong", "correct-horse"):
            await browser.until("document.querySelector('input[type=password]')?.value === ''")
            await browser.fill("input[type=password]", token)
            await browser.press("Enter")
        await browser.until("document.querySelector('#new-session')")
        assert await browser.eval("location.pathname") == "/tools/agents/ui/"
        await browser.each(["cookies", "clear"], ["open", "about:blank"])
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            bearer = {"Authorization": "Bearer correct-horse"}
            ticket = (await http.post("/v1/tickets", headers=bearer)).json()["ticket"]
        await browser.open(f"{url}/ui/?ticket={ticket}")
        await browser.until("document.querySelector('#new-session')")
        assert await browser.eval("location.href") == f"{url}/ui/"


@pytest.mark.promise("P-inspector-1")
async def test_a_restart_in_the_middle_of_a_turn_leaves_the_history_whole(tmp_path: Path, browser: Browser) -> None:
    home = tmp_path / "home"
    async with running_server(home) as first:
        inspector, port = Inspector(browser, first.url), first.port
        await inspector.open()
        await inspector.start_session()
        await inspector.say("before the restart")
        await inspector.until_status("Ready")
        await inspector.say("slow 1000")
        await inspector.until_answer("tick 5")
        first.kill()
        await first.process.wait()
        await inspector.until_status("Reconnecting")
    async with running_server(home, port=port):
        await inspector.until_status("Failed")
        await browser.until("!document.querySelector('#prompt').disabled")
        await inspector.say("recall")
        await browser.until_text("before the restart", within=".entry.agent ol")
        await inspector.say("after the restart")
        await inspector.until_answer("after the restart")
        seen = await inspector.answers()
        ticks = [answer for answer in seen if answer.startswith("tick 1")]
        assert [seen[0], seen[-1], len(ticks)] == ["before the restart", "after the restart", 1]
        told = await browser.eval("document.querySelector('.conversation').innerText")
        assert "The turn failed: the server was restarted while it ran" in told
        assert "turnId" not in told
        await browser.run("reload")
        await inspector.ready()
        await inspector.until_answer("after the restart")
        kept = await inspector.answers()
        assert [kept[0], kept[-1]] == ["before the restart", "after the restart"]
        assert _ticks(kept) == list(range(1, len(_ticks(kept)) + 1))
        assert len(_ticks(kept)) >= 5


async def test_nothing_can_be_answered_while_the_server_is_away_and_everything_when_it_is_back(
    tmp_path: Path, browser: Browser
) -> None:
    home, buttons = tmp_path / "home", "[...document.querySelectorAll('.ask.open .choices button')]"
    async with running_server(home) as first:
        inspector, port = Inspector(browser, first.url), first.port
        await inspector.open()
        await inspector.start_session()
        await inspector.say("tool ls")
        await browser.until(f"{buttons}.length === 4 && {buttons}.every(one => !one.disabled)")
        first.kill()
        await first.process.wait()
        await browser.until_text("The server cannot be reached just now", within=".ask.open")
        assert await browser.eval(f"{buttons}.every(one => one.disabled)")
        assert "Failed to fetch" not in await browser.eval("document.body.innerText")
    async with running_server(home, port=port):
        await inspector.until_status("Failed")
        await browser.until("!document.querySelector('#prompt').disabled")
        assert "by you" not in await browser.eval("document.querySelector('.conversation').innerText")
        await inspector.say("tool ls")
        await browser.until(f"{buttons}.length === 4 && {buttons}.every(one => !one.disabled)")
        await browser.click(".ask.open .choices button")
        await inspector.until_answer("The tool ran.")


async def test_every_view_is_in_reach_in_a_narrow_window_and_with_a_finger(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("tool ls")
    await inspector.until_status("Asking")
    for words in ("this waits", "and a prompt of many words that waits behind it, with what can be done to it"):
        await inspector.say(words)
    await browser.until("document.querySelectorAll('.waiting li').length === 2")
    shown = (
        "[...document.querySelectorAll('.tabs a, .waiting button, .composer button')].filter(n => n.checkVisibility())"
    )
    edge = "one.closest('.waiting, .box')?.getBoundingClientRect().right ?? innerWidth"
    outside = f"{shown}.filter(one => one.getBoundingClientRect().right > ({edge})).map(one => one.outerHTML)"
    for width in (800, 390):
        await browser.resize(width, 700)
        assert await browser.eval(f"{shown}.length") > 10
        assert await browser.eval(outside) == []
    coarse = """[...document.styleSheets].flatMap(sheet => [...sheet.cssRules])
      .find(rule => rule.conditionText === '(pointer: coarse)').cssRules[0].style.getPropertyValue('--target')"""
    await browser.eval(f"void document.documentElement.style.setProperty('--target', {coarse})")
    await browser.resize(390, 844)
    targets = "[...document.querySelectorAll('.ask.open button, .menu summary, .back, #cancel')]"
    small = f"{targets}.filter(one => one.checkVisibility() && one.offsetHeight < 40).map(one => one.outerHTML)"
    assert await browser.eval(f"{targets}.length") == 7
    assert await browser.eval(small) == []
    await browser.click(".tabs a:nth-child(2)")
    await browser.until_text('"command":"ls"', within=".virtual")
    await browser.click(".back")  # to the list, where everything else is in reach
    await browser.until("document.querySelector('.topbar').checkVisibility()")
    await browser.until("document.querySelector('.session-list a').checkVisibility()")


def _ticks(answers: list[str]) -> list[int]:
    words = " ".join(answer for answer in answers if "tick" in answer).replace("tick", " ").split()
    return [int(word) for word in words]
