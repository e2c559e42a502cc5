"""What survives: the server's death, a restart, a reader that stalls while a million events pass."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox_agent.store.sqlite.check import repair_database
from support.disk import LimitedDisk, small_disk
from support.rpc import CONNECTION, Events, RpcClient, connected, prompt_params, sse_blocks
from support.server import Server, mock_agents, running_server
from support.store_words import query

LOAD: dict[str, Any] = {"cwd": "/tmp", "mcpServers": []}


async def history(client: RpcClient, session: str) -> list[dict[str, Any]]:
    """The whole history, page by page."""
    events: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        params = {"sessionId": session, "after": events[-1]["sequence"] if events else 0, "limit": 10_000}
        page = await client.call("_sandboxagent/session/events", params)
        events += page["events"]
        has_more = page["hasMore"]
    return events


def chunk_numbers(events: list[dict[str, Any]]) -> list[int]:
    texts = [
        event["envelope"]["params"]["update"]["content"]["text"]
        for event in events
        if event["envelope"].get("params", {}).get("update", {}).get("sessionUpdate") == "agent_message_chunk"
    ]
    return [int(text.split(" ", 1)[0]) for text in texts]


@pytest.mark.timeout(120)
@pytest.mark.promise("P-history-1")
async def test_kill_9_of_the_server_in_a_50_000_event_turn_loses_nothing_that_a_client_saw(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        session = await client.new_session(title="the long one")
        async with client.stream() as events:
            params = prompt_params(session, "chunks 50000 100")
            message = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": params}
            await client.post(message, Prefer="respond-async")
            await events.wait_until(lambda e: len(e.ids) > 5_000)
            server.kill()
            await events.wait_until(lambda e: e.is_over)
        seen = [int(u["content"]["text"].split(" ")[0]) for u in events.updates("agent_message_chunk")]
        assert len(seen) >= 5_000
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        listed = (await client.call("session/list"))["sessions"]
        assert [(s["sessionId"], s["title"]) for s in listed] == [(session, "the long one")]
        kept = await history(client, session)
        assert [event["sequence"] for event in kept] == list(range(1, len(kept) + 1))
        numbers = chunk_numbers(kept)
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= len(seen)
        async with client.stream() as replayed:
            await client.call("session/load", {"sessionId": session, **LOAD})
            await replayed.wait_until(lambda e: len(e.updates("agent_message_chunk")) >= len(numbers))
            assert replayed.updates("user_message_chunk")[0]["content"]["text"] == "chunks 50000 100"
            answer = await client.prompt(session, "recall")
            assert answer["result"]["stopReason"] == "end_turn"


@pytest.mark.timeout(300)
@pytest.mark.promise("P-stream-3")
async def test_a_reader_stalled_while_a_million_events_pass_gets_every_one_within_64_mb(tmp_path: Path) -> None:
    many, at_once = 1_000_000, 100_000
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        session = await client.new_session()
        await client.prompt(session, f"chunks {at_once} 60")  # everything is warm: buffers, caches, the writer
        got = 0
        headers = {CONNECTION: client.id, "Accept": "text/event-stream"}
        async with client.http.stream("GET", "/v1/rpc", headers=headers, timeout=None) as response:
            before = resident_kb(server)
            for _ in range(many // at_once):
                await client.prompt(session, f"chunks {at_once} 60")
            grown = resident_kb(server) - before
            async with asyncio.timeout(200):
                async for blocks in sse_blocks(response.aiter_bytes()):
                    for block in blocks:
                        if b"agent_message_chunk" in block:
                            assert int(block.split(b'"text":"', 1)[1].split(b" ", 1)[0]) == got % at_once + 1
                            got += 1
                    if got == many + at_once:
                        break
            while_reading = resident_kb(server) - before
        assert got == many + at_once
        assert max(grown, while_reading) < 64 * 1024, (grown, while_reading)


def resident_kb(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])


@pytest.mark.promise("P-stream-5")
async def test_events_past_the_retention_limit_are_a_gap_that_says_so(tmp_path: Path) -> None:
    config = "retention_bytes = 2000000\n"
    async with (
        running_server(tmp_path, "--no-token", "--store", "memory", config=config) as server,
        connected(server.url) as client,
    ):
        session = await client.new_session()
        await client.prompt(session, "chunks 50000 200")
        async with client.stream() as events:
            await events.wait_until(lambda e: e.updates("agent_message_chunk"))
            last = await _last_event_id(client, session)
            await events.wait_until(lambda e: e.ids[-1] >= last)
        expected, gaps = 1, 0
        for event_id, message in zip(events.ids, events.messages, strict=True):
            if message.get("method") == "_sandboxagent/stream/gap":
                gaps += 1
                assert message["params"] == {"fromId": expected, "toId": event_id, "sessions": [session]}
            else:
                assert event_id == expected
            expected = event_id + 1
        assert 0 < gaps < 5
        assert len(events.updates("agent_message_chunk")) > 1000


async def _last_event_id(client: RpcClient, session: str) -> int:
    message = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": prompt_params(session, "end")}
    return int((await client.post(message)).headers["X-ACP-Last-Event-Id"])


@pytest.mark.promise("P-session-2")
async def test_after_a_restart_old_sessions_are_listed_read_and_continued(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        session = await client.new_session(requestedSessionId="my-work")
        await client.prompt(session, "remember me")
        await server.stop()
    async with (
        running_server(tmp_path, "--no-token") as server,
        connected(server.url) as client,
        client.stream() as events,
    ):
        await client.call("session/resume", {"sessionId": "my-work", "cwd": "/tmp"})
        await client.prompt("my-work", "recall")
        await events.wait_until(lambda e: "remember me" in e.text())
        kept = await history(client, "my-work")
        assert [event["sequence"] for event in kept] == list(range(1, len(kept) + 1))
        assert {event["source"] for event in kept} == {"client", "agent", "server"}


@pytest.mark.promise("P-session-3")
async def test_a_session_whose_agent_can_neither_load_nor_resume_is_read_only_after_a_restart(tmp_path: Path) -> None:
    config = mock_agents(m="--no-load --no-resume")
    async with running_server(tmp_path, "--no-token", config=config) as server, connected(server.url, "m") as client:
        session = await client.new_session()
        await client.prompt(session, "for the record")
        await server.stop()
    async with (
        running_server(tmp_path, "--no-token", config=config) as server,
        connected(server.url, "m") as client,
        client.stream() as events,
    ):
        loaded = await client.call("session/load", {"sessionId": session, **LOAD})
        ours = loaded["_meta"]["sandboxagent.dev"]
        assert ours["readOnly"] is True
        assert "neither" in ours["reason"]
        await events.wait_until(lambda e: e.text() == "for the record")
        answer = await client.prompt(session, "more?")
        assert answer["error"]["code"] == -32009
        assert "can be read only" in answer["error"]["message"]


async def test_live_sessions_can_be_loaded_whether_or_not_the_agent_can(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=mock_agents(m="--no-load --no-resume")) as server,
        connected(server.url, "m") as one,
        connected(server.url, "m") as other,
        other.stream() as events,
    ):
        session = await one.new_session()
        await one.prompt(session, "said before")
        await other.call("session/load", {"sessionId": session, **LOAD})
        await events.wait_until(lambda e: e.text() == "said before")
        await one.prompt(session, ", and after")
        await events.wait_until(lambda e: e.text() == "said before, and after")


@pytest.mark.promise("P-session-10")
async def test_a_load_replays_only_to_the_one_who_asked(server: Server) -> None:
    async with connected(server.url) as one, connected(server.url) as other, one.stream() as seen:
        session = await one.new_session()
        await one.prompt(session, "once")
        async with other.stream() as replayed:
            await other.call("session/load", {"sessionId": session, **LOAD})
            await replayed.wait_until(lambda e: e.text() == "once")
        await seen.wait_until(lambda e: e.text() == "once")
        await one.call("session/list")
        assert seen.text() == "once"


async def test_a_load_in_the_middle_of_a_burst_has_neither_gap_nor_double(server: Server) -> None:
    async with connected(server.url) as one, connected(server.url) as other, other.stream() as events:
        session = await one.new_session()
        turn = asyncio.create_task(one.prompt(session, "chunks 60000 50"))
        await other.call("session/load", {"sessionId": session, **LOAD})
        await turn
        await events.wait_until(lambda e: len(e.updates("agent_message_chunk")) >= 60_000)
        assert _numbers(events) == list(range(1, 60_001))


def _numbers(events: Events) -> list[int]:
    return [int(u["content"]["text"].split(" ")[0]) for u in events.updates("agent_message_chunk")]


@pytest.mark.promise("P-session-9")
async def test_a_fork_begins_with_its_parents_conversation(server: Server) -> None:
    async with connected(server.url) as client, connected(server.url) as other:
        parent = await client.new_session()
        await client.prompt(parent, "shared")
        fork = (await client.call("session/fork", {"sessionId": parent, **LOAD}))["sessionId"]
        assert fork != parent
        await client.prompt(parent, " only parent")
        await client.prompt(fork, " only fork")
        async with other.stream() as events:
            await other.call("session/load", {"sessionId": fork, **LOAD})
            await events.wait_until(lambda e: e.text() == "shared only fork")
            assert {m["params"]["sessionId"] for m in events.messages} == {fork}


async def test_closed_sessions_come_back_and_deleted_ones_do_not(client: RpcClient) -> None:
    closed, deleted = await client.new_session(), await client.new_session()
    await client.prompt(closed, "keep")
    await client.call("session/close", {"sessionId": closed})
    await client.call("session/delete", {"sessionId": deleted})
    listed = [s["sessionId"] for s in (await client.call("session/list"))["sessions"]]
    assert listed == [closed]
    assert (await client.prompt(closed, "again"))["result"]["stopReason"] == "end_turn"
    assert "no session" in (await client.prompt(deleted, "hello?"))["error"]["message"]


async def test_terminate_ends_a_session_once_and_for_all(client: RpcClient) -> None:
    session = await client.new_session()
    async with client.stream() as events:
        running = asyncio.create_task(client.prompt(session, "slow 1000"))
        await events.wait_until(lambda e: "tick 1" in e.text())
        for _ in range(2):
            await client.call("_sandboxagent/session/terminate", {"sessionId": session})
        assert (await running)["result"]["stopReason"] == "cancelled"
        ended = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/ended")
        assert ended["params"]["reason"] == "terminated"
        assert (ended["params"]["terminatedBy"], ended["params"]["terminated_by"]) == ("client", "daemon")
        assert len([m for m in events.messages if m.get("method") == "_sandboxagent/session/ended"]) == 1
    answer = await client.prompt(session, "more")
    assert answer["error"]["code"] == -32009


@pytest.mark.promise("P-restart-1")
async def test_the_second_server_on_one_data_dir_says_so_and_exits(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as server:
        with pytest.raises(AssertionError) as refused:
            async with running_server(tmp_path, "--no-token"):
                pass
        assert str(server.pid) in str(refused.value)
        async with httpx.AsyncClient(base_url=server.url) as http:
            assert (await http.get("/v1/health")).status_code == 200


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    database = tmp_path / "data" / "history.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"not a database at all" * 100)
    with pytest.raises(AssertionError) as refused:
        async with running_server(tmp_path, "--no-token"):
            pass
    assert "history.db" in str(refused.value)
    assert database.read_bytes() == b"not a database at all" * 100


async def test_the_memory_store_forgets(tmp_path: Path) -> None:
    for _ in range(2):
        async with (
            running_server(tmp_path, "--no-token", "--store", "memory") as server,
            connected(server.url) as client,
        ):
            assert (await client.call("session/list"))["sessions"] == []
            await client.new_session()
    assert not list((tmp_path / "data").glob("*.db"))


async def test_2000_sessions_are_listed_page_by_page_without_holes(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        made: set[str] = set()
        for _ in range(100):
            made.update(await asyncio.gather(*(client.new_session() for _ in range(20))))
        assert len(made) == 2000
        listed: list[str] = []
        cursor: str | None = None
        while True:
            page = await client.call("session/list", {"cursor": cursor} if cursor else {})
            listed += [s["sessionId"] for s in page["sessions"]]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        assert len(listed) == len(set(listed)) == 2000
        assert set(listed) == made


@pytest.mark.promise("P-history-3")
async def test_a_full_disk_is_told_to_clients_and_stops_no_conversation(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        if isinstance(disk, LimitedDisk):
            pytest.skip("needs a mount of its own: the limit would hold for this process, not for the server's")
        flags = ("--no-token", "--data-dir", str(disk.path))
        async with running_server(tmp_path / "home", *flags) as server, connected(server.url) as client:
            session = await client.new_session()
            async with client.stream() as events:
                await client.prompt(session, "before")
                disk.fill()
                await client.prompt(session, "chunks 200 100")
                trouble = await events.wait_for(lambda m: m.get("method") == "_sandboxagent/error")
                assert trouble["params"]["code"] == "store_degraded"
                assert (await client.prompt(session, "still talking"))["result"]["stopReason"] == "end_turn"
                await events.wait_until(lambda e: "still talking" in e.text())
                disk.free()
                await events.wait_for(lambda m: "store_ok" in str(m))
            assert "0 entries were lost" in server.log_text()
            kept = await history(client, session)
            assert "still talking" in "".join(str(event["envelope"]) for event in kept)


@pytest.mark.promise("P-history-6")
async def test_a_damaged_record_hides_no_other_session_and_its_history_can_be_repaired(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as server:
        async with connected(server.url) as client:
            spoilt, well = await client.new_session(), await client.new_session(title="well")
            await client.prompt(spoilt, "hello")
        await server.stop()
    path = tmp_path / "data" / "history.db"
    query(path, f"UPDATE sessions SET record = substr(record, 1, 30) WHERE session = '{spoilt}'")
    async with running_server(tmp_path, "--no-token") as server:
        async with httpx.AsyncClient(base_url=server.url) as http:
            listed = await http.get("/v1/sessions")
            assert listed.status_code == 200
            assert [session["sessionId"] for session in listed.json()["sessions"]] == [well]
            assert listed.json()["unreadable"] == [{"agent": "mock", "sessionId": spoilt}]
            shown = await http.get(f"/v1/sessions/{spoilt}")
            assert shown.status_code == 503
            assert "store check --repair" in shown.json()["detail"]
            assert (await http.get("/v1/health")).json()["store"]["damaged"] > 0
        await server.stop()
    assert [problem.is_repaired for problem in repair_database(path).problems] == [True]
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        assert "hello" in str(await history(client, spoilt))


@pytest.mark.promise("P-history-4")
async def test_on_a_full_disk_a_prompt_with_a_turn_id_is_refused_until_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        if isinstance(disk, LimitedDisk):
            pytest.skip("needs a mount of its own: the limit would hold for this process, not for the server's")
        flags = ("--no-token", "--data-dir", str(disk.path))
        async with running_server(tmp_path / "home", *flags) as server, connected(server.url) as client:
            session = await client.new_session()
            async with client.stream() as events:
                disk.fill()
                await client.prompt(session, "chunks 200 100")
                await events.wait_for(lambda m: "store_degraded" in str(m))
                refused = await client.prompt(session, "twice?", turnId="t")
                assert "history is not being written" in refused["error"]["message"]
                disk.free()
                await events.wait_for(lambda m: "store_ok" in str(m))
            assert (await client.prompt(session, "once", turnId="t"))["result"]["stopReason"] == "end_turn"
