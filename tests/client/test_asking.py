"""Permissions and questions, answered by the program's handlers."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from sandbox_agent import SandboxAgent
from sandbox_agent.client import OpenRequest, PermissionRequest, QuestionRequest, Session
from support.noting import noting_config
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


@pytest.mark.promise("P-ask-3")
async def test_without_a_handler_a_permission_is_rejected_and_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        with caplog.at_level(logging.WARNING):
            assert await _last_status(session) == "failed"
    assert "on_permission" in caplog.text


@pytest.mark.promise("P-ask-4")
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


@pytest.mark.promise("P-ask-5")
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


async def test_a_question_as_the_earlier_api_spelled_it_is_understood_and_answered_in_both_places(
    tmp_path: Path,
) -> None:
    asked: list[QuestionRequest] = []

    def choose(request: QuestionRequest) -> Any:
        asked.append(request)
        return request.answer("blue" if request.options else "Rosebud") if len(asked) < 3 else request.reject()

    async with (
        running_server(tmp_path, config=noting_config(tmp_path / "notes")) as server,
        SandboxAgent.connect(server.url, on_question=choose) as sandbox,
    ):
        session = await sandbox.create_session(agent="noting", cwd="/tmp")
        plain = {"question_id": "q1", "prompt": "Which?", "options": ["red", "blue"], "status": "requested"}
        said = [
            json.loads(await session.prompt(f"ask {json.dumps(params)}").text())
            for params in (plain, {"question_id": "q2", "prompt": "Name?", "status": "requested"}, plain)
        ]
    assert [(one.question_id, one.prompt, one.status) for one in asked[:2]] == [
        ("q1", "Which?", "requested"),
        ("q2", "Name?", "requested"),
    ]
    assert asked[0].options == [("red", "red"), ("blue", "blue")]
    assert asked[1].options == []
    assert said == [
        {
            "outcome": "answered",
            "answers": [[word]],
            "_meta": {"sandboxagent.dev": {"answers": [[word]], "response": word, "status": "answered"}},
        }
        for word in ("blue", "Rosebud")
    ] + [{"outcome": "rejected", "_meta": {"sandboxagent.dev": {"status": "rejected"}}}]


async def test_what_is_asked_comes_among_the_updates_of_the_turn_and_is_answered_from_the_loop(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        seen: list[str] = []
        turn = session.prompt("tool ls; question")
        async with asyncio.timeout(30):
            async for event in turn.events():
                match event:
                    case OpenRequest(request=PermissionRequest() as permission):
                        seen.append(permission.title)
                        event.answer(permission.allow())
                    case OpenRequest(request=QuestionRequest() as question):
                        seen.append("asked")
                        event.answer(question.answer(question.options[0][0]))
                    case schema.ToolCallProgress(status="completed"):
                        seen.append("completed")
        assert turn.stop_reason == "end_turn"
        assert seen == ["Run ls", "completed", "asked"]


async def test_a_request_in_the_stream_that_somebody_else_answers_is_not_open_any_more(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path) as server,
        SandboxAgent.connect(server.url) as driver,
        SandboxAgent.connect(server.url) as other,
    ):
        session = await driver.create_session(agent="mock", cwd="/tmp")
        same = await other.resume_session(session.id, agent="mock")
        asked: list[OpenRequest] = []
        async with asyncio.timeout(30):
            async for event in session.prompt("tool ls").events():
                if isinstance(event, OpenRequest):
                    asked.append(event)
                    same.on_permission(lambda request: request.allow())
        (one,) = asked
        assert not one.is_open
        assert isinstance(one.request, PermissionRequest)
        one.answer(one.request.reject())  # too late, and no error


async def test_leaving_the_stream_with_a_request_open_gives_the_session_back_its_handlers(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        allow = lambda request: request.allow()  # noqa: E731
        session = await sandbox.create_session(agent="mock", cwd="/tmp", on_permission=allow)
        async with asyncio.timeout(30):
            async for event in session.prompt("tool ls").events():
                if isinstance(event, OpenRequest):
                    break
            assert await _last_status(session) == "completed"
