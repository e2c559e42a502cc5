"""What is done with whole sessions: start, find, rename, fork, export, terminate, several at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox_agent import SandboxAgent
from support.browser import Inspector, wait_for
from support.rpc import connected
from support.server import Server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


async def test_a_session_is_started_with_all_that_was_chosen(server: Server, inspector: Inspector) -> None:
    browser = inspector.browser
    await browser.click("#new-session")
    await browser.until("document.querySelector('select[name=model]:enabled')?.options.length > 2")
    await browser.screenshot("new-session")
    await browser.each(
        ["select", "select[name=agent]", "mock"],
        ["fill", "input[name=cwd]", "/var/tmp"],
        ["select", "select[name=model]", "mock-large"],
        ["select", "select[name=mode]", "code"],
        ["select", "select[name=permissionMode]", "allow"],
        ["fill", "input[name=title]", "All chosen"],
        ["click", "#start-session"],
    )
    await inspector.ready()
    await browser.until_text("All chosen", within=".session-list")
    await inspector.say("tool ls")
    await browser.until_text("The tool ran.")
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
        [summary] = (await http.get("/v1/sessions")).json()["sessions"]
    assert (summary["cwd"], summary["model"], summary["mode"]) == ("/var/tmp", "mock-large", "code")
    assert summary["title"] == "All chosen"


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


async def test_a_session_is_made_in_a_directory_that_was_picked_with_mcp_servers_from_a_form(
    inspector: Inspector, server: Server, tmp_path: Path
) -> None:
    browser = inspector.browser
    (tmp_path / "project").mkdir()
    await browser.each(
        ["click", "#new-session"], wait_for("document.querySelector('select[name=agent]')?.options.length")
    )
    await browser.run("select", "select[name=agent]", "mock")
    await browser.fill("input[name=cwd]", str(tmp_path))
    await browser.eval("[...document.querySelectorAll('dialog button')].find(b => b.innerText === 'Browse').click()")
    await browser.until_text("project", within=".picker")
    await browser.eval("[...document.querySelectorAll('.picker button')].find(b => b.innerText === 'project').click()")
    await browser.until("document.querySelector('input[name=cwd]').value.endsWith('/project')")
    await browser.click("dialog details summary")
    await browser.eval(
        "[...document.querySelectorAll('dialog button')].find(b => b.innerText === 'Add a server').click()"
    )
    await browser.fill("input[aria-label='Name of the MCP server']", "files")
    await browser.fill("input[aria-label='Command and arguments']", "/bin/mcp --root '/a b'")
    await browser.fill("textarea[aria-label='Environment']", "KEY=a=b")
    await browser.click(".mcp-servers .kept input")
    await browser.screenshot("new-session")
    await browser.click("#start-session")
    await inspector.ready()
    name = (await browser.eval("location.hash")).split("/")[-1].split("?")[0]
    async with connected(server.url) as rpc:
        page = await rpc.call("_sandboxagent/session/events", {"sessionId": name})
        made = next(e["envelope"]["params"] for e in page["events"] if e["envelope"].get("method") == "session/new")
    assert made["cwd"] == str(tmp_path / "project")
    assert made["mcpServers"] == [
        {"name": "files", "command": "/bin/mcp", "args": ["--root", "/a b"], "env": [{"name": "KEY", "value": "a=b"}]}
    ]


async def test_the_mcp_servers_and_skills_of_a_directory_are_set_in_a_form_and_broken_ones_are_named(
    inspector: Inspector, server: Server, tmp_path: Path
) -> None:
    browser, work = inspector.browser, tmp_path / "work"
    (work / "tips").mkdir(parents=True)
    (work / "tips" / "SKILL.md").write_text("---\nname: tips\ndescription: tips\n---\nDo it.\n")
    async with httpx.AsyncClient(base_url=f"{server.url}/v1/config", trust_env=False) as http:

        async def put(kind: str, name: str, config: dict[str, Any]) -> None:
            query = {"directory": str(work), "mcpName" if kind == "mcp" else "skillName": name}
            assert (await http.put(f"/{kind}", params=query, json=config)).status_code == 204

        await put("mcp", "broken", {"type": "local", "command": "no-such-program"})
        await put("skills", "house-rules", {"sources": [{"type": "local", "source": "tips"}]})
        await browser.each(
            ["click", "#new-session"], wait_for("document.querySelector('select[name=agent]')?.options.length")
        )
        await browser.run("select", "select[name=agent]", "mock")
        await browser.fill("input[name=cwd]", str(work))
        await browser.until_text("1 has a problem", within=".setup summary")
        await browser.click(".setup summary")
        await browser.until_text("'no-such-program' is not a program", within=".setup li .bad")
        await browser.until_text("house-rules", within=".setup ul:nth-of-type(2)")
        await browser.click(".skills-of > button")
        await browser.fill("input[aria-label='Name of the skills']", "more tips")
        await browser.fill("input[aria-label='Source of the skills']", "tips")
        await browser.click(".skills-of > button")
        await browser.until_text("more tips", within=".setup ul:nth-of-type(2)")
        kept = (await http.get("/skills", params={"directory": str(work), "skillName": "more tips"})).json()
        assert kept["sources"] == [{"type": "local", "source": "tips"}]
        await browser.click(".setup ul:nth-of-type(2) li:nth-child(2) button")
        await browser.until("document.querySelectorAll('.setup ul:nth-of-type(2) li').length === 1")
        await browser.click(".mcp-servers > button")
        await browser.fill("input[aria-label='Name of the MCP server']", "files")
        await browser.fill("input[aria-label='Command and arguments']", "true --root '/a b'")
        await browser.screenshot("new-session-setup")
        await browser.run("scrollintoview", "#start-session")
        await browser.click("#start-session")
        await inspector.ready()
        await browser.until_text("MCP server broken: command 'no-such-program'", within=".session .why")
        stored = (await http.get("/mcp", params={"directory": str(work), "mcpName": "files"})).json()
        assert stored == {"type": "local", "command": "true", "args": ["--root", "/a b"], "env": {}}
        await browser.click("#new-session")
        await browser.click(".setup summary")
        await browser.until_text("files", within=".setup li:nth-child(2)")
        await browser.click(".setup li:first-child input")
        await browser.until("!document.querySelector('.setup .broken')")
        await browser.click(".setup li:first-child button")
        await browser.until("document.querySelectorAll('.setup ul:first-of-type li').length === 1")
        left = (await http.get("/mcp", params={"directory": str(work)})).json()["entries"]
        assert [entry["name"] for entry in left] == ["files"]
