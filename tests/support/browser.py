"""Debian's chromium, driven by agent-browser as a person would: clicks, keys, and looking at the page."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE = 30.0
_LOOK = 5.0
"""Seconds for which the page itself watches out; then it is asked anew, as it may have been loaded anew."""
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


def find_agent_browser() -> str:
    """The program for this machine, or else its wrapper, which takes a Node start for every command."""
    packages = ROOT / "inspector" / "node_modules"
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    program = packages / "agent-browser" / "bin" / f"agent-browser-{platform.system().lower()}-{machine}"
    if os.access(program, os.X_OK):
        return str(program)
    return find_tool("agent-browser", packages / ".bin")


class Browser:
    """One page. `session` keeps it apart from any other browser on the machine."""

    def __init__(self, artifacts: Path) -> None:
        self._tool = find_agent_browser()
        self._chromium = find_tool("chromium")
        self._session = f"inspector-{uuid4().hex[:8]}"
        self._artifacts = artifacts

    async def run(self, *words: str, deadline: float = DEADLINE) -> str:
        code, out = await self._call(words, b"", deadline)
        assert code == 0, f"agent-browser {' '.join(words)}: {out}"
        return out

    async def each(self, *commands: list[str]) -> list[Any]:
        """What several commands gave, in one call, which is quicker; the first that fails ends it."""
        answers = await self._batch(*commands)
        for done in answers:
            if not done["success"]:
                await self._fail(f"agent-browser {done['command']}: {done['error']}")
        return [done["result"] for done in answers]

    async def _batch(self, *commands: list[str]) -> list[dict[str, Any]]:
        words = ["batch", "--bail", "--json"]
        _, out = await self._call(words, json.dumps(commands).encode(), DEADLINE * len(commands))
        answers: list[dict[str, Any]] = json.loads(out)
        return answers

    async def _call(self, words: Sequence[str], given: bytes, deadline: float) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            self._tool,
            *words,
            stdin=asyncio.subprocess.PIPE,
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
            out, err = await process.communicate(given)
        return process.returncode, out.decode() or err.decode()

    async def open(self, url: str, *commands: list[str], width: int = 1280, height: int = 800) -> None:
        """Show a page as if nothing had been shown before, and carry out commands."""
        await self.each(
            ["open", "about:blank"],  # the page before, whose server may be gone, asks for nothing more
            ["network", "requests", "--clear"],
            ["errors", "--clear"],
            ["set", "media", "light"],
            ["set", "viewport", str(width), str(height)],
            ["open", url],
            *commands,
        )

    async def resize(self, width: int, height: int) -> None:
        await self.run("set", "viewport", str(width), str(height))

    async def click(self, selector: str) -> None:
        await self.until(f"document.querySelector({json.dumps(selector)})", then=["click", selector])

    async def fill(self, selector: str, text: str) -> None:
        await self.until(f"document.querySelector({json.dumps(selector)})", then=["fill", selector, text])

    async def press(self, key: str) -> None:
        await self.run("press", key)

    async def eval(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = json.loads(await self.run("eval", f"JSON.stringify({script}) ?? 'null'", "--json"))
        return json.loads(answer["data"]["result"])

    async def until(self, script: str, *, then: list[str] | None = None, deadline: float = DEADLINE) -> None:
        """Wait until an expression is true in the page, and then carry out a command."""
        end = time.monotonic() + deadline
        while True:
            look = ["eval", _watch(script, min(_LOOK, max(0.1, end - time.monotonic())))]
            found, *rest = await self._batch(look, *([then] if then else []))
            if found["success"]:
                assert all(done["success"] for done in rest), rest
                return
            if time.monotonic() > end:
                break
        await self._fail(f"never true: {script}\n{found['error']}")

    async def _fail(self, why: str) -> None:
        """With what the page shows."""
        picture = await self.screenshot(f"failed-{uuid4().hex[:6]}")
        text = await self.eval("document.body.innerText")
        pytest.fail(f"{why}\nsee {picture}\n{text[-2000:]}")

    async def until_text(self, text: str, *, within: str = "body") -> None:
        await self.until(f"document.querySelector({json.dumps(within)})?.innerText.includes({json.dumps(text)})")

    async def requests(self) -> list[str]:
        """The addresses of everything that the page asked for."""
        return re.findall(r"https?://\S+|data:\S+", await self.run("network", "requests"))

    async def screenshot(self, name: str) -> Path:
        file = self.artifact(f"{name}.png")
        await self.run("screenshot", str(file))
        return file

    def artifact(self, name: str) -> Path:
        self._artifacts.mkdir(parents=True, exist_ok=True)
        return self._artifacts / name

    def close(self) -> None:
        env = {**os.environ, "AGENT_BROWSER_SESSION": self._session}
        subprocess.run([self._tool, "close"], env=env, check=False, capture_output=True, timeout=DEADLINE)


def wait_for(script: str) -> list[str]:
    """The command that waits until an expression is true, for use among others."""
    return ["eval", _watch(script, DEADLINE - _LOOK)]


def _watch(script: str, seconds: float) -> str:
    """A promise in the page that is kept once the expression is true, and broken when it takes too long."""
    return f"""new Promise((keep, give_up) => {{
      const end = Date.now() + {seconds * 1000:.0f};
      const look = () => {{
        if ({script}) keep(true);
        else if (Date.now() > end) give_up(new Error("not yet"));
        else setTimeout(() => {{ try {{ look() }} catch (error) {{ give_up(error) }} }}, 40);
      }};
      look();
    }})"""


_ACTIONS = [
    "Rename",
    "Pin to the top",
    "Fork",
    "Copy a link to share",
    "Export as Markdown",
    "Export as JSON lines",
    "Archive",
    "Terminate",
]


class Inspector:
    """The inspector in a browser: what a person does with it."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.browser = browser
        self.url = url

    async def open(self, **size: int) -> None:
        await self.browser.open(f"{self.url}/ui/", wait_for("document.querySelector('#new-session')"), **size)

    async def start_session(self, cwd: str = "/tmp", *, agent: str = "mock") -> None:
        prompt = "document.querySelector('#prompt')"
        await self.browser.each(
            wait_for("document.querySelector('#new-session')"),
            ["eval", "void (window.hashBefore = location.hash)"],
            ["click", "#new-session"],
            wait_for("document.querySelector('select[name=agent]')?.options.length"),
            ["select", "select[name=agent]", agent],
            ["eval", _type_at_once("input[name=cwd]", cwd)],
            ["click", "#start-session"],
            wait_for("location.hash !== window.hashBefore && !document.querySelector('dialog')"),
            wait_for(f"{prompt} && !{prompt}.disabled"),
        )

    async def ready(self) -> None:
        await self.browser.until("document.querySelector('#prompt') && !document.querySelector('#prompt').disabled")

    async def say(self, text: str) -> None:
        await self.browser.each(["fill", "#prompt", text], ["press", "Enter"])

    async def until_status(self, word: str) -> None:
        await self.browser.until_text(word, within=".session-header .status")

    async def show(self, tab: str) -> None:
        await self.browser.click(f".tabs a:nth-child({['conversation', 'protocol', 'both', 'files'].index(tab) + 1})")

    async def show_agents(self) -> None:
        await self.browser.click(".topbar nav a:nth-child(2)")
        await self.browser.until_text("Mock", within=".agent-grid")

    async def choose(self, action: str) -> None:
        """Pick something from the session's menu."""
        await self.browser.click(".menu summary")
        await self.browser.click(self._action(action))

    async def download(self, file: Path, action: str) -> bytes:
        """What the browser saves when something is picked from the session's menu."""
        await self.browser.click(".menu summary")
        await self.browser.run("download", self._action(action), str(file))
        return file.read_bytes()

    def _action(self, action: str) -> str:
        return f".menu-items button:nth-of-type({_ACTIONS.index(action) + 1})"

    async def until_answer(self, text: str) -> None:
        """Return when the newest that the agent has said contains `text`."""
        newest = "[...document.querySelectorAll('.entry.agent')].at(-1)"
        await self.browser.until(f"{newest}?.innerText.includes({json.dumps(text)})")

    async def answers(self) -> list[str]:
        found: list[str] = await self.browser.eval(
            "[...document.querySelectorAll('.entry.agent')].map(node => node.innerText.trim())"
        )
        return found


def _type_at_once(selector: str, text: str) -> str:
    """A script that fills a field whose value the page owns, in one step: it cannot be drawn anew in between."""
    field = f"document.querySelector({json.dumps(selector)})"
    set_value = "Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set"
    told = "dispatchEvent(new Event('input', {bubbles: true}))"
    return f"void ({set_value}.call({field}, {json.dumps(text)}), {field}.{told})"
