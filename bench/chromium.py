"""Debian's chromium without a window, driven over the DevTools protocol on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from websockets.asyncio.client import ClientConnection, connect

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--window-size=1280,800",
    "--remote-debugging-port=0",
)
_ANSWER = 300.0


class Page:
    """One tab. What is typed and scrolled goes the way that a person's keys and wheel go."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def read(self) -> None:
        """Hand out answers for as long as the browser lives."""
        async for text in self._socket:
            message = json.loads(text)
            waiter = self._waiting.pop(message.get("id", 0), None)
            if waiter is not None and not waiter.done():
                waiter.set_result(message)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        key = next(self._ids)
        self._waiting[key] = asyncio.get_running_loop().create_future()
        await self._socket.send(json.dumps({"id": key, "method": method, "params": params}))
        async with asyncio.timeout(_ANSWER):
            message = await self._waiting[key]
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        found: dict[str, Any] = message["result"]
        return found

    async def eval(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, script: str, *, deadline: float = 120.0) -> None:
        async with asyncio.timeout(deadline):
            while not await self.eval(f"Boolean({script})"):
                await asyncio.sleep(0.05)

    async def press(self, character: str) -> None:
        """One key down and up, without waiting for what the page makes of it."""
        for event in ({"type": "keyDown", "text": character}, {"type": "keyUp"}):
            params = {"key": character, **event}
            await self._socket.send(
                json.dumps({"id": next(self._ids), "method": "Input.dispatchKeyEvent", "params": params})
            )

    async def heap(self) -> float:
        """Megabytes of JavaScript that are in use after a full collection."""
        await self.call("HeapProfiler.collectGarbage")
        usage = await self.call("Runtime.getHeapUsage")
        return float(usage["usedSize"]) / 1e6


@asynccontextmanager
async def open_page(early_script: str) -> AsyncIterator[Page]:
    """A tab in a browser of its own. `early_script` runs in every page before the page's own scripts."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("chromium is not installed")
    with tempfile.TemporaryDirectory(prefix="bench-chromium-", ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program,
            *_FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort")
            async with connect(await _target(port), max_size=None) as socket:
                page = Page(socket)
                reading = asyncio.create_task(page.read())
                try:
                    await page.call("Page.enable")
                    await page.call("Page.addScriptToEvaluateOnNewDocument", source=early_script)
                    yield page
                finally:
                    reading.cancel()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _port(file: Path) -> int:
    async with asyncio.timeout(30):
        while not (file.exists() and (words := file.read_text().split())):
            await asyncio.sleep(0.05)
        return int(words[0])


async def _target(port: int) -> str:
    async with asyncio.timeout(30):
        while True:
            with urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                pages = [one for one in json.load(answer) if one["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
            await asyncio.sleep(0.05)
