"""Every start flag does what the manual says."""

from __future__ import annotations

import asyncio
import signal
import uuid
from pathlib import Path

import pytest

from sandbox_agent.mock_agent.quirks import Quirks
from support.stdio_agent import Message, StdioAgent, run_agent

ALLOW: Message = {"result": {"outcome": {"outcome": "selected", "optionId": "yes-once"}}}


async def initialize(agent: StdioAgent) -> Message:
    answer: Message = await agent.call("initialize", {"protocolVersion": 1})
    return answer


def is_permission(message: Message) -> bool:
    return message.get("method") == "session/request_permission"


def test_every_flag_is_tested_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    flags = ["--" + name.replace("_", "-") for name in Quirks.__struct_fields__]
    assert [flag for flag in flags if f'"{flag}"' not in text] == []


async def test_version_2_is_spoken_with_those_who_ask_for_it(tmp_path: Path) -> None:
    async with run_agent("--protocol", "2", state=tmp_path) as agent:
        assert (await agent.call("initialize", {"protocolVersion": 2}))["protocolVersion"] == 2
    async with run_agent("--protocol", "2", state=tmp_path) as agent:
        answer = await initialize(agent)
        assert (answer["protocolVersion"], "agentCapabilities" in answer) == (1, True)
        assert await agent.prompt(await agent.new_session(), "hi") == "end_turn"


async def test_version_1_can_be_refused(tmp_path: Path) -> None:
    async with run_agent("--protocol", "2", "--no-v1", state=tmp_path) as agent:
        error = await agent.refused("initialize", {"protocolVersion": 1})
        assert (error["code"], error["data"]) == (-32022, {"requested": 1, "supported": [2]})


async def test_early_updates_come_before_the_answer(tmp_path: Path) -> None:
    async with run_agent("--early-updates", state=tmp_path) as agent:
        session = await agent.new_session()
        assert agent.heard[0]["params"]["sessionId"] == session


@pytest.mark.parametrize("name", ["load", "resume", "list"])
async def test_a_lacking_method_is_neither_claimed_nor_there(tmp_path: Path, name: str) -> None:
    flag = {"load": "--no-load", "resume": "--no-resume", "list": "--no-list"}[name]
    async with run_agent(flag, state=tmp_path) as agent:
        can = (await initialize(agent))["agentCapabilities"]
        assert can["loadSession"] is (name != "load")
        assert name not in can["sessionCapabilities"]
        error = await agent.refused(f"session/{name}", {"sessionId": "x", "cwd": "/tmp"})
        assert error["code"] == -32601


@pytest.mark.parametrize("flags", [["--uuid-ids"], []])
async def test_request_ids_are_uuids_or_count_from_zero(tmp_path: Path, flags: list[str]) -> None:
    async with run_agent(*flags, state=tmp_path) as agent:
        agent.respond = lambda _: ALLOW
        await agent.prompt(await agent.new_session(), "tool; tool")
        ids = [message["id"] for message in agent.heard if is_permission(message)]
        assert ids == ([str(uuid.UUID(text)) for text in ids] if flags else [0, 1])
        assert [update["status"] for update in agent.updates("tool_call_update")][-1] == "completed"


async def test_counted_session_ids_are_the_same_in_every_process(tmp_path: Path) -> None:
    for _ in range(2):
        async with run_agent("--counter-sessions", state=tmp_path) as agent:
            assert [await agent.new_session(), await agent.new_session()] == ["20261115_1", "20261115_2"]


async def test_without_set_model_the_option_remains(tmp_path: Path) -> None:
    async with run_agent("--no-set-model", state=tmp_path) as agent:
        session = await agent.new_session()
        refused = await agent.refused("session/set_model", {"sessionId": session, "modelId": "mock-large"})
        assert refused["code"] == -32601
        params = {"sessionId": session, "configId": "model", "value": "mock-large"}
        assert (await agent.call("session/set_config_option", params))["configOptions"][1]["currentValue"]


async def test_without_set_mode_no_modes_are_sent(tmp_path: Path) -> None:
    async with run_agent("--no-set-mode", state=tmp_path) as agent:
        answer = await agent.call("session/new", {"cwd": "/tmp", "mcpServers": []})
        assert "modes" not in answer
        params = {"sessionId": answer["sessionId"], "modeId": "code"}
        assert (await agent.refused("session/set_mode", params))["code"] == -32601


