"""Any client at any node uses any session: what it asks is answered by the node that has the session."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.cluster import chunks, cluster, history, prompt_later
from support.postgres import PostgresServer

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly


@pytest.mark.promise("P-cluster-1")
async def test_a_session_of_one_node_is_used_and_watched_at_another(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session(title="shared")
        listed = (await two.call("session/list"))["sessions"]
        assert [each["sessionId"] for each in listed] == [session]
        seen_one, seen_two = await nodes.stream(one), await nodes.stream(two)
        answer = await two.prompt(session, "chunks 20 1", turnId="t1")
        assert answer["result"]["stopReason"] == "end_turn", answer
        again = await two.prompt(session, "chunks 20 1", turnId="t1")
        assert again["result"] == answer["result"]
        await seen_two.wait_until(lambda e: len(chunks(e)) == 20)
        await seen_one.wait_until(lambda e: len(chunks(e)) == 20)
        assert chunks(seen_one) == chunks(seen_two) == [str(number) for number in range(1, 21)]
        assert seen_two.ids == list(range(1, len(seen_two.ids) + 1))
        answer = await one.prompt(session, "chunks 3 1")
        assert answer["result"]["stopReason"] == "end_turn"
        await seen_two.wait_until(lambda e: len(chunks(e)) == 23)
        assert len(await history(two, session)) == len(await history(one, session))


@pytest.mark.promise("P-cluster-1")
async def test_questions_cancels_and_settings_go_to_the_node_of_the_session(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        seen = await nodes.stream(two)
        prompting = asyncio.create_task(two.prompt(session, "tool ls"))
        asked = await seen.wait_for(lambda m: m.get("method") == "session/request_permission")
        option = asked["params"]["options"][0]["optionId"]
        await two.answer(asked, {"outcome": {"outcome": "selected", "optionId": option}})
        assert (await prompting)["result"]["stopReason"] == "end_turn"
        told = len(seen.messages)
        await prompt_later(two, session, "hang")
        await seen.wait_for(lambda m: m.get("method") == "_sandboxagent/session/turn_started", after=told)
        await two.notify("session/cancel", {"sessionId": session})
        cancelled = await seen.wait_for(lambda m: m.get("id") == "hang")
        assert cancelled["result"]["stopReason"] == "cancelled"
        loaded = await two.call("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        mode = loaded["modes"]["availableModes"][-1]["id"]
        await two.call("session/set_mode", {"sessionId": session, "modeId": mode})
        shown = (await one.http.get(f"/v1/sessions/{session}")).json()
        assert shown["mode"] == mode
        await two.call("session/close", {"sessionId": session})
        await two.call("session/delete", {"sessionId": session})
        assert (await one.call("session/list"))["sessions"] == []
