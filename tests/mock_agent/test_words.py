"""Every word does what the manual says, and what it sends fits the schema."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import schema
from pydantic import TypeAdapter

from sandbox_agent.mock_agent.words import WORDS
from support.stdio_agent import Message, StdioAgent, run_agent

REQUESTS: dict[str, Any] = {
    "session/request_permission": schema.RequestPermissionRequest,
    "elicitation/create": schema.CreateElicitationRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
    "fs/write_text_file": schema.WriteTextFileRequest,
    "terminal/create": schema.CreateTerminalRequest,
    "terminal/wait_for_exit": schema.WaitForTerminalExitRequest,
    "terminal/output": schema.TerminalOutputRequest,
    "terminal/release": schema.ReleaseTerminalRequest,
}


def check_schema(agent: StdioAgent) -> None:
    for message in agent.heard:
        method = message.get("method")
        if method == "session/update":
            schema.SessionNotification.model_validate(message["params"])
        elif method in REQUESTS:
            TypeAdapter(REQUESTS[method]).validate_python(message["params"])


def choose(option_kind: str) -> Callable[[Message], Message | None]:
    def respond(request: Message) -> Message | None:
        option = next(o for o in request["params"]["options"] if o["kind"] == option_kind)
        return {"result": {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}}

    return respond


def give(**results: Any) -> Callable[[Message], Message | None]:
    return lambda request: {"result": results[request["method"].rpartition("/")[2]]}


async def test_every_word_is_tested_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in WORDS if f'"{name}' not in text] == []


async def test_plain_text_is_echoed_in_several_chunks(agent: StdioAgent) -> None:
    assert await agent.prompt(await agent.new_session(), "Hello there; my friend") == "end_turn"
    assert agent.said() == "Hello there; my friend"
    assert len(agent.updates("agent_message_chunk")) == 3
    check_schema(agent)


async def test_commands_separated_by_semicolon_or_newline_run_in_order(agent: StdioAgent) -> None:
    await agent.prompt(await agent.new_session(), "thought a 'b; c'; env NOT_THERE\nplan\nbye")
    kinds = [update["sessionUpdate"] for update in agent.updates()]
    assert kinds[:3] == ["available_commands_update", "agent_thought_chunk", "agent_message_chunk"]
    assert agent.updates("agent_thought_chunk")[0]["content"]["text"] == "a 'b; c'"
    assert agent.said() == "doneNOT_THERE is not setbye"


@pytest.mark.parametrize(
    ("prompt", "kinds"),
    [
        ("thought hm", ["agent_thought_chunk", "agent_message_chunk"]),
        ("plan", ["plan", "plan"]),
        ("usage", ["usage_update"]),
        ("image", ["agent_message_chunk"]),
        ("help", ["agent_message_chunk"]),
        ("cwd", ["agent_message_chunk"]),
    ],
)
async def test_telling_words_send_valid_updates(agent: StdioAgent, prompt: str, kinds: list[str]) -> None:
    session = await agent.new_session()
    await agent.prompt(session, "first")
    assert await agent.prompt(session, prompt) == "end_turn"
    assert [update["sessionUpdate"] for update in agent.updates()] == kinds
    check_schema(agent)


async def test_env_and_cwd_and_help_say_what_is(tmp_path: Path) -> None:
    async with run_agent(state=tmp_path, cwd=tmp_path, COLOUR="red") as agent:
        session = await agent.new_session("/usr")
        await agent.prompt(session, "env COLOUR")
        assert agent.said() == "COLOUR=red"
        await agent.prompt(session, "cwd")
        assert agent.said() == f"session: /usr\nprocess: {tmp_path}"
        await agent.prompt(session, "help")
        assert all(word.usage in agent.said() for word in WORDS.values())


async def test_recall_says_all_earlier_prompts(agent: StdioAgent) -> None:
    session = await agent.new_session()
    await agent.prompt(session, "one")
    await agent.prompt(session, "two")
    await agent.prompt(session, "recall")
    assert agent.said() == "1. one\n2. two"


@pytest.mark.parametrize("word", ["tool", "edit"])
@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        ("allow_once", ["in_progress", "completed"]),
        ("allow_always", ["in_progress", "completed"]),
        ("reject_once", ["failed"]),
        ("reject_always", ["failed"]),
    ],
)
async def test_a_tool_call_follows_its_permission(agent: StdioAgent, word: str, kind: str, statuses: list[str]) -> None:
    agent.respond = choose(kind)
    assert await agent.prompt(await agent.new_session(), word) == "end_turn"
    [call] = agent.updates("tool_call")
    assert (call["status"], call["kind"]) == ("pending", "execute" if word == "tool" else "edit")
    assert [update["status"] for update in agent.updates("tool_call_update")] == statuses
    check_schema(agent)


async def test_edit_shows_a_diff_of_the_path_in_the_session_directory(agent: StdioAgent) -> None:
    agent.respond = choose("allow_once")
    await agent.prompt(await agent.new_session("/srv"), "edit a.txt")
    [diff] = agent.updates("tool_call")[0]["content"]
    assert (diff["type"], diff["path"]) == ("diff", "/srv/a.txt")


async def test_a_subagent_asks_and_speaks_in_a_session_of_its_own(agent: StdioAgent) -> None:
    agent.respond = choose("allow_once")
    session = await agent.new_session()
    assert await agent.prompt(session, "subagent count") == "end_turn"
    [announced] = agent.updates("subagent_update")
    asked = next(message for message in agent.heard if message.get("method") == "session/request_permission")
    said = next(message for message in agent.heard if "count (yes-once)" in str(message))
    assert asked["params"]["sessionId"] == said["params"]["sessionId"] == announced["sessionId"] != session


async def test_a_cancelled_permission_ends_the_turn(agent: StdioAgent) -> None:
    agent.respond = lambda _: {"result": {"outcome": {"outcome": "cancelled"}}}
    assert await agent.prompt(await agent.new_session(), "tool; never said") == "cancelled"
    assert agent.said() == ""


async def test_an_error_for_a_permission_is_said_and_the_call_fails(agent: StdioAgent) -> None:
    agent.respond = lambda _: {"error": {"code": -1, "message": "no way"}}
    assert await agent.prompt(await agent.new_session(), "tool") == "end_turn"
    assert agent.updates("tool_call_update")[-1]["status"] == "failed"
    assert "no way" in agent.said()


@pytest.mark.parametrize("word", ["question", "question multi"])
async def test_question_reports_the_answer(agent: StdioAgent, word: str) -> None:
    agent.respond = lambda _: {"result": {"outcome": "answered", "answers": ["red"]}}
    await agent.prompt(await agent.new_session(), word)
    [asked] = [m for m in agent.heard if m.get("method") == "_sandboxagent/session/request_question"]
    assert asked["params"]["multiSelect"] is (word == "question multi")
    assert asked["params"]["options"][0] == {"id": "red", "label": "Red"}
    assert '"answers":["red"]' in agent.said()


async def test_elicit_reports_the_answer(agent: StdioAgent) -> None:
    agent.respond = lambda _: {"result": {"action": "accept", "content": {"name": "Ada"}}}
    await agent.prompt(await agent.new_session(), "elicit")
    assert "Ada" in agent.said()
    check_schema(agent)


async def test_read_and_write_go_through_the_client(agent: StdioAgent) -> None:
    session = await agent.new_session("/srv")
    agent.respond = give(read_text_file={"content": "file text"}, write_text_file={})
    await agent.prompt(session, "read a.txt 2 5")
    assert agent.said() == "file text"
    check_schema(agent)
    asked = next(m for m in agent.heard if m.get("method") == "fs/read_text_file")
    assert asked["params"] == {"sessionId": session, "path": "/srv/a.txt", "line": 2, "limit": 5}
    await agent.prompt(session, "write b.txt some text")
    asked = next(m for m in agent.heard if m.get("method") == "fs/write_text_file")
    assert asked["params"] == {"sessionId": session, "path": "/srv/b.txt", "content": "some text"}
    check_schema(agent)


async def test_terminal_creates_waits_reads_and_releases(agent: StdioAgent) -> None:
    agent.respond = give(
        create={"terminalId": "t1"},
        wait_for_exit={"exitCode": 0},
        output={"output": "a; b", "truncated": False},
        release={},
    )
    await agent.prompt(await agent.new_session(), "terminal sh -c 'echo a; echo b'")
    asked = [m for m in agent.heard if str(m.get("method")).startswith("terminal/")]
    assert [m["method"][9:] for m in asked] == ["create", "wait_for_exit", "output", "release"]
    assert asked[0]["params"]["args"] == ["-c", "echo a; echo b"]
    assert agent.updates("tool_call")[0]["content"] == [{"type": "terminal", "terminalId": "t1"}]
    assert agent.said() == "exit code 0\na; b"
    check_schema(agent)


async def test_slow_ticks_until_cancelled_or_done(agent: StdioAgent) -> None:
    session = await agent.new_session()
    assert await agent.prompt(session, "slow 3") == "end_turn"
    assert agent.said() == "tick 1 tick 2 tick 3 "
    running = agent.start_prompt(session, "slow")
    await agent.read_until(lambda m: "tick 2" in str(m))
    agent.send({"method": "session/cancel", "params": {"sessionId": session}})
    assert (await agent.answer_to(running))["result"] == {"stopReason": "cancelled"}


async def test_one_hundred_thousand_chunks_arrive_in_order(agent: StdioAgent) -> None:
    assert await agent.prompt(await agent.new_session(), "chunks 100000 100") == "end_turn"
    texts = [chunk["content"]["text"] for chunk in agent.updates("agent_message_chunk")]
    assert [int(text.split(" ")[0]) for text in texts] == list(range(1, 100_001))
    assert {len(text) for text in texts} == {100}


async def test_chunks_can_be_cancelled_while_nobody_reads(agent: StdioAgent) -> None:
    session = await agent.new_session()
    running = agent.start_prompt(session, "chunks 100000000 1000")
    await agent.read_until(lambda m: "agent_message_chunk" in str(m)[:200])
    agent.send({"method": "session/cancel", "params": {"sessionId": session}})
    assert (await agent.answer_to(running))["result"] == {"stopReason": "cancelled"}


async def test_bigline_is_one_valid_update(agent: StdioAgent) -> None:
    await agent.prompt(await agent.new_session(), "bigline")
    assert len(agent.said()) == 20 * 1024 * 1024


async def test_stderr_writes_lines(agent: StdioAgent) -> None:
    assert await agent.prompt(await agent.new_session(), "stderr 3") == "end_turn"
    for index in (1, 2, 3):
        line = await asyncio.wait_for(agent.stderr.readline(), 30)
        assert line == f"mock agent: stderr line {index}\n".encode()


@pytest.mark.parametrize(("word", "code"), [("crash", 3), ("crash 7", 7), ("exit", 0)])
async def test_crash_and_exit_end_the_process(agent: StdioAgent, word: str, code: int) -> None:
    agent.start_prompt(await agent.new_session(), f"thought before; {word}")
    await agent.read_until(lambda m: "done" in str(m))
    assert await agent.exit_code() == code
    assert (b"about to crash" in await agent.stderr.read()) is (word != "exit")


async def test_hang_answers_only_when_cancelled(agent: StdioAgent) -> None:
    session = await agent.new_session()
    running = agent.start_prompt(session, "hang")
    agent.send({"method": "session/cancel", "params": {"sessionId": session}})
    assert (await agent.answer_to(running))["result"] == {"stopReason": "cancelled"}


@pytest.mark.parametrize("word", ["garbage", "badutf8", "deep"])
async def test_a_broken_line_is_followed_by_sound_ones(agent: StdioAgent, word: str) -> None:
    assert await agent.prompt(await agent.new_session(), word) == "end_turn"
    [broken] = [message["unparsed"] for message in agent.heard if "unparsed" in message]
    assert len(broken) > 200_000 if word == "deep" else True
    assert agent.said() == f"after {word}"


async def test_unknown_answer_carries_an_id_that_nobody_used(agent: StdioAgent) -> None:
    await agent.prompt(await agent.new_session(), "unknown-answer")
    assert {"jsonrpc": "2.0", "id": 987654321, "result": {}} in agent.heard


async def test_null_answer_carries_no_usable_id(agent: StdioAgent) -> None:
    await agent.prompt(await agent.new_session(), "null-answer")
    error = {"code": -32700, "message": "Parse error"}
    assert {"jsonrpc": "2.0", "id": None, "error": error} in agent.heard
    assert {"jsonrpc": "2.0", "error": error} in agent.heard


async def test_no_session_is_a_notification_of_no_session(agent: StdioAgent) -> None:
    await agent.prompt(await agent.new_session(), "no-session")
    [told] = [message for message in agent.heard if message.get("method") == "_auth/status_update"]
    assert "sessionId" not in told["params"]


async def test_client_says_how_the_client_introduced_itself(agent: StdioAgent) -> None:
    params = {"protocolVersion": 1, "clientInfo": {"name": "t", "version": "1"}, "clientCapabilities": {"fs": {}}}
    await agent.call("initialize", params)
    await agent.prompt(await agent.new_session(), "client")
    said = "".join(chunk["content"]["text"] for chunk in agent.updates("agent_message_chunk"))
    assert '"clientCapabilities":{"fs":{}}' in said


async def test_double_answer_answers_twice(agent: StdioAgent) -> None:
    session = await agent.new_session()
    running = agent.start_prompt(session, "double-answer")
    assert await agent.answer_to(running) == await agent.answer_to(running)


async def test_late_update_comes_after_the_answer(agent: StdioAgent) -> None:
    await agent.prompt(await agent.new_session(), "late-update")
    assert (await agent.read())["params"]["update"]["content"]["text"] == "late"


@pytest.mark.parametrize(("word", "code"), [("fail", -32603), ("fail -32050", -32050), ("auth", -32000)])
async def test_fail_and_auth_answer_with_an_error(agent: StdioAgent, word: str, code: int) -> None:
    session = await agent.new_session()
    answer = await agent.answer_to(agent.start_prompt(session, word))
    assert answer["error"]["code"] == code
    assert await agent.prompt(session, "still here") == "end_turn"


async def test_spawn_starts_a_child_in_the_process_group(agent: StdioAgent) -> None:
    await agent.prompt(await agent.new_session(), "spawn")
    child = int(agent.said().split()[1])
    try:
        assert os.getpgid(child) == os.getpgid(agent.process.pid)
    finally:
        os.kill(child, signal.SIGKILL)


async def test_demo_shows_everything(agent: StdioAgent) -> None:
    agent.respond = choose("allow_once")
    assert await agent.prompt(await agent.new_session(), "demo") == "end_turn"
    kinds = {update["sessionUpdate"] for update in agent.updates()}
    assert kinds >= {"agent_message_chunk", "agent_thought_chunk", "plan", "tool_call", "usage_update"}
    assert [call["kind"] for call in agent.updates("tool_call")] == ["execute", "edit"]
    check_schema(agent)


async def test_wrong_arguments_are_answered_with_the_usage(agent: StdioAgent) -> None:
    assert await agent.prompt(await agent.new_session(), "chunks many") == "end_turn"
    assert "usage: chunks N SIZE" in agent.said()


async def test_a_cancelled_terminal_is_killed_and_released(agent: StdioAgent) -> None:
    session = await agent.new_session()
    agent.respond = lambda m: {"result": {"terminalId": "t1"}} if m["method"] == "terminal/create" else None
    running = agent.start_prompt(session, "terminal sleep 100")
    await agent.read_until(lambda m: m.get("method") == "terminal/wait_for_exit")
    agent.send({"method": "session/cancel", "params": {"sessionId": session}})
    assert (await agent.answer_to(running))["result"] == {"stopReason": "cancelled"}
    assert [m["method"] for m in agent.heard if m.get("method", "").startswith("terminal/")][2:] == [
        "terminal/kill",
        "terminal/release",
    ]
