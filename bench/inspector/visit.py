"""What a person does with the inspector, and what the browser's timeline says meanwhile."""

from __future__ import annotations

import asyncio
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.chromium import Page
from bench.inspector.workload import NEEDLE, MockServer, fill, last_words
from bench.servers import Conversation

METER = (Path(__file__).parent / "meter.js").read_text()
FRAMES = 240
KEYS = 60
KEY_PAUSE = 0.05
_IS_READY = "!document.querySelector('.loading') && document.querySelector('#prompt:enabled')"

Figures = dict[str, float]


@dataclass
class Visit:
    """One session of one size in one page. `figures` grow as the visit goes on."""

    page: Page
    server: MockServer
    updates: int
    shape: str
    conversation: Conversation
    figures: Figures = field(default_factory=dict)

    async def run(self) -> Figures:
        await self._stream("stream")
        await self._reload()
        await self._protocol()
        self.conversation = self.server.converse()
        await self._stream("both", "&tab=both")
        return self.figures

    async def _stream(self, name: str, tab: str = "") -> None:
        """Type while the updates come in."""
        await self._open(tab)
        await self.page.until(_IS_READY)
        await self.page.eval("document.querySelector('#prompt').focus()")
        await self.page.eval("meter.begin()")
        filling = asyncio.create_task(asyncio.to_thread(fill, self.server, self.conversation, self.updates, self.shape))
        began = asyncio.get_running_loop().time()
        shown = asyncio.create_task(self.page.eval(f"meter.shown(() => {self._is_whole()})"))
        while not shown.done():
            await self._type("typing ")
        await filling
        self.figures[f"{name}_s"] = asyncio.get_running_loop().time() - began
        self._note(name, await self.page.eval("meter.end()"))

    async def _reload(self) -> None:
        """The same with its whole history: how long until it is there, then keys, then the scroll bar."""
        await self._open()
        ready = f"meter.shown(() => {_IS_READY} && {self._is_whole()})"
        self.figures["load_ms"] = await self.page.eval(ready)
        self._note_tasks("load", await self.page.eval("meter.loadTasks()"))
        self.figures["heap_mb"] = await self.page.heap()
        self.figures["nodes"] = await self.page.eval("document.querySelectorAll('*').length")
        await self.page.eval("document.querySelector('#prompt').focus()")
        await self._measure("typing", self._type("x" * KEYS))
        await self._sweep("scroll", ".conversation")

    async def _protocol(self) -> None:
        await self._open("&tab=protocol")
        count = "Number.parseInt(document.querySelector('.protocol .count:not([aria-busy=true])')?.textContent)"
        self.figures["protocol_load_ms"] = await self.page.eval(
            f"meter.shown(() => !document.querySelector('.loading') && {count} >= {self.updates})"
        )
        self._note_tasks("protocol_load", await self.page.eval("meter.loadTasks()"))
        self.figures["protocol_heap_mb"] = await self.page.heap()
        await self._sweep("protocol_scroll", ".virtual")
        await self.page.eval("document.querySelector('.protocol input[type=search]').focus()")
        await self._measure("search", self._search(count))
        self.figures["search_heap_mb"] = await self.page.heap()
        self.figures["protocol_nodes"] = await self.page.eval("document.querySelectorAll('*').length")

    async def _search(self, count: str) -> None:
        """The whole word at once, from among everything; then again, key by key."""
        asked = (
            f"new Promise((found) => addEventListener('input', ({{ timeStamp }}) => meter.shown(() => {count} < 20 && "
            f"document.querySelector('.protocol .envelope')).then((now) => found(now - timeStamp)), {{ once: true }}))"
        )
        found = asyncio.create_task(self.page.eval(asked))
        await asyncio.sleep(0.2)
        await self.page.call("Input.insertText", text=NEEDLE)
        self.figures["found_ms"] = await found
        await self.page.eval("document.execCommand('selectAll')")
        await self._type(NEEDLE)

    async def _open(self, more: str = "") -> None:
        """A page that knows nothing yet."""
        await self.page.call("Page.navigate", url="about:blank")
        url = f"http://127.0.0.1:{self.server.port}/ui/#/sessions/{self.conversation.session}?agent=mock{more}"
        await self.page.call("Page.navigate", url=url)
        await self.page.until("document.readyState === 'complete' && window.meter")

    def _is_whole(self) -> str:
        last = "[...document.querySelectorAll('.conversation .entry.agent')].at(-1)"
        return f"{last}?.textContent.includes('{last_words(self.updates)}')"

    async def _type(self, text: str) -> None:
        for character in text:
            await self.page.press(character)
            await asyncio.sleep(KEY_PAUSE)

    async def _sweep(self, name: str, selector: str) -> None:
        """To the top at once, then down to the end."""
        await self.page.eval(f"meter.sweep('{selector}', 1, true)")
        blank = await self._measure(name, self.page.eval(f"meter.sweep('{selector}', {FRAMES}, false)"))
        self.figures[f"{name}_blank"] = blank

    async def _measure(self, name: str, work: Any) -> Any:
        await self.page.eval("meter.begin()")
        given = await work
        await asyncio.sleep(0.2)
        self._note(name, await self.page.eval("meter.end()"))
        return given

    def _note(self, name: str, taken: dict[str, list[float]]) -> None:
        self._note_tasks(name, taken["tasks"])
        if keys := taken["keys"]:
            self.figures[f"{name}_keys"] = len(keys)
            self.figures[f"{name}_key_p50"] = statistics.median(keys)
            self.figures[f"{name}_key_p95"] = _p95(keys)
            self.figures[f"{name}_key_max"] = max(keys)
            self.figures[f"{name}_event_max"] = max(taken["events"], default=0)
        if gaps := taken["gaps"]:
            self.figures[f"{name}_frames"] = len(gaps)
            self.figures[f"{name}_gap_p95"] = _p95(gaps)
            self.figures[f"{name}_gap_max"] = max(gaps)
            self.figures[f"{name}_fps"] = 1000 * len(gaps) / sum(gaps)

    def _note_tasks(self, name: str, tasks: list[float]) -> None:
        self.figures[f"{name}_long_tasks"] = len(tasks)
        self.figures[f"{name}_long_ms"] = sum(tasks)
        self.figures[f"{name}_longest"] = max(tasks, default=0)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
