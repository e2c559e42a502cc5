"""Files and terminals that the server serves itself when no attached client claims them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from support.rpc import Events, Message, RpcClient, connected
from support.server import Server

FS = {"fs": {"readTextFile": True, "writeTextFile": True}}


async def test_the_host_reads_and_writes_files_for_the_agent(client: RpcClient, tmp_path: Path) -> None:
    session = await client.new_session(cwd=str(tmp_path))
    target = tmp_path / "deep" / "note.txt"
    async with client.stream() as events:
        await client.prompt(session, f"write {target} hello there")
        assert target.read_text().strip() == "hello there"
        await client.prompt(session, f"read {target}")
        await events.wait_until(lambda e: "hello there" in e.text())
        await client.prompt(session, f"read {tmp_path}/absent.txt")
        await events.wait_until(lambda e: "absent.txt" in e.text())


async def test_the_host_runs_terminals_for_the_agent(client: RpcClient, tmp_path: Path) -> None:
    session = await client.new_session(cwd=str(tmp_path))
    async with client.stream() as events:
        await client.prompt(session, "terminal pwd")
        await events.wait_until(lambda e: str(tmp_path) in str(e.messages))


def told(events: Events) -> list[Message]:
    return [m["params"] for m in events.messages if m.get("method") == "_sandboxagent/terminal/output"]


async def test_what_a_terminal_of_the_host_prints_is_told_while_it_runs_and_stays_in_the_history(
    client: RpcClient, tmp_path: Path
) -> None:
    session = await client.new_session(cwd=str(tmp_path))
    go_on, script = tmp_path / "go-on", tmp_path / "script"
    script.write_text(f"printf 'first ü'; until test -e {go_on}; do sleep 0.05; done; printf ' second'; exit 3")
    async with client.stream() as events:
        turn = asyncio.create_task(client.prompt(session, f"terminal sh {script}"))
        await events.wait_until(lambda e: "first ü" in "".join(news.get("output", "") for news in told(e)))
        assert not turn.done()
        assert all("exitStatus" not in news for news in told(events))
        go_on.touch()
        await turn
        await events.wait_until(lambda e: any("exitStatus" in news for news in told(e)))
        assert "".join(news.get("output", "") for news in told(events)) == "first ü second"
        assert told(events)[-1]["exitStatus"] == {"exitCode": 3, "signal": None}
        assert {(news["sessionId"], news["terminalId"]) for news in told(events)} == {
            (session, told(events)[0]["terminalId"])
        }
    history = await client.call("_sandboxagent/session/events", {"sessionId": session, "limit": 1000})
    kept = [event["envelope"].get("params", {}) for event in history["events"] if event["source"] == "server"]
    assert "".join(news.get("output", "") for news in kept) == "first ü second"


async def test_of_a_terminal_that_prints_without_end_a_bounded_part_is_told(client: RpcClient, tmp_path: Path) -> None:
    session = await client.new_session(cwd=str(tmp_path))
    async with client.stream() as events:
        await client.prompt(session, "terminal head -c 5000000 /dev/zero")
        await events.wait_until(lambda e: any("exitStatus" in news for news in told(e)))
        printed = [news["output"] for news in told(events) if "output" in news]
        assert sum(map(len, printed)) == 1 << 20
        assert [news.get("truncated", False) for news in told(events)].count(True) == 1


async def test_an_attached_client_that_claims_files_is_asked_instead_of_the_host(
    server: Server, tmp_path: Path
) -> None:
    async with connected(server.url, capabilities=FS) as able, able.stream() as events:
        session = await able.new_session(cwd=str(tmp_path))
        turn = asyncio.create_task(able.prompt(session, "read /made/up.txt"))
        request = await events.wait_for(lambda m: m.get("method") == "fs/read_text_file")
        assert request["params"]["path"] == "/made/up.txt"
        await able.answer(request, {"content": "from the client"})
        await turn
        await events.wait_until(lambda e: "from the client" in e.text())


async def test_of_two_able_clients_only_the_one_whose_turn_it_is_is_asked(server: Server, tmp_path: Path) -> None:
    async with (
        connected(server.url, capabilities=FS) as watcher,
        connected(server.url, capabilities=FS) as prompter,
        watcher.stream() as seen_by_watcher,
        prompter.stream() as seen_by_prompter,
    ):
        session = await watcher.new_session(cwd=str(tmp_path))
        turn = asyncio.create_task(prompter.prompt(session, f"write {tmp_path}/x once"))
        request = await seen_by_prompter.wait_for(_is_write)
        await prompter.answer(request, {})
        await turn
        await seen_by_watcher.wait_until(lambda e: e.updates("agent_message_chunk"))
        assert not any(_is_write(m) for m in seen_by_watcher.messages)
        assert not (tmp_path / "x").exists()


async def test_when_the_asked_client_leaves_the_host_takes_over(server: Server, tmp_path: Path) -> None:
    async with connected(server.url) as owner, owner.stream() as events:
        session = await owner.new_session(cwd=str(tmp_path))
        async with connected(server.url, capabilities=FS) as able, able.stream() as seen:
            params: dict[str, Any] = {
                "sessionId": session,
                "prompt": [{"type": "text", "text": f"write {tmp_path}/x by the host"}],
            }
            message = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}
            await able.post(message, Prefer="respond-async")
            await seen.wait_for(_is_write)
            await able.close()
        await events.wait_until(lambda e: e.updates("agent_message_chunk"))
        assert (tmp_path / "x").read_text().strip() == "by the host"


def _is_write(message: Message) -> bool:
    return message.get("method") == "fs/write_text_file"
