"""Health, agents, sessions, transcripts, logs and metrics, over a server with real agents."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox_agent.version import __version__
from support.rpc import RpcClient, connected, is_permission, open_client, option_of_kind
from support.served import empty_registry, problem
from support.server import running_server

BROKEN = f'[agents.broken]\ncommand = ["{sys.executable}", "-c", "import sys; sys.exit(\'no key\')"]\n'
OLD = f'[agents.old]\ncommand = ["{sys.executable}", "-m", "sandbox_agent.mock_agent", "--legacy-models"]\n'


async def read(rpc: RpcClient, path: str, **query: Any) -> Any:
    answer = await rpc.http.get(path, params=query, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def is_time(value: str) -> bool:
    return value.endswith("Z") and datetime.fromisoformat(value).tzinfo is not None


async def test_health_tells_version_store_and_who_runs(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        health = await read(rpc, "/v1/health")
    assert health["status"] == "ok"
    assert health["version"] == __version__
    assert health["uptimeMs"] >= 0
    assert (health["store"]["kind"], health["store"]["state"]) == ("sqlite", "ok")
    assert health["agentsRunning"] == ["mock"]
    assert health["connections"] == 1


async def test_agents_are_listed_with_what_they_said_and_how_they_are(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=BROKEN) as server, connected(server.url) as rpc:
        await rpc.new_session(str(tmp_path))
        agents = {agent["id"]: agent for agent in (await read(rpc, "/v1/agents"))["agents"]}
        mock = agents["mock"]
        assert mock["installed"]
        assert mock["source"] == "builtin"
        assert mock["capabilities"]["loadSession"] is True
        assert [model["id"] for model in mock["models"]] == ["mock-small", "mock-large"], "as the session was told"
        status = mock["serverStatus"]
        assert (status["status"], status["restartCount"], status["lastError"]) == ("running", 0, None)
        assert status["sessions"] == 1
        assert Path(f"/proc/{status['pid']}").exists()
        assert agents["broken"]["source"] == "custom"
        assert agents["broken"]["serverStatus"]["status"] == "stopped"
        one = await read(rpc, "/v1/agents/mock")
        assert {**one, "serverStatus": None} == {**mock, "serverStatus": None}
        unknown = await rpc.http.get("/v1/agents/unknown")
        assert problem(unknown) == "unknown_agent"
        assert "mock" in unknown.json()["known"]


async def test_an_agent_that_fails_shows_its_error_and_its_log(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=BROKEN) as server, connected(server.url) as rpc:
        asked = await read(rpc, "/v1/agents/broken", config="true")
        assert "broken" in asked["configError"]
        assert asked["models"] is None
        agent = await read(rpc, "/v1/agents/broken")
        assert agent["serverStatus"]["status"] == "error"
        assert "broken" in agent["serverStatus"]["lastError"]
        logs = await read(rpc, "/v1/agents/broken/logs", tail=10)
        assert (logs["lines"], logs["totalLines"]) == (["no key"], 1)


async def test_a_crash_is_counted_and_told(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        session = await rpc.new_session(str(tmp_path))
        await rpc.prompt(session, "crash 7")
        crashed = (await read(rpc, "/v1/agents/mock"))["serverStatus"]
        assert (crashed["status"], crashed["pid"]) == ("error", None)
        assert "7" in crashed["lastError"]
        await rpc.prompt(session, "hello")
        again = (await read(rpc, "/v1/agents/mock"))["serverStatus"]
        assert (again["status"], again["restartCount"]) == ("running", 1)


@pytest.mark.parametrize("agent", ["mock", "old"])
async def test_models_and_modes_are_asked_once_by_a_session_that_nobody_sees(tmp_path: Path, agent: str) -> None:
    async with running_server(tmp_path, config=OLD) as server, connected(server.url, agent) as rpc:
        first = await read(rpc, f"/v1/agents/{agent}", config="true")
        assert {"id", "name"} <= set(first["models"][0])
        assert first["modes"]
        assert first["configError"] is None
        assert (agent == "mock") == bool(first["configOptions"])
        again = await read(rpc, f"/v1/agents/{agent}", config="true")
        assert again["models"] == first["models"]
        assert (await read(rpc, "/v1/sessions"))["sessions"] == []
        assert again["serverStatus"]["sessions"] == 0
        assert list((tmp_path / "mock-state").glob("**/*.json")) == []


async def test_sessions_are_listed_filtered_and_paged(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    async with running_server(tmp_path, config=OLD) as server, connected(server.url) as rpc:
        made = [await rpc.new_session(str(tmp_path)) for _ in range(5)]
        other = await rpc.new_session(str(tmp_path / "one"), agent="old", title="Titled", requestedSessionId="alias")
        await rpc.call("_sandboxagent/session/terminate", {"sessionId": made[0]})
        everything = await read(rpc, "/v1/sessions")
        assert {s["sessionId"] for s in everything["sessions"]} == {*made, other}
        assert everything["nextCursor"] is None

        def ids(page: dict[str, Any]) -> list[str]:
            return [session["sessionId"] for session in page["sessions"]]

        assert ids(await read(rpc, "/v1/sessions", agent="old")) == [other]
        assert ids(await read(rpc, "/v1/sessions", cwd=str(tmp_path / "one"))) == [other]
        assert ids(await read(rpc, "/v1/sessions", ended="true")) == [made[0]]
        assert len(ids(await read(rpc, "/v1/sessions", ended="false"))) == 5
        page = await read(rpc, "/v1/sessions", limit=2)
        seen = ids(page)
        while page["nextCursor"] is not None:
            page = await read(rpc, "/v1/sessions", limit=2, cursor=page["nextCursor"])
            seen += ids(page)
        assert sorted(seen) == sorted([*made, other])
        for query in ({"limit": 0}, {"limit": "x"}, {"cursor": "garbage"}, {"ended": "perhaps"}):
            assert (await rpc.http.get("/v1/sessions", params=query)).status_code == 400


async def test_a_session_shows_what_waits_and_who_is_there(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        watcher = await open_client(rpc.http)
        session = await rpc.new_session(str(tmp_path), requestedSessionId="named")
        await watcher.call("session/resume", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        async with rpc.stream() as events:
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "tool ls"}]}
            message = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": prompt}
            await rpc.post(message, Prefer="respond-async")
            asked = await events.wait_for(is_permission)
            detail = await read(rpc, "/v1/sessions/named")
            assert detail["sessionId"] == session
            assert detail["isBusy"]
            assert detail["isLive"]
            (pending,) = detail["pendingPermissions"]
            assert pending["requestId"] == asked["id"]
            assert pending["params"]["options"] == asked["params"]["options"]
            attached = {c["connectionId"]: c for c in detail["attachedConnections"]}
            assert set(attached) == {rpc.id, watcher.id}
            assert attached[rpc.id]["isStreaming"]
            assert not attached[watcher.id]["isStreaming"]
            assert detail["eventCount"] > 0
            assert all(is_time(detail[name]) for name in ("createdAt", "updatedAt", "lastActivityAt"))
            await rpc.answer(asked, option_of_kind(asked, "allow_once"))
            await events.wait_for(lambda m: m.get("id") == "p")
            question = {**prompt, "prompt": [{"type": "text", "text": "question"}]}
            await rpc.post({**message, "id": "q", "params": question}, Prefer="respond-async")
            await events.wait_for(lambda m: m.get("method") == "_sandboxagent/session/request_question")
            detail = await read(rpc, f"/v1/sessions/{session}")
            assert detail["pendingPermissions"] == []
            assert len(detail["pendingQuestions"]) == 1
        assert problem(await rpc.http.get("/v1/sessions/unknown")) == "unknown_session"


async def test_a_transcript_is_a_file_in_either_format(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        session = await rpc.new_session(str(tmp_path), title="My talk")
        await rpc.prompt(session, "hello <script>")
        jsonl = await rpc.http.get(f"/v1/sessions/{session}/transcript")
        assert jsonl.headers["content-type"] == "application/x-ndjson"
        lines = [msgspec.json.decode(line) for line in jsonl.content.splitlines()]
        assert [line["sequence"] for line in lines] == list(range(1, len(lines) + 1))
        assert {"client", "agent"} <= {line["source"] for line in lines}
        markdown = await rpc.http.get(f"/v1/sessions/{session}/transcript", params={"format": "markdown"})
        assert markdown.headers["content-type"].startswith("text/markdown")
        assert markdown.text.startswith("# My talk")
        assert "## Turn 1" in markdown.text
        wrong = await rpc.http.get(f"/v1/sessions/{session}/transcript", params={"format": "pdf"})
        assert wrong.status_code == 400
        head = await rpc.http.head(f"/v1/sessions/{session}/transcript")
        assert (head.status_code, head.content) == (200, b"")


async def test_a_long_transcript_is_whole(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        session = await rpc.new_session(str(tmp_path))
        await rpc.prompt(session, "chunks 5000 50")
        jsonl = await rpc.http.get(f"/v1/sessions/{session}/transcript", timeout=60)
        chunks = [line for line in jsonl.content.splitlines() if b"agent_message_chunk" in line]
        assert len(chunks) == 5000


async def test_a_session_of_two_agents_must_be_told_apart(tmp_path: Path) -> None:
    mock = f'command = ["{sys.executable}", "-m", "sandbox_agent.mock_agent", "--counter-sessions"]\n'
    config = f"[agents.a]\n{mock}[agents.b]\n{mock}"
    env = {"SANDBOX_AGENT_MOCK_STATE": str(tmp_path / "state")}
    async with running_server(tmp_path, config=config, env=env) as server, connected(server.url, "a") as rpc:
        first = await rpc.new_session(str(tmp_path))
        second = await rpc.new_session(str(tmp_path), agent="b")
        assert first == second
        assert (await rpc.http.get(f"/v1/sessions/{first}")).status_code == 400
        assert (await read(rpc, f"/v1/sessions/{first}", agent="b"))["agent"] == "b"


async def test_install_of_what_is_there_changes_nothing(tmp_path: Path) -> None:
    async with running_server(tmp_path, env=empty_registry(tmp_path)) as server, connected(server.url) as rpc:
        plain = await rpc.http.post("/v1/agents/mock/install")
        assert plain.json()["already_installed"] is True
        with_body = await rpc.http.post("/v1/agents/mock/install", json={"reinstall": False})
        assert with_body.status_code == 200
        assert problem(await rpc.http.post("/v1/agents/unknown-agent-x/install")) == "unknown_agent"
        assert (await rpc.http.post("/v1/agents/mock/install", json={"reinstall": "x"})).status_code == 400


async def test_metrics_tell_of_requests_streams_events_agents_and_the_store(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, connected(server.url) as rpc:
        session = await rpc.new_session(str(tmp_path))
        async with rpc.stream() as events:
            await rpc.prompt(session, "chunks 10 5")
            await events.wait_until(lambda seen: len(seen.updates("agent_message_chunk")) == 10)
            answer = await rpc.http.get("/v1/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        found = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
        assert float(found['sandbox_agent_http_requests_total{method="POST",route="/v1/rpc",status="200"}']) == 3
        assert float(found['sandbox_agent_http_request_seconds_count{method="POST",route="/v1/rpc"}']) == 3
        assert float(found["sandbox_agent_streams"]) == 1
        assert float(found["sandbox_agent_connections"]) == 1
        assert float(found['sandbox_agent_agent_up{agent="mock"}']) == 1
        assert float(found['sandbox_agent_agent_restarts_total{agent="mock"}']) == 0
        assert float(found['sandbox_agent_agent_rss_bytes{agent="mock"}']) > 1 << 20
        assert float(found['sandbox_agent_events_total{agent="mock",direction="in"}']) >= 10
        assert float(found['sandbox_agent_events_total{agent="mock",direction="out"}']) >= 10
        assert float(found['sandbox_agent_prompts_queued{agent="mock"}']) == 0
        assert "sandbox_agent_store_pending_bytes" in found
        await rpc.http.get("/v1/one/that/is/not/there")
        assert 'route="other",status="410"' in (await rpc.http.get("/v1/metrics")).text


async def test_the_log_can_be_json(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--log-format", "json", "--access-log") as server, connected(server.url):
        pass
    lines = [msgspec.json.decode(line) for line in server.log_text().splitlines()]
    assert lines
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    assert any(line["logger"] == "sandbox_agent.access" for line in lines)
