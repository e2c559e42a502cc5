"""Two terminal UIs and an inspector on one session, each cut off again and again: all end with the same messages."""

from __future__ import annotations

import asyncio
import os
import random
import re
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from support.browser import Browser, Inspector
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.opencode import opencode
from support.opencode_program import opencode_environment
from support.server import running_server
from support.terminal_ui import TerminalUi, terminal_ui
from support.tmux import needs_tmux

TURNS = int(os.environ.get("SANDBOX_AGENT_VIEWER_TURNS", "9"))
"""200 in the long form, which is run by hand."""
KEPT = 50
"""Turns that the terminal UI holds: of more than 100 messages it drops the oldest."""
ROWS = 20 + 8 * min(TURNS, KEPT)
SEED = 7
WORD = re.compile(r"turn-\d{4}")
pytestmark = [needs_tmux, pytest.mark.timeout(240 + 30 * TURNS)]


async def test_two_terminal_uis_and_an_inspector_end_with_the_same_messages(
    program: Path, browser: Browser, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    chance = random.Random(SEED)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running_server(tmp_path / "server"))
        client = await stack.enter_async_context(opencode(server.url))
        proxies = [await stack.enter_async_context(cutting_proxy(server.port)) for _ in range(3)]
        made = await client.post("/session", {"title": "Watched"}, directory=str(work))
        screens: list[TerminalUi] = []
        for proxy in proxies[:2]:
            home = tmp_path / f"ui-{len(screens)}"
            command = [str(program), "attach", f"{proxy.url}/opencode", "--dir", str(work), "--session", made["id"]]
            opened = terminal_ui(command, opencode_environment(home), work, rows=ROWS)
            screens.append(stack.enter_context(opened))
        (native,) = (await client.http.get("/v1/sessions")).json()["sessions"]
        page = f"{proxies[2].url}/ui/#/sessions/{native['sessionId']}?agent=mock"
        await browser.open(page, height=300 + 160 * TURNS)

        for number in range(TURNS):
            await ready(screens, browser)
            who = number % 3
            words = f"turn-{number:04}"
            if who < 2:
                await asyncio.to_thread(screens[who].say, words)
            else:
                await Inspector(browser, proxies[2].url).say(words)
            await cut_the_others(proxies, who, chance)
            await answered(client.http, made["id"], number + 1)
            if (number + 1) % KEPT == 0:  # before any of it is dropped
                await shown_by_all(screens, expected_until(number + 1)[-2 * KEPT :])

        expected = expected_until(TURNS)
        await shown_by_all(screens, expected[-2 * KEPT :])
        entries = "[...document.querySelectorAll('.entry.user .bubble, .entry.agent')]"
        found = f"{entries}.map(one => one.innerText.match(/turn-\\d{{4}}/)?.[0]).join()"
        await browser.until(f"{found} === {','.join(expected)!r}", deadline=90)
        assert all(proxy.cuts >= TURNS // 3 for proxy in proxies)


def expected_until(turns: int) -> list[str]:
    return [f"turn-{number:04}" for number in range(turns) for _ in ("said", "answered")]


async def shown_by_all(screens: list[TerminalUi], expected: list[str]) -> None:
    for screen in screens:
        await asyncio.to_thread(screen.until, lambda shown: WORD.findall(shown) == expected, "every turn, in order")


async def ready(screens: list[TerminalUi], browser: Browser) -> None:
    """Nobody is in the middle of something: each shows a field to type in."""
    for screen in screens:
        await asyncio.to_thread(screen.until, lambda shown: "Build" in shown or "Ask" in shown, "the session")
    await browser.until("document.querySelector('#prompt') && !document.querySelector('#prompt').disabled", deadline=90)


async def cut_the_others(proxies: list[CuttingProxy], who: int, chance: random.Random) -> None:
    """At any moment of the turn. Who prompts is spared: OpenCode's UI does not send a prompt twice."""
    for number, proxy in enumerate(proxies):
        if number != who:
            await asyncio.sleep(chance.random() / 10)
            proxy.cut()


async def answered(http: httpx.AsyncClient, session: str, turns: int) -> None:
    async with asyncio.timeout(90):
        while True:
            messages = (await http.get(f"/opencode/session/{session}/message", params={"limit": 1000})).json()
            if len(messages) >= 2 * turns and "completed" in messages[-1]["info"]["time"]:
                assert len(messages) == 2 * turns
                return
            await asyncio.sleep(0.1)
