"""An MCP server and a skill that are configured for a directory, used by a real agent there."""

from __future__ import annotations

import asyncio
import fcntl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support.real_world import DEADLINE, RealWorld, real_cache, says
from support.rpc import Events, RpcClient, is_permission, option_of_kind

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[1] / "support" / "mcp_server.py"
TOOL = "mcp__words__secret_word"


@pytest.fixture(autouse=True)
def _row() -> None:
    """No row of the matrix: every agent gets its servers in the same way."""


def mcp_python() -> Path:
    """A Python that has the package `mcp`, made once."""
    home = real_cache() / "mcp-python"
    with (real_cache() / "mcp-python.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
            install = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--retries", "5", "mcp>=1.9,<2"]
            subprocess.run(install, check=True, capture_output=True)
            (home / "ready").touch()
    return home / "bin" / "python"


async def test_a_server_of_the_directory_is_called_and_a_broken_one_is_named(world: RealWorld, work: Path) -> None:
    if world.agent not in ("claude", "codex"):
        return  # agents differ in how they name the tools of a server
    python = await asyncio.to_thread(mcp_python)
    place = work / world.word()
    place.mkdir()
    note = place / "note"
    words = {
        "type": "local",
        "command": str(python),
        "args": [str(PROGRAM)],
        "env": {"WORDS_NOTE": str(note), "WORDS_KEY": "${HOME}"},
    }
    broken = {"type": "local", "command": str(python), "args": ["-c", "raise SystemExit('broken on purpose')"]}
    missing = {"type": "local", "command": "no-such-mcp-server"}
    async with httpx.AsyncClient(base_url=world.server.url, trust_env=False) as http:
        for name, config in (("words", words), ("broken", broken), ("missing", missing)):
            query = {"directory": str(place), "mcpName": name}
            assert (await http.put("/v1/config/mcp", params=query, json=config)).status_code == 204
    async with world.client() as client, client.stream() as events:
        made = await client.call("session/new", {"cwd": str(place), "mcpServers": []})
        told = made["_meta"]["sandboxagent.dev"]["mcp"]
        assert {name: ours["applied"] for name, ours in told.items()} == {
            "words": True,
            "broken": True,
            "missing": False,
        }
        modes = [mode["id"] for mode in made["modes"]["availableModes"] if "full" in mode["id"]]
        if modes:  # else codex wants to ask, which its program cannot do in version 2: it has no title for the request
            await client.call("session/set_mode", {"sessionId": made["sessionId"], "modeId": modes[0]})
        async with asyncio.timeout(DEADLINE):
            await allowed_turn(client, events, made["sessionId"], f"TOOL:{TOOL} {{}}")
            while not note.exists():  # codex offers the tools of a server as soon as it has started, not before
                await allowed_turn(client, events, made["sessionId"], f"TOOL:{TOOL} {{}}")
        await events.wait_until(says("xylophone"), deadline=DEADLINE)
    assert note.read_text().startswith("called with /")


async def test_a_skill_of_the_directory_is_read_by_the_agent(world: RealWorld, work: Path) -> None:
    if world.agent != "claude":
        return  # others have no tool by which the model asks for a skill: it reads the file by itself
    place, library = work / world.word(), work / world.word() / "library"
    place.mkdir()
    (library / "greeting").mkdir(parents=True)
    words = "---\nname: greeting\ndescription: how to greet\n---\nGreet everybody with the word marzipan.\n"
    (library / "greeting" / "SKILL.md").write_text(words)
    source = {"sources": [{"type": "local", "source": str(library)}]}
    async with httpx.AsyncClient(base_url=world.server.url, trust_env=False) as http:
        query = {"directory": str(place), "skillName": "team"}
        assert (await http.put("/v1/config/skills", params=query, json=source)).status_code == 204
    async with world.client() as client, client.stream() as events:
        made = await client.call("session/new", {"cwd": str(place), "mcpServers": []})
        told = made["_meta"]["sandboxagent.dev"]["skills"]["team"]
        assert (told["applied"], told["skills"]) == (True, ["greeting"])
        async with asyncio.timeout(DEADLINE):
            await allowed_turn(client, events, made["sessionId"], 'TOOL:Skill {"skill": "greeting"}')
    assert any("the word marzipan" in seen.request for seen in world.llm.seen)


async def allowed_turn(client: RpcClient, events: Events, session: str, text: str) -> None:
    """One turn to its end; what it asks is allowed."""
    before = len(events.messages)
    turn = asyncio.create_task(client.prompt(session, text))
    asking = asyncio.create_task(events.wait_for(is_permission, after=before, deadline=DEADLINE))
    await asyncio.wait({turn, asking}, return_when=asyncio.FIRST_COMPLETED)
    if asking.done():
        await client.answer(asking.result(), option_of_kind(asking.result(), "allow_once"))
    asking.cancel()
    assert (await turn)["result"]["stopReason"] == "end_turn"
