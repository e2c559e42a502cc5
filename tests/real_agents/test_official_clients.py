"""The official clients, of either version and over either transport, with the agents that speak version 2."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, connect_to_agent
from acp.helpers import text_block
from acp.http import create_http_stream
from acp.ws import create_websocket_stream

from support.node import installed, run_node, steps
from support.real_world import DEADLINE, RealWorld

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(400)]

SECOND = {"claude", "codex"}
"""Whose programs speak version 2."""
STEPS = (
    "initialize, session/new, permission, cancel, config option, session/list, resume, replay, prompt, session/close"
)
each_transport = pytest.mark.parametrize("transport", ["http", "ws"])


@pytest.fixture
def second(world: RealWorld) -> RealWorld:
    if world.agent not in SECOND:
        pytest.skip("speaks version 1: the built-in agent does that as well")
    return world


@each_transport
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.feature("official TypeScript client")
async def test_the_official_typescript_clients_do_it_all(
    second: RealWorld, work: Path, transport: str, version: int
) -> None:
    made, word = work / second.word(), second.word()
    given = [transport, second.server.url, second.agent, str(version), str(second.work), str(made), word]
    output = await run_node(installed("node"), "any_agent.mjs", *given)
    assert [step for step in steps(output) if step != "mode"] == STEPS.split(", ")


class Editor:
    """Allows everything and notes what is said."""

    def __init__(self) -> None:
        self.heard = ""
        self.allowed = 0
        self._changed = asyncio.Event()

    async def request_permission(self, options: list[Any], **_: Any) -> Any:
        self.allowed += 1
        chosen = next(option.option_id for option in options if option.kind == "allow_once")
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    async def session_update(self, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.heard += getattr(update.content, "text", "")
            self._changed.set()

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Extensions are welcome."""

    async def until_heard(self, text: str) -> None:
        while text not in self.heard:
            self._changed.clear()
            await self._changed.wait()


async def _opened(transport: str, world: RealWorld, editor: Editor) -> Any:
    address = f"{world.server.url}/acp?agent={world.agent}"
    stream: Any = create_http_stream(address)
    if transport == "ws":
        stream = await create_websocket_stream(address.replace("http", "ws"))
    connection = connect_to_agent(editor, stream)  # type: ignore[arg-type]  # the half that is needed here
    assert (await connection.initialize(protocol_version=PROTOCOL_VERSION)).protocol_version == 1
    return connection


@each_transport
@pytest.mark.feature("official Python client")
async def test_the_official_python_client_does_it_all(second: RealWorld, work: Path, transport: str) -> None:
    made, word, editor = work / second.word(), second.word(), Editor()
    at = {"cwd": str(second.work), "mcp_servers": []}
    async with asyncio.timeout(3 * DEADLINE):
        first = await _opened(transport, second, editor)
        opened = await first.new_session(**at)
        session = {"session_id": opened.session_id}
        turn = await first.prompt(**session, prompt=[text_block(f"RUN:touch {made}")])
        assert (turn.stop_reason, made.exists()) == ("end_turn", True)
        assert editor.allowed
        slow = asyncio.create_task(first.prompt(**session, prompt=[text_block(f"{word} SLOW:40")]))
        await editor.until_heard("slow0")
        await first.cancel(**session)
        assert (await slow).stop_reason == "cancelled"
        modes = [mode.id for mode in opened.modes.available_modes]
        other = next(mode for mode in modes if mode != opened.modes.current_mode_id)
        await first.set_session_mode(**session, mode_id=other)
        option = next(option for option in opened.config_options if option.category == "mode")
        changed = await first.set_config_option(**session, config_id=option.id, value=opened.modes.current_mode_id)
        assert changed.config_options
        assert opened.session_id in [one.session_id for one in (await first.list_sessions()).sessions]
        await first.close()

        editor.heard = ""
        again = await _opened(transport, second, editor)
        await again.resume_session(**session, **at)
        assert editor.heard == ""
        await again.load_session(**session, **at)
        await editor.until_heard("slow0")
        turn = await again.prompt(**session, prompt=[text_block(f"again {word}")])
        assert turn.stop_reason == "end_turn"
        await editor.until_heard(f"ECHO[again {word}]")
        await again.close_session(**session)
        await again.close()
