"""Files: the session's directory, and what is attached to a message."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from support.browser import Inspector
from support.server import Server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000100000001080600000 01f15c4890000000d49444154789c63640000000600023081d02f"
    "0000000049454e44ae426082".replace(" ", "")
)


async def test_files_are_browsed_uploaded_and_downloaded(inspector: Inspector, tmp_path: Path) -> None:
    browser, work, mine = inspector.browser, tmp_path / "work", tmp_path / "mine"
    (work / "deep" / "deeper").mkdir(parents=True)
    mine.mkdir()
    content = bytes(range(256)) * 500
    (mine / "blob ü.bin").write_bytes(content)
    (mine / "notes.txt").write_text("from my machine\n")
    await inspector.start_session(str(work))
    await inspector.show("files")
    await browser.click(".entries li:nth-child(1) .entry-row")
    await browser.until_text("deeper/", within=".entries")
    await browser.run("upload", ".files input[type=file]", str(mine / "blob ü.bin"), str(mine / "notes.txt"))
    await browser.until_text("Uploaded 2 files", within=".files")
    assert (work / "deep" / "blob ü.bin").read_bytes() == content
    await browser.click(".entries li:nth-child(3) .entry-row")
    await browser.until_text("from my machine", within=".file pre")
    await browser.screenshot("files-open")
    await browser.click(".entries li:nth-child(2) .entry-row")
    await browser.until_text("Not a text file", within=".file")
    await browser.run("download", ".file header button:nth-of-type(1)", str(tmp_path / "back.bin"))
    assert (tmp_path / "back.bin").read_bytes() == content
    await browser.click(".crumbs button")
    await browser.until_text("deep/", within=".entries")


@pytest.mark.promise("P-inspector-4")
async def test_an_upload_replaces_a_file_only_when_told_to(inspector: Inspector, tmp_path: Path) -> None:
    browser, work = inspector.browser, tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("old")
    (tmp_path / "notes.txt").write_text("new")
    await inspector.start_session(str(work))
    await inspector.show("files")
    await browser.until_text("notes.txt", within=".entries")
    await browser.run("upload", ".files input[type=file]", str(tmp_path / "notes.txt"))
    await browser.click("dialog footer button:nth-child(1)")
    await browser.until("!document.querySelector('dialog')")
    assert (work / "notes.txt").read_text() == "old"
    await browser.run("upload", ".files input[type=file]", str(tmp_path / "notes.txt"))
    await browser.click("dialog footer button.danger")
    await browser.until_text("Uploaded notes.txt", within=".files")
    assert (work / "notes.txt").read_text() == "new"


async def test_attached_files_reach_the_agent(server: Server, inspector: Inspector, tmp_path: Path) -> None:
    browser = inspector.browser
    (tmp_path / "notes.txt").write_text("the attached words")
    (tmp_path / "dot.png").write_bytes(PNG)
    await inspector.start_session()
    files = [str(tmp_path / name) for name in ("notes.txt", "dot.png", "dot.png")]
    await browser.run("upload", ".composer input[type=file]", *files[:2])
    await browser.until("document.querySelectorAll('.composer .attachments li').length === 2")
    await browser.run("upload", ".composer input[type=file]", files[2])
    await browser.until("document.querySelectorAll('.composer .attachments li').length === 3")
    await browser.click(".composer .attachments li:nth-child(3) button")
    await inspector.say("look at these")
    await browser.until_text("look at these [resource] [image]", within=".entry.agent")
    await browser.until("document.querySelector('.entry.user img')?.naturalWidth === 1")
    assert await browser.eval("document.querySelector('.composer .attachments')") is None
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
        [session] = (await http.get("/v1/sessions")).json()["sessions"]
        lines = (await http.get(f"/v1/sessions/{session['sessionId']}/transcript")).text.splitlines()
    [prompt] = [
        event["envelope"]["params"]["prompt"]
        for event in map(json.loads, lines)
        if event.get("envelope", {}).get("method") == "session/prompt"
    ]
    assert [block["type"] for block in prompt] == ["text", "resource", "image"]
    assert prompt[1]["resource"]["text"] == "the attached words"
    assert prompt[1]["resource"]["uri"].endswith("notes.txt")


async def test_commands_are_offered_filtered_and_completed(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    offered = "[...document.querySelectorAll('.commands [role=option]')].map(one => one.innerText.split('\\n')[0])"
    await browser.fill("#prompt", "/")
    await browser.until("document.querySelectorAll('.commands [role=option]').length > 1")
    everything = await browser.eval(offered)
    last = everything[-1].split()[0]
    await browser.press("ArrowUp")
    await browser.until("document.querySelector('.commands li:last-child[aria-selected=true]')")
    await browser.press("Tab")
    await browser.until(f"document.querySelector('#prompt').value === {json.dumps(f'{last} ')}")
    await browser.until("!document.querySelector('.commands')")
    await browser.fill("#prompt", last)
    await browser.until("document.querySelector('.commands')")
    await browser.press("Escape")
    await browser.until("!document.querySelector('.commands')")
    await browser.fill("#prompt", "/no-such-command")
    await browser.until("!document.querySelector('.commands')")


async def test_directories_unfold_in_their_place_and_show_what_a_running_turn_leaves(
    inspector: Inspector, tmp_path: Path
) -> None:
    browser = inspector.browser
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "part2.py").write_text("2")
    (tmp_path / "src" / "deep" / "part10.py").write_text("10")
    await inspector.start_session(str(tmp_path))
    await inspector.say("slow 100000")
    await inspector.until_status("Working")
    await inspector.show("files")
    await browser.click("button[aria-label='Unfold src']")
    await browser.click("button[aria-label='Unfold deep']")
    await browser.until_text("part2.py", within=".unfolded .unfolded")
    names = await browser.eval(
        "[...document.querySelectorAll('.unfolded .unfolded .name')].map(n => n.innerText.trim())"
    )
    assert names == ["part2.py", "part10.py"]
    (tmp_path / "src" / "deep" / "made.py").write_text("later")
    await browser.until_text("made.py", within=".unfolded .unfolded")
    await browser.screenshot("files-tree")
