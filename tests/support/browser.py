"""Debian's chromium, driven by agent-browser as a person would: clicks, keys, and looking at the page."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE = 30.0
_FLAGS = (
    "--no-sandbox,--disable-background-networking,--disable-component-update,--no-first-run,--disable-sync,"
    "--disable-default-apps,--disable-dev-shm-usage"
)


def find_tool(name: str, *places: Path) -> str:
    """The program, or skip the test: fail it where everything has to be there."""
    for place in places:
        if (place / name).exists():
            return str(place / name)
    found = shutil.which(name)
    if found is None:
        missing(f"{name} is not installed")
    return found


def missing(why: str) -> NoReturn:
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(why)
    pytest.skip(why)


class Browser:
    """One page. `session` keeps it apart from any other browser on the machine."""

    def __init__(self, artifacts: Path) -> None:
        self._tool = find_tool("agent-browser", ROOT / "inspector" / "node_modules" / ".bin")
        self._chromium = find_tool("chromium")
        self._session = f"inspector-{uuid4().hex[:8]}"
        self._artifacts = artifacts

    async def run(self, *words: str, deadline: float = DEADLINE) -> str:
        process = await asyncio.create_subprocess_exec(
            self._tool,
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                "AGENT_BROWSER_EXECUTABLE_PATH": self._chromium,
                "AGENT_BROWSER_ARGS": _FLAGS,
                "AGENT_BROWSER_SESSION": self._session,
            },
        )
        async with asyncio.timeout(deadline):
            out, err = await process.communicate()
        assert process.returncode == 0, f"agent-browser {' '.join(words)}: {out.decode()}{err.decode()}"
        return out.decode()

    async def open(self, url: str, *, width: int = 1280, height: int = 800) -> None:
        await self.run("open", url)
        await self.run("set", "viewport", str(width), str(height))

    async def click(self, selector: str) -> None:
        await self.until(f"document.querySelector({json.dumps(selector)})")
        await self.run("click", selector)

    async def fill(self, selector: str, text: str) -> None:
        await self.run("fill", selector, text)

    async def press(self, key: str) -> None:
        await self.run("press", key)

    async def eval(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = json.loads(await self.run("eval", f"JSON.stringify({script}) ?? 'null'", "--json"))
        return json.loads(answer["data"]["result"])

    async def until(self, script: str, *, deadline: float = DEADLINE) -> None:
        """Wait until an expression is true in the page."""
        try:
            async with asyncio.timeout(deadline):
                while not await self.eval(f"Boolean({script})"):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            name = await self.screenshot(f"timeout-{uuid4().hex[:6]}")
            text = await self.eval("document.body.innerText")
            pytest.fail(f"never true: {script}\nsee {name}\n{text[-2000:]}")

    async def until_text(self, text: str, *, within: str = "body") -> None:
        await self.until(f"document.querySelector({json.dumps(within)})?.innerText.includes({json.dumps(text)})")

    async def requests(self) -> list[str]:
        """The addresses of everything that the page asked for."""
        return re.findall(r"https?://\S+|data:\S+", await self.run("network", "requests"))

    async def screenshot(self, name: str) -> Path:
        self._artifacts.mkdir(parents=True, exist_ok=True)
        file = self._artifacts / f"{name}.png"
        await self.run("screenshot", str(file))
        return file

    async def close(self) -> None:
        await self.run("close")


class Inspector:
    """The inspector in a browser: what a person does with it."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.browser = browser
        self.url = url

    async def open(self, **size: int) -> None:
        await self.browser.open(f"{self.url}/ui/", **size)
        await self.browser.until("document.querySelector('#new-session')")

    async def start_session(self, cwd: str = "/tmp") -> None:
        browser = self.browser
        await browser.click("#new-session")
        await browser.until("document.querySelector('select[name=agent]')?.options.length")
        await browser.run("select", "select[name=agent]", "mock")
        await browser.fill("input[name=cwd]", cwd)
        await browser.click("#start-session")
        await self.ready()

    async def ready(self) -> None:
        await self.browser.until("document.querySelector('#prompt') && !document.querySelector('#prompt').disabled")

    async def say(self, text: str) -> None:
        await self.browser.fill("#prompt", text)
        await self.browser.press("Enter")

    async def until_status(self, word: str) -> None:
        await self.browser.until_text(word, within=".session-header .status")

    async def show(self, tab: str) -> None:
        await self.browser.click(f".tabs a:nth-child({['conversation', 'protocol', 'both', 'files'].index(tab) + 1})")

    async def answers(self) -> list[str]:
        found: list[str] = await self.browser.eval(
            "[...document.querySelectorAll('.entry.agent')].map(node => node.innerText.trim())"
        )
        return found
