"""OpenCode's web UI in a real browser: its pages from OpenCode's own server, sessions from ours at another origin."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from support.browser import Browser
from support.served import TOKEN, served

PATIENCE = 90.0
SECOND_PORT = re.compile(r"listening for OpenCode address=(http://\S+)")


async def test_sessions_are_listed_opened_prompted_and_asked_for_permission(
    original: str, browser: Browser, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    flags = ("--token", TOKEN, "--default-agent", "mock", "--opencode-port", "0", "--cors-allow-origin", original)
    with served(tmp_path / "server", *flags) as server:
        address = second_address(server.log)
        auth = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=address, headers=auth, timeout=60, trust_env=False) as http:
            directory = {"directory": str(work)}
            made = http.post("/session", json={"title": "Begun elsewhere"}, params=directory).json()
            http.post(f"/session/{made['id']}/message", json=said("from the start"))

            await browser.open(f"{original}/site.webmanifest")
            await browser.run("eval", remembered(address, str(work)))
            await browser.run("open", f"{original}/")
            await click(browser, "Begun elsewhere")
            await shows(browser, "from the start", count=2)

            await type_in(browser, "slow 5000")  # its first words are there long before its last
            await shows(browser, "tick 3 ")
            http.post(f"/session/{made['id']}/abort")

            await type_in(browser, "tool ls -la")
            await click(browser, "Allow once")
            await shows(browser, "The tool ran.")

            http.post(f"/session/{made['id']}/message", json=said("from somebody else"))
            await shows(browser, "from somebody else", count=2)
            messages = http.get(f"/session/{made['id']}/message").json()
            assert [message["info"]["role"] for message in messages] == ["user", "assistant"] * 4

            await browser.press("Control+`")  # its terminal panel
            await happens(lambda: len(http.get("/pty", params=directory).json()) == 1)
            (terminal,) = http.get("/pty", params=directory).json()
            assert terminal["cwd"] == str(work)
            await browser.until("document.querySelector('canvas')", deadline=PATIENCE)
            await browser.run("click", "canvas")
            logs = f"{server.url}/v1/processes/{process_of(server.url, auth)}/logs"
            async with asyncio.timeout(PATIENCE):
                while b"panel42\r\n" not in printed(httpx.get(logs, headers=auth, trust_env=False).json()):
                    await browser.run("keyboard", "type", "echo panel$((40+2))")  # again, if it was not connected yet
                    await browser.press("Enter")
                    await asyncio.sleep(1)


async def happens(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(is_so):
            await asyncio.sleep(0.2)


def process_of(url: str, auth: dict[str, str]) -> str:
    (process,) = httpx.get(f"{url}/v1/processes", headers=auth, trust_env=False).json()["processes"]
    return str(process["id"])


def printed(log: dict[str, Any]) -> bytes:
    return b"".join(base64.b64decode(entry["data"]) for entry in log["entries"])


def second_address(log: Path) -> str:
    found = SECOND_PORT.search(log.read_text())
    assert found is not None, log.read_text()
    return found[1]


def said(words: str) -> dict[str, Any]:
    return {"parts": [{"type": "text", "text": words}]}


def remembered(address: str, directory: str) -> str:
    """A script that leaves what the web UI remembers of a server with a password, once a person has entered it."""
    connection = {"url": address, "username": "opencode", "password": TOKEN}
    servers = {
        "list": [{"type": "http", "http": connection}],
        "projects": {address: [{"worktree": directory, "expanded": True}]},
        "lastProject": {},
        "recentlyClosed": {},
    }
    kept = {"opencode.settings.dat:defaultServerUrl": address, "opencode.global.dat:server": json.dumps(servers)}
    return f"void Object.entries({json.dumps(kept)}).forEach(([name, value]) => localStorage.setItem(name, value))"


async def shows(browser: Browser, words: str, *, count: int = 1) -> None:
    script = f"document.body.innerText.split({json.dumps(words)}).length > {count}"
    await browser.until(script, deadline=PATIENCE)


async def click(browser: Browser, words: str) -> None:
    found = f"[...document.querySelectorAll('button')].find(one => one.innerText.includes({json.dumps(words)}))"
    await browser.until(found, deadline=PATIENCE)
    await browser.run("eval", f"void {found}.click()")


async def type_in(browser: Browser, words: str) -> None:
    """Type a prompt and send it, once the UI has taken it in; a key that comes while it draws may be passed over."""
    field = "document.querySelector('[contenteditable=true]')"
    await browser.until(field, deadline=PATIENCE)
    await browser.run("eval", f"void {field}.focus()")
    await browser.run("keyboard", "type", words)
    await browser.until(f"{field}?.innerText.includes({json.dumps(words)})", deadline=PATIENCE)
    end = time.monotonic() + PATIENCE
    while await browser.eval(f"!!{field}?.innerText.includes({json.dumps(words)})"):
        assert time.monotonic() < end, f"{words!r} was not sent"
        await browser.press("Enter")
