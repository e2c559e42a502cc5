"""The ACP methods: sessions, settings, errors."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from acp import schema

from support.stdio_agent import StdioAgent, run_agent


async def test_initialize_describes_the_agent(agent: StdioAgent) -> None:
    answer = await agent.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    described = schema.InitializeResponse.model_validate(answer)
    assert described.protocol_version == 1
    assert described.agent_capabilities is not None
    assert described.agent_capabilities.load_session is True
    assert set(answer["agentCapabilities"]["sessionCapabilities"]) == {
        "list",
        "resume",
        "fork",
        "close",
        "delete",
    }
    assert await agent.call("authenticate", {"methodId": "any"}) == {}
    assert await agent.call("logout", {}) == {}


async def test_a_new_session_offers_modes_and_options_and_then_tells_its_commands(agent: StdioAgent) -> None:
    answer = await agent.call("session/new", {"cwd": "/tmp", "mcpServers": []})
    schema.NewSessionResponse.model_validate(answer)
    assert [mode["id"] for mode in answer["modes"]["availableModes"]] == ["ask", "code"]
    assert [option["category"] for option in answer["configOptions"]] == ["mode", "model", "thought_level"]
    told = await agent.read()
    schema.SessionNotification.model_validate(told["params"])
    assert told["params"]["update"]["sessionUpdate"] == "available_commands_update"


async def test_the_first_prompt_gives_the_session_a_title(agent: StdioAgent) -> None:
    session = await agent.new_session()
    await agent.prompt(session, "A fine title\nand more")
    assert [update["title"] for update in agent.updates("session_info_update")] == ["A fine title"]
    await agent.prompt(session, "again")
    assert agent.updates("session_info_update") == []


async def test_changed_settings_are_told_and_kept(agent: StdioAgent) -> None:
    session = await agent.new_session()
    assert await agent.call("session/set_mode", {"sessionId": session, "modeId": "code"}) == {}
    assert [update["currentModeId"] for update in agent.updates("current_mode_update")] == ["code"]
    assert await agent.call("session/set_model", {"sessionId": session, "modelId": "mock-large"}) == {}
    answer = await agent.call(
        "session/set_config_option", {"sessionId": session, "configId": "effort", "value": "high"}
    )
    schema.SetSessionConfigOptionResponse.model_validate(answer)
    assert [option["currentValue"] for option in answer["configOptions"]] == ["code", "mock-large", "high"]
    assert len(agent.updates("config_option_update")) == 3
    for message in agent.heard:
        if message.get("method") == "session/update":
            schema.SessionNotification.model_validate(message["params"])


async def test_load_replays_before_it_answers_and_resume_does_not(agent: StdioAgent) -> None:
    session = await agent.new_session()
    await agent.prompt(session, "thought deep; hello")
    await agent.call("session/close", {"sessionId": session})
    assert (await agent.refused("session/prompt", {"sessionId": session, "prompt": []}))["code"] == -32002
    agent.heard.clear()
    answer = await agent.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
    schema.LoadSessionResponse.model_validate(answer)
    kinds = [update["sessionUpdate"] for update in agent.updates()]
    assert kinds[:2] == ["user_message_chunk", "agent_thought_chunk"]
    assert agent.said() == "donehello"
    for message in agent.heard[:-1]:
        schema.SessionNotification.model_validate(message["params"])
    await agent.read()
    agent.heard.clear()
    await agent.call("session/resume", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
    assert agent.updates() == []


async def test_a_fork_shares_the_past_only(agent: StdioAgent) -> None:
    session = await agent.new_session()
    await agent.prompt(session, "one")
    fork = (await agent.call("session/fork", {"sessionId": session, "cwd": "/tmp"}))["sessionId"]
    await agent.prompt(session, "only here")
    await agent.prompt(fork, "recall")
    assert fork != session
    assert agent.said() == "1. one"


async def test_list_pages_through_all_sessions_and_delete_removes(agent: StdioAgent) -> None:
    made = [await agent.new_session("/tmp" if index else "/usr") for index in range(60)]
    first = await agent.call("session/list", {})
    schema.ListSessionsResponse.model_validate(first)
    second = await agent.call("session/list", {"cursor": first["nextCursor"]})
    assert len(first["sessions"]) == 50
    assert {s["sessionId"] for s in first["sessions"] + second["sessions"]} == set(made)
    assert "nextCursor" not in second
    assert (await agent.refused("session/list", {"cursor": "nonsense"}))["code"] == -32602
    await agent.call("session/delete", {"sessionId": made[1]})
    await agent.call("session/delete", {"sessionId": made[1]})
    assert [s["sessionId"] for s in (await agent.call("session/list", {"cwd": "/usr"}))["sessions"]] == [made[0]]
    assert (await agent.refused("session/load", {"sessionId": made[1], "cwd": "/tmp"}))["code"] == -32002


async def test_deleting_a_busy_session_cancels_its_turn_and_leaves_nothing(agent: StdioAgent, tmp_path: Path) -> None:
    session = await agent.new_session()
    running = agent.start_prompt(session, "hang")
    removing = agent.start("session/delete", {"sessionId": session})
    assert (await agent.answer_to(running))["result"] == {"stopReason": "cancelled"}
    await agent.answer_to(removing)
    assert list((tmp_path / "state").iterdir()) == []


async def test_state_survives_kill_dash_nine_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    async with run_agent(state=tmp_path) as agent:
        session = await agent.new_session()
        await agent.prompt(session, "remember me")
        agent.start_prompt(session, "slow")
        await agent.read_until(lambda m: "tick 1" in str(m))
        agent.process.send_signal(signal.SIGKILL)
        assert await agent.exit_code() == -signal.SIGKILL
    async with run_agent(state=tmp_path) as agent:
        await agent.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        assert agent.said() == "remember me"
        await agent.prompt(session, "recall")
        assert agent.said() == "1. remember me\n2. slow"


async def test_a_huge_turn_leaves_a_small_state_file_with_its_tail(agent: StdioAgent, tmp_path: Path) -> None:
    session = await agent.new_session()
    await agent.prompt(session, "chunks 5000 500")
    assert (tmp_path / "state" / f"{session}.json").stat().st_size < 300_000
    agent.heard.clear()
    await agent.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
    assert agent.updates("agent_message_chunk")[-1]["content"]["text"].startswith("5000 ")


async def test_two_sessions_run_at_the_same_time(agent: StdioAgent) -> None:
    one, two = await agent.new_session(), await agent.new_session()
    held = agent.start_prompt(one, "hang")
    assert await agent.prompt(two, "hello") == "end_turn"
    assert (await agent.refused("session/prompt", {"sessionId": one, "prompt": []}))["code"] == -32600
    agent.send({"method": "$/cancel_request", "params": {"requestId": held}})
    assert (await agent.answer_to(held))["result"] == {"stopReason": "cancelled"}


@pytest.mark.parametrize(
    ("method", "params", "code", "field"),
    [
        ("session/new", {"mcpServers": []}, -32602, "cwd"),
        ("session/new", {"cwd": "relative", "mcpServers": []}, -32602, "cwd"),
        ("session/new", {"cwd": "/tmp", "mcpServers": 3}, -32602, "mcpServers"),
        ("initialize", {"protocolVersion": "one"}, -32602, "protocolVersion"),
        ("session/prompt", {"sessionId": "x", "prompt": [{"type": "smell"}]}, -32602, "prompt[0].type"),
        ("session/prompt", {"sessionId": "x", "prompt": [{"type": "text"}]}, -32602, "prompt[0].text"),
    ],
)
async def test_bad_params_name_the_field(
    agent: StdioAgent, method: str, params: dict[str, object], code: int, field: str
) -> None:
    error = await agent.refused(method, params)
    assert (error["code"], error["data"]) == (code, {"field": field})
    assert field in error["message"]


async def test_unknown_things_are_refused(agent: StdioAgent) -> None:
    assert (await agent.refused("no/such", {}))["code"] == -32601
    for session in ("nobody", "../../etc/passwd"):
        error = await agent.refused("session/load", {"sessionId": session, "cwd": "/tmp"})
        assert (error["code"], error["data"]) == (-32002, {"sessionId": session})
    session = await agent.new_session()
    assert (await agent.refused("session/set_mode", {"sessionId": session, "modeId": "x"}))["code"] == -32602


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":"\xff"}', -32700),
        (b"[" * 100_000 + b"]" * 100_000, -32600),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, -32700),
        (b"[]", -32600),
        (b"{}", -32600),
        (b"x" * (64 * 1024 * 1024 + 1), -32700),
    ],
    ids=["text", "utf8", "array", "deep", "batch", "empty", "long"],
)
async def test_a_bad_line_is_answered_with_a_null_id_and_the_agent_goes_on(
    agent: StdioAgent, line: bytes, code: int
) -> None:
    agent.send_raw(line)
    answer = await agent.read()
    assert (answer["id"], answer["error"]["code"]) == (None, code)
    assert await agent.prompt(await agent.new_session(), "hello") == "end_turn"


@pytest.mark.parametrize("request_id", ["0", "-5", '"text"', "null", "1.50", "123456789012345678901234567890"])
async def test_ids_come_back_as_they_were_sent(agent: StdioAgent, request_id: str) -> None:
    agent.send_raw(b'{"jsonrpc":"2.0","id":%s,"method":"logout"}' % request_id.encode())
    line = await agent.read_line()
    assert b'"id":%s,' % request_id.encode() in line


async def test_a_line_of_sixty_mebibytes_is_taken(agent: StdioAgent) -> None:
    assert await agent.prompt(await agent.new_session(), "usage " + "x" * (60 * 1024 * 1024)) == "end_turn"


@pytest.mark.parametrize("ending", ["eof", "term"])
async def test_eof_and_term_end_it_with_a_turn_running(agent: StdioAgent, ending: str) -> None:
    running = agent.start_prompt(await agent.new_session(), "slow")
    await agent.read_until(lambda m: "tick 1" in str(m))
    if ending == "eof":
        agent.stdin.close()
    else:
        agent.process.terminate()
    assert (await agent.answer_to(running))["result"] == {"stopReason": "cancelled"}
    assert await agent.exit_code() == 0


def test_it_works_with_files_for_pipes(tmp_path: Path) -> None:
    asked, answered = tmp_path / "in", tmp_path / "out"
    asked.write_text('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
    with asked.open() as stdin, answered.open("w") as stdout:
        subprocess.run([sys.executable, "-m", "sandbox_agent.mock_agent"], stdin=stdin, stdout=stdout, timeout=30)
    assert json.loads(answered.read_text())["result"]["protocolVersion"] == 1


def test_it_imports_neither_acp_nor_pydantic() -> None:
    code = "import sys, sandbox_agent.mock_agent.__main__; print(sorted({'acp', 'pydantic'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


async def test_without_a_state_folder_sessions_go_under_xdg_state_home(tmp_path: Path) -> None:
    async with run_agent(state=tmp_path, SANDBOX_AGENT_MOCK_STATE="", XDG_STATE_HOME=str(tmp_path)) as agent:
        session = await agent.new_session()
    assert (tmp_path / "sandbox-agent" / "mock-agent" / f"{session}.json").is_file()


async def test_a_state_folder_that_cannot_be_written_costs_only_persistence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with run_agent(state=tmp_path / "file" / "below") as agent:
        assert await agent.prompt(await agent.new_session(), "hello") == "end_turn"
        agent.stdin.close()
        assert (await agent.stderr.read()).count(b"will not survive") == 1
