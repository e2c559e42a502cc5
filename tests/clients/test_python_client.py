"""The official Python client, over HTTP and WebSocket, at `/acp`."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, connect_to_agent
from acp.helpers import text_block
from acp.http import create_http_stream
from acp.ws import create_websocket_stream

from support.server import Server

DEADLINE = 30.0


class Editor:
    """The client half: allows everything and notes what is said."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}
        self.allowed: list[str] = []
        self._changed = asyncio.Event()

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        self.allowed.append(session_id)
        chosen = next(option.option_id for option in options if option.kind == "allow_once")
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.said[session_id] = self.said.get(session_id, "") + update.content.text
            self._changed.set()

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Extensions are welcome."""

    async def heard(self, session_id: str, text: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while text not in self.said.get(session_id, ""):
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture(params=["http", "ws"])
def transport(request: pytest.FixtureRequest) -> str:
    if request.param == "http" and importlib.util.find_spec("h2") is None:
        if os.environ.get("REQUIRE_ALL") == "1":
            pytest.fail("h2 is not installed: agent-client-protocol[http] needs it")
        pytest.skip("h2 is not installed")
    return str(request.param)


async def opened(transport: str, url: str, token: str, editor: Editor, agent: str) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    if transport == "http":
        stream = create_http_stream(f"{url}/acp?agent={agent}", headers=headers)
    else:
        stream = await create_websocket_stream(f"{url.replace('http', 'ws')}/acp?agent={agent}", headers=headers)
    connection = connect_to_agent(editor, stream)  # type: ignore[arg-type]  # the half that is needed here
    answer = await connection.initialize(protocol_version=PROTOCOL_VERSION)
    assert answer.protocol_version == PROTOCOL_VERSION == 1  # the library has no other
    assert answer.agent_capabilities is not None
    assert answer.agent_capabilities.load_session is True
    return connection


def chosen_mode(answer: Any) -> str:
    """In either spelling, which say the same."""
    option = next(option for option in answer.config_options if option.category == "mode")
    assert option.current_value == answer.modes.current_mode_id
    return str(option.current_value)


@pytest.mark.parametrize("agent", ["mock", "mock2"])
async def test_official_python_client_does_it_all(transport: str, agent: str, server: Server, token: str) -> None:
    editor = Editor()
    first = await opened(transport, server.url, token, editor, agent)
    made = await first.new_session(cwd="/tmp", mcp_servers=[])
    session = made.session_id
    assert chosen_mode(made) == "ask"
    async with asyncio.timeout(DEADLINE):
        said = await first.prompt(session_id=session, prompt=[text_block("remember the python client")])
        assert said.stop_reason == "end_turn"
        await editor.heard(session, "remember the python client")
        assert (await first.prompt(session_id=session, prompt=[text_block("tool ls")])).stop_reason == "end_turn"
        assert editor.allowed == [session]
        turn = asyncio.create_task(first.prompt(session_id=session, prompt=[text_block("slow")]))
        await editor.heard(session, "tick 1")
        await first.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        await first.set_session_mode(session_id=session, mode_id="code")
        changed = await first.set_config_option(config_id="mode", session_id=session, value="ask")
        assert next(one for one in changed.config_options if one.id == "mode").current_value == "ask"
        assert session in [one.session_id for one in (await first.list_sessions()).sessions]
        await first.close()

    editor.said.clear()
    second = await opened(transport, server.url, token, editor, agent)
    async with asyncio.timeout(DEADLINE):
        assert chosen_mode(await second.resume_session(cwd="/tmp", session_id=session, mcp_servers=[])) == "ask"
        assert not editor.said
        await second.load_session(cwd="/tmp", session_id=session, mcp_servers=[])
        await editor.heard(session, "remember the python client")
        assert (await second.prompt(session_id=session, prompt=[text_block("tool pwd")])).stop_reason == "end_turn"
        assert editor.allowed == [session, session]
        await second.close_session(session_id=session)
        await second.close()
