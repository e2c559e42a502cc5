"""`sandbox-agent stdio`: an editor talks to it as to a local agent, whatever happens to the server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.cable import cable_to
from support.rpc import DEADLINE, Events, Message, initialize_params, is_permission, option_of_kind, prompt_params
from support.server import mock_agents, running_server
from support.waiting import until

CHUNK = "agent_message_chunk"


class Editor:
    """Speaks ACP with a child process over its stdin and stdout."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.events = Events()
        self._ids = count(0)
        self._waiting: dict[Any, asyncio.Future[Message]] = {}

    async def read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = msgspec.json.decode(line)
            if "method" in message:
                self.events.add(len(self.events.ids) + 1, message)
                self.events.notify()
            else:
                self._waiting.pop(message["id"]).set_result(message)

    def write(self, message: Message | bytes) -> None:
        assert self.process.stdin is not None
        content = message if isinstance(message, bytes) else msgspec.json.encode(message)
        self.process.stdin.write(content + b"\n")

    def start(self, method: str, params: Any) -> asyncio.Future[Message]:
        key = next(self._ids)
        self._waiting[key] = asyncio.get_running_loop().create_future()
        self.write({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        return self._waiting[key]

    async def request(self, method: str, params: Any) -> Message:
        async with asyncio.timeout(DEADLINE):
            return await self.start(method, params)

    async def new_session(self) -> str:
        await self.request("initialize", {"protocolVersion": 1})
        answer = await self.request("session/new", {"cwd": "/tmp", "mcpServers": []})
        return str(answer["result"]["sessionId"])

    async def prompt(self, session: str, text: str) -> Message:
        return await self.request("session/prompt", prompt_params(session, text))

    async def allow(self, asked: Message) -> None:
        self.write({"jsonrpc": "2.0", "id": asked["id"], "result": option_of_kind(asked, "allow_once")})

    async def hears(self, text: str) -> None:
        await self.events.wait_until(lambda events: text in events.text())

    async def leave(self) -> int:
        """Close stdin and wait for the process to end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(DEADLINE):
            return await self.process.wait()


@asynccontextmanager
async def editor_with(home: Path, *flags: str, ends_with: int = 0) -> AsyncIterator[Editor]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "SANDBOX_AGENT_DATA_DIR": str(home / "data"),
        "SANDBOX_AGENT_MOCK_STATE": str(home / "mock-state"),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sandbox_agent", "stdio", "--agent", "mock", *flags),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=env,
        limit=1 << 24,
    )
    editor = Editor(process)
    reading = asyncio.create_task(editor.read())
    try:
        yield editor
        assert await editor.leave() == ends_with
        await reading
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def test_turn_with_a_permission_runs_at_the_server(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "server", "--token", "secret") as server,
        editor_with(tmp_path, "--endpoint", server.url, "--token", "secret") as editor,
    ):
        session = await editor.new_session()
        turn = editor.start("session/prompt", prompt_params(session, "tool ls"))
        await editor.allow(await editor.events.wait_for(is_permission))
        assert (await turn)["result"]["stopReason"] == "end_turn"
        methods = {message["method"] for message in editor.events.messages}
        assert methods == {"session/update", "session/request_permission"}


@pytest.mark.parametrize("agent", ["one", "two"])
async def test_an_editor_of_version_2_gets_version_2_whatever_the_agent_speaks(tmp_path: Path, agent: str) -> None:
    agents = mock_agents(one="", two="--protocol 2")
    async with (
        running_server(tmp_path / "server", "--token", "secret", config=agents) as server,
        editor_with(tmp_path, "--endpoint", server.url, "--token", "secret", "--agent", agent) as editor,
    ):
        greeted = (await editor.request("initialize", initialize_params(2)))["result"]
        assert (greeted["protocolVersion"], "capabilities" in greeted) == (2, True)
        session = (await editor.request("session/new", {"cwd": "/tmp"}))["result"]["sessionId"]
        assert (await editor.prompt(session, "tool ls"))["result"]["messageId"]
        await editor.allow(await editor.events.wait_for(is_permission))
        await editor.events.wait_until(lambda events: events.updates("state_update")[-1:])
        await editor.events.wait_until(lambda events: events.updates("state_update")[-1]["state"] == "idle")
        assert editor.events.updates("state_update")[-1]["stopReason"] == "end_turn"


async def test_without_an_endpoint_it_brings_its_own_server_and_takes_it_along(tmp_path: Path) -> None:
    async with editor_with(tmp_path) as editor:
        session = await editor.new_session()
        assert (await editor.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"
        await editor.hears("hello")
        [server] = children_of(editor.process.pid)
    assert not Path(f"/proc/{server}").exists()


async def test_killed_it_leaves_no_server_behind(tmp_path: Path) -> None:
    async with editor_with(tmp_path, ends_with=-9) as editor:
        await editor.new_session()
        [server] = children_of(editor.process.pid)
        editor.process.kill()
    await until(lambda: status_of(server) == "Z")


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def status_of(pid: int) -> str:
    """R, S and so on; Z for a process that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.promise("P-deploy-1")
async def test_cut_sockets_lose_and_double_nothing(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "server") as server,
        cable_to(server.port) as cable,
        editor_with(tmp_path, "--endpoint", cable.url) as editor,
    ):
        session = await editor.new_session()
        turn = editor.start("session/prompt", prompt_params(session, "slow 60"))
        for tick in (3, 20, 40):
            await editor.hears(f"tick {tick}")
            cable.cut()
        assert (await turn)["result"]["stopReason"] == "end_turn"
        await editor.hears("tick 60")
        texts = [update["content"]["text"].strip() for update in editor.events.updates(CHUNK)]
        assert texts == [f"tick {n}" for n in range(1, 61)]
        assert cable.cuts == 3


@pytest.mark.parametrize("way", ["stopped", "killed"])
async def test_session_goes_on_after_the_server_was_restarted(tmp_path: Path, way: str) -> None:
    async with running_server(tmp_path / "server") as first:
        port = first.port
        async with editor_with(tmp_path, "--endpoint", first.url) as editor:
            session = await editor.new_session()
            turn = editor.start("session/prompt", prompt_params(session, "tool first"))
            asked = await editor.events.wait_for(is_permission)
            if way == "killed":
                first.kill()
                await first.process.wait()
            else:
                await first.stop()
            async with running_server(tmp_path / "server", port=port):
                assert "error" in await turn, "a turn that the restart broke off ends with an error"
                await editor.events.wait_for(lambda m: m["method"] == "$/cancel_request")
                position = len(editor.events.messages)
                again = editor.start("session/prompt", prompt_params(session, "recall; tool second"))
                renewed = await editor.events.wait_for(is_permission, after=position)
                assert renewed["id"] != asked["id"]
                await editor.allow(renewed)
                assert (await again)["result"]["stopReason"] == "end_turn"
                assert await editor.leave() == 0


async def test_unknown_agent_is_told_in_the_answer(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "server") as server,
        editor_with(tmp_path, "--endpoint", server.url, "--agent", "nobody") as editor,
    ):
        answer = await editor.request("initialize", {"protocolVersion": 1})
        assert "nobody" in answer["error"]["message"]


