"""Terminals of processes of another node: who watches and types there sees what one at its own node sees."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from sandbox_agent.core.users import Right
from sandbox_agent.http.access.tokens import TokenFile
from support.cluster import TOKEN, cluster
from support.postgres import PostgresServer
from support.server import Server
from support.terminal import DEADLINE, Screen, start_terminal, watching

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly
FLOOD = 40_000_000
BAD_GATEWAY = 1014


async def refusal(node: Server, process: str, query: str, **options: Any) -> tuple[int, str]:
    """Status and kind of the problem with which a terminal is refused."""
    with pytest.raises(InvalidStatus) as error:
        async with watching(node, process, query, **options):
            pass
    answer = error.value.response
    assert answer.headers["content-type"] == "application/problem+json"
    problem = msgspec.json.decode(bytes(answer.body))
    assert problem["status"] == answer.status_code
    return answer.status_code, problem["type"].rpartition(":")[2]


async def closed(screen: Screen) -> int | None:
    """The code with which the socket is closed."""
    with contextlib.suppress(ConnectionClosed):
        async with asyncio.timeout(DEADLINE):
            while True:
                await screen.step()
    return screen.socket.close_code


async def test_two_people_at_two_nodes_use_one_terminal(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        process = await start_terminal(first, "sh")
        async with watching(first, process) as ada, watching(second, process, "?node=a&resizes=true") as bob:
            await bob.frame("ready")
            await bob.send(type="resize", cols=60, rows=20)
            assert await bob.frame("resize") == {"type": "resize", "cols": 60, "rows": 20, "yours": True}
            await bob.type("stty size\n")
            await bob.until(b"20 60\r\n")
            await ada.until(b"20 60\r\n")
            await ada.type("echo from ada; printf '\\303\\050\\000'\n")
            await bob.until(b"\xc3\x28\x00")
            await bob.socket.send("nonsense")
            assert "invalid message" in (await bob.frame("error"))["message"]
            position = bob.binary
            async with watching(second, process, f"?node=a&after={position}") as again:
                assert (await again.frame("ready"))["after"] == position
                await bob.type("exit 3\n")
                for screen in (ada, bob, again):
                    assert (await screen.frame("exit"))["exitCode"] == 3
                    assert await closed(screen) == 1000
                assert ada.output == bob.output
                assert ada.output.endswith(again.output)


async def test_a_session_names_the_node_of_the_terminal(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        session = await (await nodes.client(first)).new_session()
        process = await start_terminal(first, "cat")
        async with watching(second, process, f"?sessionId={session}") as screen:
            await screen.type("hello\n")
            await screen.until(b"hello\r\nhello\r\n")
            await screen.send(type="close")
            assert await closed(screen) == 1000


async def test_what_its_node_refuses_is_refused_in_the_same_words(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        process = await start_terminal(first, "cat")
        plain = await start_terminal(first, "cat", tty=False, interactive=True)
        assert await refusal(second, process, "") == (404, "not_found")
        assert await refusal(second, "proc_none", "?node=a") == (404, "not_found")
        assert await refusal(second, plain, "?node=a") == (409, "conflict")
        assert await refusal(second, process, "?node=a&after=-1") == (400, "invalid_params")
        assert await refusal(second, process, "?node=nobody") == (404, "not_found")
        assert await refusal(second, process, "?node=http://127.0.0.1:1") == (404, "not_found")
        passed_on = {"X-Sandbox-Agent-User": "admin"}
        assert await refusal(second, process, "?node=a", additional_headers=passed_on) == (404, "not_found")
        first.kill()
        assert await refusal(second, process, "?node=a") == (503, "node_unreachable")


async def test_a_terminal_of_another_node_needs_token_origin_and_right(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        tokens = TokenFile(tmp_path / "b" / "data")
        reader, writer = tokens.add("the-reader", Right.READ), tokens.add("the-writer", Right.PROMPT)
        first, second = await nodes.start("a", token="owner"), await nodes.start("b", token="owner")
        third = await nodes.start("c", token="owner", cluster_token="another-secret-of-a-cluster")
        process = await start_terminal(first, "cat", token="owner")
        assert await refusal(second, process, "?node=a") == (401, "unauthorized")
        assert await refusal(second, process, f"?node=a&access_token={TOKEN}") == (401, "unauthorized")
        assert await refusal(second, process, f"?node=a&access_token={reader}") == (403, "forbidden")
        evil = Origin("https://evil.example")
        assert await refusal(second, process, "?node=a&access_token=owner", origin=evil) == (403, "forbidden")
        claim = {"Authorization": f"Bearer {writer}", "X-Sandbox-Agent-User": "admin"}
        assert await refusal(first, process, "", additional_headers=claim) == (401, "unauthorized")
        assert await refusal(third, process, "?node=a&access_token=owner") == (503, "node_unreachable")
        async with watching(second, process, f"?node=a&access_token={writer}", origin=Origin(second.url)) as screen:
            await screen.type("hello\n")
            await screen.until(b"hello\r\nhello\r\n")
            tokens.revoke("the-writer")
            assert await closed(screen) == 1008


async def test_nothing_of_a_clients_credentials_leaves_its_own_node(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes, asyncio.timeout(DEADLINE):
        heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.set_result(await reader.readuntil(b"\r\n\r\n"))
            writer.transport.abort()

        async with await asyncio.start_server(hear, "127.0.0.1", 0) as listener:
            address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            await nodes.start("a", token="owner", node_url=address)
            second = await nodes.start("b", token="owner-of-b")
            query, origin = "?node=a&after=7&access_token=owner-of-b&ticket=some-ticket", Origin(second.url)
            cookie = {"Cookie": "sandbox-agent=some-cookie"}
            refused = await refusal(second, "proc_1", query, origin=origin, additional_headers=cookie)
            assert refused == (503, "node_unreachable")
        request = (await heard).decode()
        assert request.startswith("GET /v1/processes/proc_1/terminal/ws?after=7 HTTP/1.1\r\n")
        assert f"authorization: Bearer {TOKEN}\r\n" in request
        assert not [secret for secret in ("owner-of-b", "some-ticket", "some-cookie", second.url) if secret in request]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_one_whose_terminals_node_is_lost_is_told(
    postgres: PostgresServer, tmp_path: Path, how: signal.Signals
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        process = await start_terminal(first, "cat")
        async with watching(second, process, "?node=a") as screen:
            await screen.frame("ready")
            first.process.send_signal(how)
            assert await closed(screen) == BAD_GATEWAY
            assert screen.socket.close_reason == "node a is gone"
            await first.stop(signal.SIGKILL)


async def test_one_who_reads_slowly_at_another_node_costs_nobody_memory(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        flood = f"read x; head -c {FLOOD} /dev/zero | tr '\\0' y; echo; echo the end"
        process = await start_terminal(first, "sh", "-c", flood)
        async with watching(second, process, "?node=a", max_queue=1) as slow, watching(first, process) as quick:
            await slow.frame("ready")
            before = second.peak_memory
            await slow.type("\n")
            async with asyncio.timeout(90):
                while b"the end" not in quick.output:
                    await quick.step()
                    quick.output = quick.output[-4000:]
            grown = second.peak_memory - before
            await slow.frame("exit")
            assert slow.output.endswith(b"the end\r\n")
            assert [frame for frame in slow.frames if "cut" in frame], "it was not slow"
            assert grown < 20_000_000


async def test_one_who_vanishes_is_missed_at_the_terminals_node(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        process = await start_terminal(first, "sh", "-c", "stty raw -echo; printf set; exec sleep 1000")
        async with watching(second, process, "?node=a") as screen:
            await screen.until(b"set")
            await screen.type("x" * 50_000)  # its program reads nothing
            assert await streams(first) == 1
            screen.socket.transport.abort()
        async with asyncio.timeout(DEADLINE):
            while await streams(first):
                await asyncio.sleep(0.05)


async def streams(node: Server) -> int:
    """How many streams and WebSockets are open there."""
    async with httpx.AsyncClient(base_url=node.url, trust_env=False) as http:
        lines = (await http.get("/v1/metrics")).text.splitlines()
    return int(float(next(line.split()[1] for line in lines if line.startswith("sandbox_agent_streams "))))
