"""The agent in ACP version 2; all that it says fits the official schema."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.acp_schema import check, needs_schema
from support.stdio_agent import Message, StdioAgent, run_agent

HELLO = {"protocolVersion": 2, "info": {"name": "test", "version": "1"}, "capabilities": {}}
ANSWERS = {
    "initialize": "InitializeResponse",
    "auth/login": "LoginAuthResponse",
    "auth/logout": "LogoutAuthResponse",
    "session/new": "NewSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/fork": "ForkSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/delete": "DeleteSessionResponse",
    "session/prompt": "PromptResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}
ASKS = {
    "session/request_permission": "RequestPermissionRequest",
    "elicitation/create": "CreateElicitationRequest",
    "session/update": "UpdateSessionNotification",
}


class Agent2:
    """An agent that was asked for version 2; everything that it says is checked against the schema."""

    def __init__(self, wire: StdioAgent) -> None:
        self.wire = wire
        self._checked = 0

    async def call(self, method: str, params: Message) -> Any:
        result = await self.wire.call(method, params)
        check(2, ANSWERS[method], result)
        return result

    async def new_session(self, cwd: str = "/tmp") -> str:
        return str((await self.call("session/new", {"cwd": cwd}))["sessionId"])

    async def prompt(self, session: str, text: str) -> Message:
        """Run a whole turn: the `state_update` that ended it."""
        self.wire.heard.clear()
        answer = await self.wire.answer_to(self.wire.start_prompt(session, text))
        check(2, "PromptResponse", answer["result"])
        ended = next((state for state in self.states() if state["state"] == "idle"), None)
        if ended is None:
            ended = (await self.wire.read_until(_is_idle))["params"]["update"]
        self.check_heard()
        return ended

    def states(self) -> list[Message]:
        return self.wire.updates("state_update")

    def check_heard(self) -> None:
        for message in self.wire.heard:
            if message.get("method") in ASKS:
                check(2, ASKS[message["method"]], message["params"])


def _is_idle(message: Message) -> bool:
    update = message.get("params", {}).get("update", {})
    return (update.get("sessionUpdate"), update.get("state")) == ("state_update", "idle")


def _allow(message: Message) -> Message | None:
    if message["method"] == "session/request_permission":
        return {"result": {"outcome": {"outcome": "selected", "optionId": "yes-once"}}}
    return {"result": {"action": "accept", "content": {"name": "me"}}}


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Agent2]:
    async with run_agent("--protocol", "2", state=tmp_path / "state") as wire:
        agent = Agent2(wire)
        assert (await agent.call("initialize", HELLO))["protocolVersion"] == 2
        yield agent


pytestmark = needs_schema


async def test_a_turn_is_acknowledged_and_its_end_is_told_as_a_state(agent: Agent2) -> None:
    session = await agent.new_session()
    ended = await agent.prompt(session, "hello there")
    assert ended["stopReason"] == "end_turn"
    kinds = [update["sessionUpdate"] for update in agent.wire.updates()]
    begun = kinds.index("user_message")
    assert kinds[begun : begun + 3] == ["user_message", "state_update", "agent_message_chunk"]
    assert agent.wire.said() == "hello there"
    answer = next(message["result"] for message in agent.wire.heard if "result" in message)
    assert answer["messageId"] == agent.wire.updates("user_message")[0]["messageId"]


async def test_a_permission_has_a_title_and_a_subject_and_blocks_the_turn_until_it_is_answered(agent: Agent2) -> None:
    session = await agent.new_session()
    agent.wire.respond = _allow
    assert (await agent.prompt(session, "tool ls; edit a.txt; elicit"))["stopReason"] == "end_turn"
    states = [state["state"] for state in agent.states()]
    assert states == ["running", *["requires_action", "running"] * 3, "idle"]
    asked = [m["params"] for m in agent.wire.heard if m.get("method") == "session/request_permission"]
    assert [request["title"] for request in asked] == ["Run ls", "Edit /tmp/a.txt"]
    assert [request["subject"]["type"] for request in asked] == ["tool_call", "tool_call"]
    diffs = [item for u in agent.wire.updates("tool_call_update") for item in u.get("content", []) if "patch" in item]
    assert diffs[0]["changes"][0]["path"] == "/tmp/a.txt"


@pytest.mark.parametrize("words", ["hang", "tool ls", "terminal sleep 60"])
async def test_a_cancelled_turn_ends_idle_and_cancelled(agent: Agent2, words: str) -> None:
    session = await agent.new_session()
    agent.wire.heard.clear()
    await agent.wire.answer_to(agent.wire.start_prompt(session, words))
    agent.wire.send({"method": "session/cancel", "params": {"sessionId": session}})
    ended = (await agent.wire.read_until(_is_idle))["params"]["update"]
    assert ended["stopReason"] == "cancelled"
    agent.check_heard()


async def test_a_turn_that_fails_ends_idle_with_its_error(agent: Agent2) -> None:
    ended = await agent.prompt(await agent.new_session(), "fail -32099")
    assert (ended["stopReason"], ended["error"]["code"]) == ("error", -32099)


async def test_every_kind_of_update_is_sent_and_fits_the_schema(agent: Agent2) -> None:
    session = await agent.new_session()
    agent.wire.respond = _allow
    await agent.prompt(session, "kinds; thought hm; plan; usage; image; tool ls; terminal echo hi")
    heard = {update["sessionUpdate"] for update in agent.wire.updates()}
    assert heard >= set(
        "user_message agent_message agent_message_chunk agent_thought agent_thought_chunk state_update "
        "tool_call_update tool_call_content_chunk terminal_update terminal_output_chunk plan_update plan_removed "
        "config_option_update session_info_update usage_update notice compaction_update compaction_summary_chunk "
        "subagent_update session_message session_message_chunk _mock_kind".split()
    )
    assert not heard & {"tool_call", "plan", "current_mode_update"}


async def test_files_and_terminals_are_the_agents_own(agent: Agent2, tmp_path: Path) -> None:
    session = await agent.new_session(str(tmp_path))
    await agent.prompt(session, "write a.txt some words; read a.txt; terminal cat a.txt; read nowhere.txt")
    assert (tmp_path / "a.txt").read_text() == "some words"
    assert "exit code 0\nsome words" in agent.wire.said()
    assert "No such file" in agent.wire.said()
    assert not [message for message in agent.wire.heard if "method" in message and "id" in message]
    assert agent.wire.updates("terminal_update")[-1]["exitStatus"] == {"exitCode": 0}


async def test_resume_replays_from_the_start_only_if_asked_and_always_tells_the_state(tmp_path: Path) -> None:
    async with run_agent("--protocol", "2", state=tmp_path / "state") as wire:
        agent = Agent2(wire)
        await agent.call("initialize", HELLO)
        session = await agent.new_session()
        await agent.prompt(session, "kinds")
        wire.process.send_signal(signal.SIGKILL)
        await wire.exit_code()
    async with run_agent("--protocol", "2", state=tmp_path / "state") as wire:
        agent = Agent2(wire)
        await agent.call("initialize", HELLO)
        await agent.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
        assert [update["sessionUpdate"] for update in wire.updates()] == ["state_update"]
        wire.heard.clear()
        start = {"sessionId": session, "cwd": "/tmp", "replayFrom": {"type": "start"}}
        await agent.call("session/resume", start)
        agent.check_heard()
        assert wire.updates("user_message")[0]["content"] == [{"type": "text", "text": "kinds"}]
        assert wire.updates("agent_message")
        odd = {**start, "replayFrom": {"type": "_middle"}}
        assert (await wire.refused("session/resume", odd))["code"] == -32602
    async with run_agent(state=tmp_path / "state") as wire:
        await wire.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        kinds = {update["sessionUpdate"] for update in wire.updates()}
        assert "user_message_chunk" in kinds
        assert not kinds & {"user_message", "agent_message", "state_update", "terminal_update"}


async def test_options_are_set_by_id_and_by_boolean(agent: Agent2) -> None:
    session = await agent.new_session()
    mode = {"configId": "mode", "type": "id", "value": "code"}
    verbose = {"configId": "verbose", "type": "boolean", "value": True}
    for choice in (mode, verbose):
        answer = await agent.call("session/set_config_option", {"sessionId": session, **choice})
        current = {option["configId"]: option["currentValue"] for option in answer["configOptions"]}
        assert current[choice["configId"]] == choice["value"]
        assert agent.wire.updates("config_option_update")[-1]["configOptions"] == answer["configOptions"]
    agent.check_heard()
    wrong = {"sessionId": session, "configId": "verbose", "type": "boolean", "value": "yes"}
    assert (await agent.wire.refused("session/set_config_option", wrong))["code"] == -32602


async def test_the_other_methods_answer_as_the_schema_says(agent: Agent2) -> None:
    session = await agent.new_session()
    await agent.prompt(session, "hello")
    forked = await agent.call("session/fork", {"sessionId": session, "cwd": "/tmp"})
    listed = await agent.call("session/list", {})
    assert {session, forked["sessionId"]} <= {entry["sessionId"] for entry in listed["sessions"]}
    await agent.call("session/close", {"sessionId": session})
    await agent.call("session/delete", {"sessionId": session})
    await agent.call("auth/login", {"methodId": "any"})
    await agent.call("auth/logout", {})
    for method in ("session/load", "session/set_mode", "authenticate", "logout"):
        params = {"sessionId": session, "cwd": "/tmp", "modeId": "ask", "methodId": "any"}
        assert (await agent.wire.refused(method, params))["code"] == -32601


async def test_the_environment_chooses_version_2_too_and_without_it_version_1_is_spoken(tmp_path: Path) -> None:
    async with run_agent(state=tmp_path, SANDBOX_AGENT_MOCK_PROTOCOL="2") as wire:
        assert (await wire.call("initialize", HELLO))["protocolVersion"] == 2
    async with run_agent(state=tmp_path) as wire:
        assert (await wire.call("initialize", HELLO))["protocolVersion"] == 1


async def test_what_version_1_says_fits_its_schema_kind_by_kind(tmp_path: Path) -> None:
    async with run_agent(state=tmp_path) as wire:
        session = await wire.new_session()
        wire.respond = _allow
        assert await wire.prompt(session, "kinds; plan; thought hm; tool ls; edit a.txt; usage") == "end_turn"
        for update in wire.updates():
            check(1, "SessionUpdate", update)
