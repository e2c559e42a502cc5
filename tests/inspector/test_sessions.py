"""What is done with whole sessions: start, find, rename, fork, export, terminate, several at once."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from sandbox_agent import SandboxAgent
from support.browser import Inspector
from support.server import Server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


async def test_a_session_is_started_with_all_that_was_chosen(server: Server, inspector: Inspector) -> None:
    browser = inspector.browser
    await browser.click("#new-session")
    await browser.until("document.querySelector('select[name=model]:enabled')?.options.length > 2")
    await browser.screenshot("new-session")
    servers = '[{"name":"files","command":"/bin/false","args":[],"env":[]}]'
    await browser.each(
        ["select", "select[name=agent]", "mock"],
        ["fill", "input[name=cwd]", "/var/tmp"],
        ["select", "select[name=model]", "mock-large"],
        ["select", "select[name=mode]", "code"],
        ["select", "select[name=permissionMode]", "allow"],
        ["fill", "input[name=title]", "All chosen"],
        ["click", "dialog details summary"],
        ["fill", "textarea[name=mcpServers]", servers],
        ["click", "#start-session"],
    )
    await inspector.ready()
    await browser.until_text("All chosen", within=".session-list")
    await inspector.say("tool ls")
    await browser.until_text("The tool ran.")
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
        [summary] = (await http.get("/v1/sessions")).json()["sessions"]
        raw = (await http.get(f"/v1/sessions/{summary['sessionId']}/transcript")).text
    assert (summary["cwd"], summary["model"], summary["mode"]) == ("/var/tmp", "mock-large", "code")
    assert summary["title"] == "All chosen"
    assert '"command":"/bin/false"' in raw.replace(" ", "")


async def test_a_fork_knows_the_past_and_goes_its_own_way(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session("/var/tmp")
    await inspector.say("shared past")
    await inspector.until_status("Ready")
    origin = await browser.eval("location.hash")
    await inspector.choose("Fork")
    await browser.until(f"location.hash !== {json.dumps(origin)}")
    await inspector.ready()
    await browser.until("document.querySelectorAll('.session-list li').length === 2")
    assert "/var/tmp" in await browser.eval("document.querySelector('.session-header .facts').innerText")
    await inspector.say("recall")
    await browser.until_text("shared past", within=".entry.agent ol")
    await browser.eval(f"void (location.hash = {json.dumps(origin)})")
    await browser.until_text("shared past", within=".entry.agent")
    assert await inspector.answers() == ["shared past"]


async def test_a_session_is_found_renamed_and_terminated(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("one")
    await inspector.until_status("Ready")
    await inspector.choose("Rename")
    await browser.fill("dialog input[name=title]", "A better name")
    await browser.press("Enter")
    await browser.until_text("A better name", within=".session-list")
    await browser.until_text("A better name", within=".session-header h1")
    await inspector.start_session()
    await browser.fill("input[aria-label='Search sessions']", "better")
    await browser.until("document.querySelectorAll('.session-list li').length === 1")
    await browser.click(".session-list a")
    await browser.until_text("one", within=".entry.agent")
    await inspector.choose("Terminate")
    await browser.click("dialog footer button:nth-child(1)")
    await browser.until("!document.querySelector('dialog')")
    await inspector.until_status("Ready")
    await inspector.choose("Terminate")
    await browser.click("dialog footer button.danger")
    await inspector.until_status("Ended")
    await browser.until("document.querySelector('#prompt').disabled")
    await browser.until_text("terminated", within=".why")
    await browser.until_text("ended", within=".session-list .tag")
    await browser.until_text("terminated", within=".session-list .reason")
    await browser.screenshot("ended")


async def test_an_export_holds_the_conversation(inspector: Inspector, tmp_path: Path) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("words worth keeping")
    await inspector.until_status("Ready")
    lines = await inspector.download(tmp_path / "a.jsonl", "Export as JSON lines")
    events = [json.loads(line) for line in lines.decode().splitlines()]
    said = [event["envelope"].get("params", {}).get("update", {}) for event in events if "envelope" in event]
    text = "".join(update["content"]["text"] for update in said if update.get("sessionUpdate") == "agent_message_chunk")
    assert text == "words worth keeping"
    prompts = [event for event in events if event.get("envelope", {}).get("method") == "session/prompt"]
    assert [event["source"] for event in prompts] == ["client"]
    markdown = (await inspector.download(tmp_path / "a.md", "Export as Markdown")).decode()
    assert "**Agent**\n\n> words worth keeping" in markdown
    assert "Agent: `mock`" in markdown
    assert await browser.eval("document.querySelector('dialog')") is None


async def test_several_sessions_go_on_at_once(inspector: Inspector) -> None:
    browser = inspector.browser
    for number in (1, 2, 3):
        await inspector.start_session()
        await inspector.say(f"slow 60; session {number} is done")
        await browser.until_text("tick 1", within=".entry.agent")
    await inspector.say("tool ls")
    links = await browser.eval("[...document.querySelectorAll('.session-list a')].map(a => a.getAttribute('href'))")
    assert len(links) == 3
    await browser.until("document.querySelectorAll('.session-list .status').length > 0")
    seen = set()
    for link in links:
        await browser.eval(f"void (location.hash = {json.dumps(link)})")
        await browser.until(
            "[...document.querySelectorAll('.entry.agent')].some(one => one.innerText.includes('is done'))"
        )
        text = "\n".join(await inspector.answers())
        assert [f"tick {number}" in text for number in (1, 30, 60)] == [True, True, True]
        seen |= {number for number in (1, 2, 3) if f"session {number} is done" in text}
    assert seen == {1, 2, 3}
    await browser.until_text("Asking", within=".session-list")


async def test_an_answer_that_another_client_gave_is_shown_with_who_gave_it(
    server: Server, inspector: Inspector
) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("tool ls")
    await inspector.until_status("Asking")
    session = (await browser.eval("location.hash")).split("/")[2].split("?")[0]
    async with SandboxAgent.connect(server.url, on_permission=lambda request: request.allow()) as sandbox:
        await sandbox.resume_session(session)
        await browser.until_text("Allow once · by another client", within=".ask")
        await browser.until_text("The tool ran.")
