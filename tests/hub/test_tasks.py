"""Work on requests: it is answered, also if it never begins."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from sandbox_agent.core import frames
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import AgentExited
from sandbox_agent.hub.clients.request import Request
from support.hub import hub_here
from support.waiting import until


async def test_a_request_taken_in_the_last_moment_before_a_stop_is_answered_on_the_stream(tmp_path: Path) -> None:
    async with hub_here(tmp_path) as hub:
        connection, _ = await hub.open_connection(AgentId("mock"), {})
        reader = connection.stream.read_from(0)
        raw = frames.request(b"7", "session/new", {"cwd": "/tmp", "mcpServers": []})
        connection.submit(frames.parse(raw), raw)
        await hub.close()
        lines: list[bytes] = []
        async with asyncio.timeout(30):
            while not reader.is_over:
                batch = await reader.take(wait=1)
                lines += batch.lines if batch is not None else []
        answers = [message for message in map(msgspec.json.decode, lines) if message.get("id") == 7]
        assert [answer["error"]["code"] for answer in answers] == [-32012]


async def test_a_request_for_a_process_that_exited_meanwhile_fails_at_once(tmp_path: Path) -> None:
    async with hub_here(tmp_path) as hub, asyncio.timeout(30):
        await hub.open_connection(AgentId("mock"), {})
        agent = hub.agents.front(AgentId("mock"))
        process = agent.process
        assert process is not None
        await process.stop(grace=5)
        await until(lambda: agent.process is None)
        with pytest.raises(AgentExited, match="session/new was not sent"):
            await agent.request("session/new", {"cwd": "/tmp", "mcpServers": []}, timeout=None)


async def test_what_a_client_asks_of_a_process_that_is_being_ended_is_answered(tmp_path: Path) -> None:
    async with hub_here(tmp_path) as hub, asyncio.timeout(30):
        connection, _ = await hub.open_connection(AgentId("mock"), {})
        reader = connection.stream.read_from(0)
        agent = hub.agents.front(AgentId("mock"))
        ending = asyncio.create_task(agent.rest())
        while agent.is_ready:
            await asyncio.sleep(0)
        raw = frames.request(b"7", "_mine/anything", {})
        agent.call(Request(connection, 1, frames.parse(raw), raw))
        batch = await reader.take(wait=20)
        assert batch is not None
        assert [msgspec.json.decode(line)["error"]["code"] for line in batch.lines] == [AgentExited.code]
        await ending


async def test_work_that_cleans_up_before_it_answers_is_waited_for_when_the_server_stops(tmp_path: Path) -> None:
    async with hub_here(tmp_path) as hub:
        connection, _ = await hub.open_connection(AgentId("mock"), {})
        reader = connection.stream.read_from(0)
        raw = frames.request(b"7", "session/new", {"cwd": "/tmp", "mcpServers": []})
        has_begun = asyncio.Event()

        async def work() -> None:
            try:
                has_begun.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.05)

        hub.tasks.answer(Request(connection, 99, frames.parse(raw), raw), work())
        await has_begun.wait()
        await hub.close()
        lines: list[bytes] = []
        async with asyncio.timeout(30):
            while not reader.is_over:
                batch = await reader.take(wait=1)
                lines += batch.lines if batch is not None else []
        answers = [message for message in map(msgspec.json.decode, lines) if message.get("id") == 7]
        assert [answer["error"]["message"] for answer in answers] == ["the server is shutting down"]


async def test_work_that_goes_on_behind_its_answer_is_not_answered_again_when_the_server_stops(tmp_path: Path) -> None:
    async with hub_here(tmp_path) as hub:
        connection, _ = await hub.open_connection(AgentId("mock"), {})
        reader = connection.stream.read_from(0)
        raw = frames.request(b"7", "session/new", {"cwd": "/tmp", "mcpServers": []})
        request = Request(connection, 99, frames.parse(raw), raw)
        has_answered = asyncio.Event()

        async def work() -> None:
            request.in_version_1().answer({"sessionId": "s"})
            has_answered.set()
            await asyncio.Event().wait()

        hub.tasks.answer(request, work())
        await has_answered.wait()
        await hub.close()
        lines: list[bytes] = []
        async with asyncio.timeout(30):
            while not reader.is_over:
                batch = await reader.take(wait=1)
                lines += batch.lines if batch is not None else []
        answers = [message for message in map(msgspec.json.decode, lines) if message.get("id") == 7]
        assert [answer.get("result") for answer in answers] == [{"sessionId": "s"}]
