"""Some agents send prompts back: whoever watches sees each prompt once all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.rpc import Events, connected
from support.server import mock_agents, running_server


def prompts(events: Events) -> str:
    return "".join(update["content"].get("text", "") for update in events.updates("user_message_chunk"))


@pytest.mark.parametrize("flags", ["--echo-prompts", ""])
@pytest.mark.promise("P-stream-6")
async def test_a_second_client_sees_each_prompt_once_whether_or_not_the_agent_echoes_it(
    tmp_path: Path, flags: str
) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m=flags)) as server,
        connected(server.url, "m") as client,
        connected(server.url, "m") as watcher,
        client.stream() as mine,
        watcher.stream() as theirs,
    ):
        session = await client.new_session()
        await watcher.call("session/resume", {"sessionId": session, "cwd": "/", "mcpServers": []})
        await client.prompt(session, "first words\nof mine")
        await client.prompt(session, "and more")
        await theirs.wait_until(lambda e: e.text() == "first words\nof mineand more")
        assert prompts(theirs) == "first words\nof mineand more"
        assert prompts(mine) == ("first words\nof mineand more" if flags else "")
        async with connected(server.url, "m") as late, late.stream() as replayed:
            await late.call("session/load", {"sessionId": session, "cwd": "/", "mcpServers": []})
            await replayed.wait_until(lambda e: e.text() == "first words\nof mineand more")
            assert prompts(replayed) == "first words\nof mineand more"