async def test_legacy_models_replace_config_options(tmp_path: Path) -> None:
    async with run_agent("--legacy-models", state=tmp_path) as agent:
        answer = await agent.call("session/new", {"cwd": "/tmp", "mcpServers": []})
        assert [model["modelId"] for model in answer["models"]["availableModels"]] == [
            "mock-small",
            "mock-large",
        ]
        assert "configOptions" not in answer
        session = answer["sessionId"]
        await agent.call("session/set_model", {"sessionId": session, "modelId": "mock-large"})
        resumed = await agent.call("session/resume", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        assert resumed["models"]["currentModelId"] == "mock-large"
        params = {"sessionId": session, "configId": "model", "value": "mock-small"}
        assert (await agent.refused("session/set_config_option", params))["code"] == -32601


async def test_fail_initialize_answers_with_an_error(tmp_path: Path) -> None:
    async with run_agent("--fail-initialize", state=tmp_path) as agent:
        assert (await agent.refused("initialize", {"protocolVersion": 1}))["code"] == -32603


async def test_exit_at_start_exits_with_the_code(tmp_path: Path) -> None:
    async with run_agent("--exit-at-start", "9", state=tmp_path) as agent:
        assert await agent.exit_code() == 9
        assert b"exits at start" in await agent.stderr.read()


async def test_ignore_eof_leaves_it_to_term(tmp_path: Path) -> None:
    async with run_agent("--ignore-eof", state=tmp_path) as agent:
        session = await agent.new_session()
        running = agent.start_prompt(session, "slow 3")
        agent.stdin.close()
        assert (await agent.answer_to(running))["result"] == {"stopReason": "end_turn"}
        assert agent.process.returncode is None
        agent.process.terminate()
        assert await agent.exit_code() == 0


async def test_ignore_term_goes_on_answering(tmp_path: Path) -> None:
    async with run_agent("--ignore-term", state=tmp_path) as agent:
        await initialize(agent)
        agent.process.send_signal(signal.SIGTERM)
        assert await agent.prompt(await agent.new_session(), "slow 3") == "end_turn"
        agent.stdin.close()
        assert await agent.exit_code() == 0


async def test_withdraw_takes_a_permission_back_and_goes_on_as_rejected(tmp_path: Path) -> None:
    async with run_agent("--withdraw", state=tmp_path) as agent:
        assert await agent.prompt(await agent.new_session(), "tool") == "end_turn"
        [asked] = [message for message in agent.heard if is_permission(message)]
        [withdrawn] = [message for message in agent.heard if message.get("method") == "$/cancel_request"]
        assert withdrawn["params"] == {"requestId": asked["id"]}
        assert agent.updates("tool_call_update")[-1]["status"] == "failed"


async def test_slow_initialize_answers_others_first(tmp_path: Path) -> None:
    async with run_agent("--slow-initialize", "300", state=tmp_path) as agent:
        slow = agent.start("initialize", {"protocolVersion": 1})
        await agent.call("logout", {})
        assert (await agent.answer_to(slow))["result"]["protocolVersion"] == 1


@pytest.mark.parametrize("flags", [["--wait-permission-on-cancel"], []])
async def test_cancel_with_a_permission_open(tmp_path: Path, flags: list[str]) -> None:
    async with run_agent(*flags, state=tmp_path) as agent:
        session = await agent.new_session()
        running = agent.start_prompt(session, "tool")
        asked = await agent.read_until(is_permission)
        agent.send({"method": "session/cancel", "params": {"sessionId": session}})
        if flags:
            await agent.call("logout", {})
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(agent.read_line(), 0.3)
            agent.send({"id": asked["id"], **ALLOW})
        assert (await agent.answer_to(running))["result"] == {"stopReason": "cancelled"}
        assert agent.updates("tool_call_update") == []


async def test_dead_models_are_shown_and_cannot_be_set(tmp_path: Path) -> None:
    async with run_agent("--dead-models", state=tmp_path) as agent:
        answer = await agent.call("session/new", {"cwd": "/tmp", "mcpServers": []})
        assert {"models", "configOptions"} < set(answer)
        params = {"sessionId": answer["sessionId"], "modelId": "mock-large"}
        assert (await agent.refused("session/set_model", params))["code"] == -32601


async def test_own_model_ids_differ_from_the_options_values(tmp_path: Path) -> None:
    async with run_agent("--own-model-ids", state=tmp_path) as agent:
        answer = await agent.call("session/new", {"cwd": "/tmp", "mcpServers": []})
        assert answer["models"]["currentModelId"] == "mock-small[fast]"
        params = {"sessionId": answer["sessionId"], "modelId": "mock-large"}
        assert (await agent.refused("session/set_model", params))["code"] == -32602
        await agent.call("session/set_model", {**params, "modelId": "mock-large[fast]"})


async def test_fail_load_claims_what_it_cannot_do(tmp_path: Path) -> None:
    async with run_agent("--fail-load", state=tmp_path) as agent:
        assert (await initialize(agent))["agentCapabilities"]["loadSession"] is True
        params = {"sessionId": await agent.new_session(), "cwd": "/tmp", "mcpServers": []}
        for verb in ("load", "resume"):
            assert (await agent.refused(f"session/{verb}", params))["code"] == -32603


async def test_late_replay_comes_after_the_answer(tmp_path: Path) -> None:
    async with run_agent("--late-replay", state=tmp_path) as agent:
        session = await agent.new_session()
        await agent.prompt(session, "hello")
        agent.heard.clear()
        await agent.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        assert agent.updates("user_message_chunk") == []
        replayed = await agent.read_until(
            lambda m: m.get("params", {}).get("update", {}).get("sessionUpdate") == "user_message_chunk"
        )
        assert replayed["params"]["update"]["content"]["text"] == "hello"


async def test_needs_auth_refuses_sessions_until_the_login(tmp_path: Path) -> None:
    async with run_agent("--needs-auth", state=tmp_path) as agent:
        assert [method["id"] for method in (await initialize(agent))["authMethods"]] == ["mock-login"]
        assert (await agent.refused("session/new", {"cwd": "/tmp", "mcpServers": []}))["code"] == -32000
        assert (await agent.refused("authenticate", {"methodId": "other"}))["code"] == -32602
        await agent.call("authenticate", {"methodId": "mock-login"})
        assert await agent.new_session()


async def test_bare_permissions_name_the_call_only(tmp_path: Path) -> None:
    async with run_agent("--bare-permissions", state=tmp_path) as agent:
        agent.respond = lambda _: ALLOW
        await agent.prompt(await agent.new_session(), "tool")
        [asked] = [message for message in agent.heard if is_permission(message)]
        assert list(asked["params"]["toolCall"]) == ["toolCallId"]


async def test_leaked_updates_go_out_under_the_ids_of_all_sessions(tmp_path: Path) -> None:
    async with run_agent("--leak", state=tmp_path) as agent:
        first, second = await agent.new_session(), await agent.new_session()
        await agent.prompt(first, "hi")
        assert {m["params"]["sessionId"] for m in agent.heard if m.get("method") == "session/update"} == {first, second}


async def test_echoed_prompts_come_first_and_in_chunks(tmp_path: Path) -> None:
    async with run_agent("--echo-prompts", state=tmp_path) as agent:
        session = await agent.new_session()
        await agent.prompt(session, "hello there")
        echoed = agent.updates("user_message_chunk")
        assert len(echoed) > 1
        assert "".join(update["content"]["text"] for update in echoed) == "hello there"


async def test_tools_can_run_without_being_allowed(tmp_path: Path) -> None:
    async with run_agent("--never-ask", state=tmp_path) as agent:
        assert await agent.prompt(await agent.new_session(), "tool ls") == "end_turn"
        assert not [message for message in agent.heard if is_permission(message)]
        assert "The tool ran." in agent.said()


async def test_a_cancel_can_be_ignored(tmp_path: Path) -> None:
    async with run_agent("--ignore-cancel", state=tmp_path) as agent:
        session = await agent.new_session()
        prompt = agent.start_prompt(session, "slow 3")
        agent.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await agent.answer_to(prompt))["result"]["stopReason"] == "end_turn"
