"""The loopback LLM does what its directives say, in every dialect, so that tests with real agents mean something."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from support.fake_llm import FakeLLM
from support.llm_replies import Failure, ToolCall, Turn, Words, decide

SHELL = {
    "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
    "required": ["command", "timeout"],
}


def asked(dialect: str, text: str) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": text}]
    match dialect:
        case "anthropic":
            tools: Any = [{"name": "Bash", "input_schema": SHELL}]
            return "/v1/messages", {"messages": messages, "tools": tools}
        case "chat":
            tools = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}]
            return "/v1/chat/completions", {"messages": messages, "tools": tools}
        case "responses":
            return "/v1/responses", {"input": messages, "tools": [{"name": "shell", "parameters": SHELL}]}
        case _:
            declared = [{"functionDeclarations": [{"name": "run_shell_command", "parameters": SHELL}]}]
            contents = [{"role": "user", "parts": [{"text": text}]}]
            return "/v1beta/models/x:generateContent", {"contents": contents, "tools": declared}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", ["anthropic", "chat", "responses", "gemini"])
def test_every_dialect_echoes_calls_tools_and_fails_on_request(dialect: str, stream: bool) -> None:
    with FakeLLM() as llm, httpx.Client(base_url=llm.url, trust_env=False) as client:

        def say(text: str) -> httpx.Response:
            path, body = asked(dialect, text)
            if dialect == "gemini" and stream:
                path = path.replace(":generate", ":streamGenerate")
            return client.post(path, json={**body, "stream": stream})

        spoken = say("hello").text
        assert "ECHO[" in spoken.replace('"}', "")
        assert say("RUN:ls -l").text.count("ls -l") >= 1
        assert say("FAIL:429").status_code == 429
        assert [type(seen.reply) for seen in llm.seen] == [Words, ToolCall, Failure]
        assert {seen.dialect for seen in llm.seen} == {dialect}


async def test_a_slow_answer_that_is_hung_up_on_is_seen_as_aborted() -> None:
    with FakeLLM() as llm:
        path, body = asked("chat", "SLOW:500")
        async with (
            httpx.AsyncClient(base_url=llm.url, trust_env=False) as client,
            client.stream("POST", path, json={**body, "stream": True}) as response,
        ):
            async for line in response.aiter_lines():
                if "slow1" in line:
                    break
        seen = await asyncio.to_thread(llm.wait_for, lambda seen: seen.aborted)
        assert not seen.finished


def test_side_requests_without_tools_get_words_whatever_they_quote() -> None:
    reply = decide(Turn("Write a title for: RUN:rm -rf / FAIL:500 SLOW"))
    assert isinstance(reply, Words)
    assert reply.pause < 0.1


def test_a_tool_call_fills_what_the_schema_requires() -> None:
    reply = decide(Turn("RUN:make", {"Bash": SHELL}))
    assert reply == ToolCall("Bash", {"command": "make", "timeout": 10000})


def test_a_structured_side_request_gets_the_shape_it_wants() -> None:
    shape = {"properties": {"ok": {"type": "boolean"}, "kind": {"type": "string", "enum": ["a", "b"]}}}
    reply = decide(Turn("which?", wanted_shape=shape))
    assert isinstance(reply, Words)
    assert json.loads(reply.text) == {"ok": False, "kind": "a"}