async def test_nonsense_on_stdin_is_answered_and_survived(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "server") as server,
        editor_with(tmp_path, "--endpoint", server.url) as editor,
    ):
        editor._waiting[None] = asyncio.get_running_loop().create_future()
        refused = editor._waiting[None]
        editor.write(b"{ this is not JSON")
        assert (await refused)["error"]["code"] == -32600
        session = await editor.new_session()
        assert "error" in await editor.request("session/prompt", ["not", "an", "object"])
        assert (await editor.prompt(session, "fine"))["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize("content", [None, b""])
async def test_without_input_it_ends_at_once_and_starts_nothing(tmp_path: Path, content: bytes | None) -> None:
    """`content` is that of a file; None is /dev/null."""
    process = await _stdio_reading(tmp_path, content)
    async with asyncio.timeout(DEADLINE):
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")
    assert not (tmp_path / "data").exists()


async def test_messages_may_come_from_a_file(tmp_path: Path) -> None:
    message = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": 1}}
    process = await _stdio_reading(tmp_path, msgspec.json.encode(message))
    async with asyncio.timeout(DEADLINE):
        out, _ = await process.communicate()
    assert msgspec.json.decode(out.splitlines()[0])["id"] == 7


async def _stdio_reading(home: Path, content: bytes | None) -> asyncio.subprocess.Process:
    source = home / "input"
    if content is not None:
        source.write_bytes(content)
    path = os.devnull if content is None else source
    with Path(path).open("rb") as stdin:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sandbox_agent", "stdio", "--agent", "mock"),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "SANDBOX_AGENT_DATA_DIR": str(home / "data")},
        )
