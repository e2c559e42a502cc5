"""Permissions and questions, answered by the program's handlers."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from sandbox_agent import SandboxAgent
from sandbox_agent.client import PermissionRequest, QuestionRequest, Session
from support.server import running_server


async def _last_status(session: Session, prompt: str = "tool ls") -> Any:
    updates = [update async for update in session.prompt(prompt)]
    return [u.status for u in updates if isinstance(u, schema.ToolCallProgress)][-1]


async def test_a_handler_gets_the_tool_call_and_decides(tmp_path: Path) -> None:
    asked: list[str] = []

    async def decide(request: PermissionRequest) -> Any:
        asked.append(request.title)
        return request.allow() if len(asked) == 1 else request.reject()

    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url, on_permission=decide) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        assert await _last_status(session) == "completed"
        assert await _last_status(session) == "failed"
    assert asked == ["Run ls", "Run ls"]


async def test_a_handler_of_the_session_wins_over_that_of_the_connection(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path) as server,
        SandboxAgent.connect(server.url, on_permission=lambda request: request.reject()) as sandbox,
    ):
        session = await sandbox.create_session(
            agent="mock", cwd="/tmp", on_permission=lambda request: request.allow(always=True)
        )
        assert await _last_status(session) == "completed"


async def test_without_a_handler_a_permission_is_rejected_and_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        with caplog.at_level(logging.WARNING):
            assert await _last_status(session) == "failed"
    assert "on_permission" in caplog.text


async def test_a_watcher_without_a_handler_leaves_the_answer_to_the_one_whose_turn_it_is(tmp_path: Path) -> None:
    async def decide(request: PermissionRequest) -> Any:
        await asyncio.sleep(0.2)
        return request.allow()

    async with (
        running_server(tmp_path) as server,
        SandboxAgent.connect(server.url, on_permission=decide) as driver,
        SandboxAgent.connect(server.url) as watcher,
    ):
        session = await driver.create_session(agent="mock", cwd="/tmp")
        await watcher.resume_session(session.id, agent="mock")
        assert await _last_status(session) == "completed"


async def test_a_handler_that_is_set_after_resuming_is_asked_what_is_open(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def wait(request: PermissionRequest) -> Any:
        asked.set()
        await asyncio.sleep(60)

    async with (
        running_server(tmp_path) as server,
        SandboxAgent.connect(server.url, on_permission=wait) as driver,
        SandboxAgent.connect(server.url) as other,
        asyncio.timeout(30),
    ):
        session = await driver.create_session(agent="mock", cwd="/tmp")
        turn = asyncio.create_task(_last_status(session))
        await asked.wait()
        same = await other.resume_session(session.id, agent="mock")
        await same.describe()  # by now the question has been asked there too, and left to others
        same.on_permission(lambda request: request.allow())
        assert await turn == "completed"


async def test_a_handler_is_cancelled_when_somebody_else_answers_first(tmp_path: Path) -> None:
    taken_back = asyncio.Event()

    async def wait(request: PermissionRequest) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            taken_back.set()
            raise

    async with (
        running_server(tmp_path) as server,
        SandboxAgent.connect(server.url, on_permission=wait) as driver,
        SandboxAgent.connect(server.url, on_permission=lambda request: request.allow()) as other,
    ):
        session = await driver.create_session(agent="mock", cwd="/tmp")
        await other.resume_session(session.id, agent="mock")
        async with asyncio.timeout(30):
            assert await _last_status(session) == "completed"
            await taken_back.wait()


async def test_a_question_is_answered_with_ids_of_its_options(tmp_path: Path) -> None:
    asked: list[QuestionRequest] = []

    def answer(request: QuestionRequest) -> Any:
        asked.append(request)
        return request.answer("red", "green") if request.is_multiple else request.answer("green")

    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url, on_question=answer) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        assert '"answers":[["green"]]' in await session.prompt("question").text()
        assert '"answers":[["red","green"]]' in await session.prompt("question multi").text()
    assert asked[0].prompt == "Which colour?"
    assert asked[0].options == [("red", "Red"), ("green", "Green")]


async def test_without_a_handler_a_question_is_rejected(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        assert '"outcome":"rejected"' in await session.prompt("question").text()


async def test_a_handler_that_fails_answers_with_an_error_and_the_turn_goes_on(tmp_path: Path) -> None:
    def fail(request: PermissionRequest) -> Any:
        raise ValueError("no idea")

    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url, on_permission=fail) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        turn = session.prompt("tool ls")
        async with asyncio.timeout(30):
            await turn
        assert turn.stop_reason is not None
