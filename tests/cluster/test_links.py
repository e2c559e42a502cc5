"""Links between nodes: what breaks them costs nothing that was told, and only nodes of the cluster get one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from support.cluster import TOKEN, chunks, chunks_kept, cluster, history, prompt_later, until_said
from support.link_proxy import State, link_proxy
from support.postgres import PostgresServer
from support.terminal import start_terminal, watching
from support.tls import make_certificate, tls_proxy

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly


@pytest.mark.promise("P-cluster-3")
@pytest.mark.parametrize("state", ["refused", "silent"])
async def test_a_link_that_breaks_in_a_turn_costs_nothing_that_was_told(
    postgres: PostgresServer, tmp_path: Path, state: State
) -> None:
    async with cluster(postgres, tmp_path) as nodes, link_proxy() as between:
        first, second = await nodes.start("a", node_url=between.url), await nodes.start("b")
        between.target = first.port
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        seen_one, seen_two = await nodes.stream(one), await nodes.stream(two)
        await one.call("session/resume", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        prompting = asyncio.create_task(two.prompt(session, "slow 60"))
        await seen_two.wait_until(lambda e: len(chunks(e)) > 5)
        before = len(chunks(seen_two))
        between.set(state)
        await seen_one.wait_until(lambda e: len(chunks(e)) > 25)  # the owner goes on, and has the session all the time
        assert len(chunks(seen_two)) < before + 10
        between.set("open")
        assert (await prompting)["result"]["stopReason"] == "end_turn"  # the same turn, though sent again
        await seen_two.wait_until(lambda e: len(chunks(e)) == 60)
        assert chunks(seen_two) == [f"tick {n}" for n in range(1, 61)] == chunks_kept(await history(two, session))
        assert seen_two.ids == list(range(1, len(seen_two.ids) + 1))


async def test_a_node_that_cannot_be_reached_though_it_lives_is_named(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes, link_proxy() as between:
        first, second = await nodes.start("a", node_url=between.url), await nodes.start("b", lease_ms=1000)
        between.set("refused")
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        refused = await two.prompt(session, "hello")
        assert refused["error"]["data"]["type"].endswith("node_unreachable"), refused
        assert refused["error"]["data"]["node"] == "a"
        assert between.url in refused["error"]["message"]


@pytest.mark.promise("P-cluster-9")
async def test_who_has_not_the_cluster_token_gets_no_link(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first = await nodes.start("a", token="the-token-of-users")
        url = first.url.replace("http", "ws") + "/v1/nodes/link"
        for given in (None, "the-token-of-users", "wrong", ""):
            headers = {} if given is None else {"Authorization": f"Bearer {given}"}
            with pytest.raises(InvalidStatus) as refused:
                await connect(url, additional_headers=headers, proxy=None)
            assert refused.value.response.status_code == 401
        async with connect(url, additional_headers={"Authorization": f"Bearer {TOKEN}"}, proxy=None) as socket:
            await socket.send(b'["took",1,1]\n')
            async with asyncio.timeout(10):
                await socket.wait_closed()
            assert socket.close_code == 1008  # it is held to the rules of a link all the same


async def test_a_server_without_a_cluster_token_takes_no_links(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a", cluster_token=""), await nodes.start("b")
        url = first.url.replace("http", "ws") + "/v1/nodes/link"
        for given in ("", TOKEN):
            with pytest.raises(InvalidStatus):
                await connect(url, additional_headers={"Authorization": f"Bearer {given}"}, proxy=None)
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        refused = await one.request("_sandboxagent/session/events", {"sessionId": session})
        assert "result" in refused
        assert (await one.http.get("/v1/nodes")).json() == {"nodes": []}
        elsewhere = await one.prompt(await two.new_session(), "hello")
        assert elsewhere["error"]["data"]["type"].endswith("session_elsewhere")


async def test_nodes_with_other_tokens_say_what_is_wrong(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first = await nodes.start("a", lease_ms=1000)
        second = await nodes.start("b", lease_ms=1000, cluster_token="another-secret-altogether")
        one, two = await nodes.client(first), await nodes.client(second)
        refused = await two.prompt(await one.new_session(), "hello")
        assert "cluster_token must be the same" in refused["error"]["message"], refused
        assert TOKEN not in first.log_text() + second.log_text() + str(refused)


@pytest.mark.promise("P-cluster-10")
async def test_a_client_cannot_name_the_address_that_a_node_forwards_to(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """Only what a node has registered itself is dialled; a session's record and a client's words are no addresses."""
    async with cluster(postgres, tmp_path) as nodes:
        second = await nodes.start("b", lease_ms=1000)
        two = await nodes.client(second)
        heard = asyncio.Event()

        async def trap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.set()
            writer.close()

        server = await asyncio.start_server(trap, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        session = await two.new_session(metadata={"node": address, "owner": address}, node=address)
        meta = {"node": address, "url": address, "agent": "mock"}
        for name in (session, address, f"{session}@{address}"):
            await two.prompt(name, "hello", **meta)
        assert (await two.http.post(f"/v1/nodes/{address.replace('/', '%2F')}/drain")).status_code == 404
        server.close()
        assert not heard.is_set()


async def test_a_slow_reader_at_another_node_gets_everything_and_delays_nobody(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b", connection_memory_bytes=65536)
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        await two.prompt(session, "chunks 1 1")
        await prompt_later(two, session, "chunks 4000 200")
        await until_said(one, session, "chunks 4000 200")
        assert (await one.prompt(session, "chunks 1 1"))["result"]["stopReason"] == "end_turn"
        seen = await nodes.stream(two)  # begins to read when all has been said
        await seen.wait_until(lambda e: len(chunks(e)) == 4_002)
        assert [int(text.split()[0]) for text in chunks(seen)[1:-1]] == list(range(1, 4_001))
        assert seen.ids == list(range(1, len(seen.ids) + 1))


async def test_links_and_forwarded_requests_use_tls_and_believe_only_known_authorities(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    key, cert = await asyncio.to_thread(make_certificate, tmp_path)
    async with cluster(postgres, tmp_path) as nodes, tls_proxy(key, cert) as front:
        first = await nodes.start("a", node_url=front.url)
        front.target = first.port
        second = await nodes.start("b", node_ca_file=cert)
        third = await nodes.start("c", lease_ms=1000)
        one, two, three = [await nodes.client(node) for node in (first, second, third)]
        session = await one.new_session()
        assert (await two.prompt(session, "chunks 3 1"))["result"]["stopReason"] == "end_turn"
        assert (await two.http.get("/v1/fs/stat", params={"path": "/", "node": "a"})).status_code == 200
        async with watching(second, await start_terminal(first, "cat"), "?node=a") as screen:
            await screen.frame("ready")
        refused = await three.prompt(session, "hello")
        assert "certificate" in refused["error"]["message"], refused
        assert (await three.http.get("/v1/fs/stat", params={"path": "/", "node": "a"})).status_code == 503
