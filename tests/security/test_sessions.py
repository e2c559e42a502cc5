"""One client against another: ids that are guessed, taken over, or answered by those who were not asked."""

from __future__ import annotations

from pathlib import Path

from support.rpc import connected, is_permission, open_client, option_of_kind
from support.server import running_server


async def test_guessed_ids_find_nothing(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        for guess in ("conn_1", "0", "../x", rpc.id[:-1], rpc.id + "x"):
            stream = await rpc.http.get(
                "/v1/rpc", headers={"X-ACP-Connection-Id": guess, "Accept": "text/event-stream"}
            )
            assert stream.status_code == 404
        for guess in ("1", "mock-0", "%2e%2e", "a%2Fb"):
            assert (await rpc.http.get(f"/v1/sessions/{guess}")).status_code == 404


async def test_connection_ids_are_long_and_random(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        ids = {(await open_client(rpc.http)).id for _ in range(20)}
        assert len(ids) == 20
        assert min(map(len, ids)) >= 24


async def test_an_event_id_of_another_connection_is_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as one:
        other = await open_client(one.http)
        session = await one.new_session(str(tmp_path))
        await one.prompt(session, "chunks 50 5")
        stolen = await one.http.get(
            "/v1/rpc",
            headers={"X-ACP-Connection-Id": other.id, "Accept": "text/event-stream", "Last-Event-ID": "40"},
        )
        assert stolen.status_code == 400


async def test_a_permission_is_not_answered_by_one_who_was_not_asked_and_only_once(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as owner:
        stranger = await open_client(owner.http)
        session = await owner.new_session(str(tmp_path))
        async with owner.stream() as events:
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "tool ls"}]}
            message = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": prompt}
            await owner.post(message, Prefer="respond-async")
            asked = await events.wait_for(is_permission)
            await stranger.answer(asked, option_of_kind(asked, "allow_once"))
            pending = (await owner.http.get(f"/v1/sessions/{session}")).json()["pendingPermissions"]
            assert [request["requestId"] for request in pending] == [asked["id"]]
            await owner.answer(asked, option_of_kind(asked, "reject_once"))
            await owner.answer(asked, option_of_kind(asked, "allow_once"))
            done = await events.wait_for(lambda m: m.get("id") == "p" and "result" in m)
            assert done["result"]["stopReason"] == "end_turn"
            statuses = [update.get("status") for update in events.updates("tool_call_update")]
            assert "failed" in statuses
            assert "completed" not in statuses
            after = (await owner.http.get(f"/v1/sessions/{session}")).json()
            assert after["pendingPermissions"] == []
