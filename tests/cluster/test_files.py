"""Files, processes and the state of a session, asked for at a node that has them not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from sandbox_agent.core.users import Right
from sandbox_agent.http.access.tokens import TokenFile
from support.cluster import TOKEN, chunks, cluster
from support.postgres import PostgresServer

pytestmark = pytest.mark.timeout(120)  # several servers each, which a busy machine starts slowly


async def test_files_and_processes_of_a_node_are_reached_at_another(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one, two = await nodes.client(first), await nodes.client(second)
        (tmp_path / "work").mkdir()
        session = await one.new_session(str(tmp_path / "work"))
        path = {"path": str(tmp_path / "big.bin"), "node": "a"}
        content = bytes(range(256)) * 8192
        assert (await two.http.put("/v1/fs/file", params=path, content=content)).status_code == 200
        assert (await two.http.get("/v1/fs/file", params=path)).content == content
        part = await two.http.get("/v1/fs/file", params=path, headers={"Range": "bytes=1-3"})
        assert (part.status_code, part.content) == (206, b"\x01\x02\x03")
        ran = await two.http.post("/v1/processes/run", params={"node": "a"}, json={"command": "pwd"})
        assert ran.status_code == 200, ran.text
        started = await two.http.post("/v1/processes", params={"node": "a"}, json={"command": "sleep", "args": ["60"]})
        listed = (await one.http.get("/v1/processes")).json()["processes"]
        assert [each["id"] for each in listed] == [started.json()["id"]]
        assert (await two.http.get("/v1/processes")).json()["processes"] == []
        written = {"path": "note.txt", "sessionId": session}
        await two.http.put("/v1/fs/file", params=written, content=b"hello")
        assert (tmp_path / "work" / "note.txt").read_text() == "hello"
        read = await two.call("_sandboxagent/fs/read_file", {"sessionId": session, "path": "note.txt"})
        assert read["size"] == 5
        missing = await two.http.get("/v1/fs/file", params={"path": "/nowhere", "node": "a"})
        assert missing.status_code == 404
        assert (await two.http.get("/v1/fs/stat", params={"path": "/", "node": "nobody"})).status_code == 404


async def test_a_session_is_shown_as_its_own_node_knows_it(postgres: PostgresServer, tmp_path: Path) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        first, second = await nodes.start("a"), await nodes.start("b")
        one, two = await nodes.client(first), await nodes.client(second)
        session = await one.new_session()
        seen = await nodes.stream(one)
        prompting = asyncio.create_task(one.prompt(session, "slow 4000"))
        await seen.wait_until(chunks)
        shown = (await two.http.get(f"/v1/sessions/{session}")).json()
        assert (shown["node"], shown["isBusy"], shown["isLive"]) == ("a", True, True)
        await two.notify("session/cancel", {"sessionId": session})
        assert (await prompting)["result"]["stopReason"] == "cancelled"


async def test_the_right_of_a_user_holds_at_every_node_and_nobody_can_claim_another(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with cluster(postgres, tmp_path) as nodes:
        reader = TokenFile(tmp_path / "b" / "data").add("the-reader", Right.READ)
        first, second = await nodes.start("a", token="owner"), await nodes.start("b", token="owner")
        one = await nodes.client(first, token="owner")
        session = await one.new_session()
        two = await nodes.client(second, token=reader)
        assert (await two.call("_sandboxagent/session/get", {"sessionId": session}))["sessionId"] == session
        refused = await two.prompt(session, "hello")
        assert refused["error"]["data"]["requiredRight"] == "prompt"
        assert (await two.http.get("/v1/fs/stat", params={"path": "/", "node": "a"})).status_code == 403
        async with httpx.AsyncClient(base_url=first.url, trust_env=False) as http:
            claim = {"X-Sandbox-Agent-User": "admin"}
            for bearer in (reader, "wrong", "owner2"):
                asked = {"Authorization": f"Bearer {bearer}", **claim}
                assert (await http.get("/v1/fs/stat?path=/", headers=asked)).status_code == 401
            as_node = {"Authorization": f"Bearer {TOKEN}"}
            assert (await http.get("/v1/fs/stat?path=/", headers=as_node)).status_code == 401
            reading = {**as_node, "X-Sandbox-Agent-User": "read somebody"}
            assert (await http.get("/v1/fs/stat?path=/", headers=reading)).status_code == 403
            assert (await http.get("/v1/sessions", headers=reading)).status_code == 200
