"""Sessions that are named by clients, at several real nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.cluster import cluster
from support.postgres import PostgresServer
from support.rpc import RpcClient

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly

_THIEF = """
    INSERT INTO sandbox_agent.nodes (id, incarnation, expires) VALUES ('thief', 1, now() + interval '1 hour');
    CREATE FUNCTION steal() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.node := 'thief'; NEW.incarnation := 1; RETURN NEW; END $$;
    CREATE TRIGGER steal BEFORE INSERT ON sandbox_agent.reserved_aliases FOR EACH ROW EXECUTE FUNCTION steal();
"""
"""Has another node take every reservation over as soon as it is made, as after a long pause."""


async def ask(client: RpcClient, alias: str) -> dict[str, Any]:
    meta = {"sandboxagent.dev": {"requestedSessionId": alias}}
    return await client.request("session/new", {"cwd": "/tmp", "mcpServers": [], "_meta": meta})


async def holders(client: RpcClient, alias: str) -> list[str]:
    sessions = (await client.http.get("/v1/sessions", params={"limit": 1000})).json()["sessions"]
    return [each["sessionId"] for each in sessions if each["alias"] == alias]


@pytest.mark.promise("P-cluster-12")
async def test_clients_that_use_an_alias_at_several_nodes_at_once_make_one_session(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        clients = [await nodes.client(await nodes.start(name)) for name in "abc"]
        for number in range(40):
            alias = f"alias-{number}"
            answers = await asyncio.gather(*(ask(client, alias) for client in clients))
            made = [answer["result"]["sessionId"] for answer in answers if "result" in answer]
            refused = [answer["error"] for answer in answers if "error" in answer]
            assert await holders(clients[0], alias) == made
            assert len(made) == 1
            late = await ask(clients[number % 3], alias)  # as at a server that stands alone
            assert refused == [late["error"]] * 2
            assert late["error"]["code"] == -32009


async def test_one_whose_alias_was_taken_over_meanwhile_is_told_so_and_nothing_is_kept(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        client = await nodes.client(await nodes.start("a"))
        await asyncio.to_thread(postgres.sql, _THIEF, nodes.database_name)
        refused = await ask(client, "mine")
        assert (refused["error"]["code"], "'mine' exists already" in refused["error"]["message"]) == (-32009, True)
        assert await holders(client, "mine") == []
        undo = (
            "DROP TRIGGER steal ON sandbox_agent.reserved_aliases; DELETE FROM sandbox_agent.nodes WHERE id = 'thief'"
        )
        await asyncio.to_thread(postgres.sql, undo, nodes.database_name)
        session = (await ask(client, "mine"))["result"]["sessionId"]
        assert await holders(client, "mine") == [session]
        assert (await client.prompt("mine", "hello"))["result"]["stopReason"] == "end_turn"
