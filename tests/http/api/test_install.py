"""Installing over HTTP and ACP: one answer, or progress on the way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from sandbox_agent.agents.surroundings import current_platform
from support.loopback_site import TINY_AGENT, LoopbackSite, binary_entry
from support.rpc import connected
from support.server import running_server
from support.waiting import until

AGENT = "gemini"
SSE = {"Accept": "text/event-stream"}
ARTIFACT = {"kind", "name", "version", "path", "source", "sizeBytes"}


@pytest.fixture
def site() -> Iterator[LoopbackSite]:
    with LoopbackSite() as site:
        yield site


@pytest.fixture
def env(site: LoopbackSite) -> dict[str, str]:
    archive = site.publish_archive("/tiny.tar.gz", {"bin/tiny": TINY_AGENT})
    registry = site.publish_registry(binary_entry(AGENT, archive, platform=current_platform()))
    return {"SANDBOX_AGENT_ACP_REGISTRY_URL": registry, "PATH": "/usr/bin:/bin"}


def web(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=50, trust_env=False)


def events_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    blocks = [block for block in text.split("\n\n") if block.startswith("event: ")]
    pairs = [block.split("\n", 1) for block in blocks]
    return [(name.removeprefix("event: "), msgspec.json.decode(data.removeprefix("data: "))) for name, data in pairs]


async def test_an_install_answers_with_its_artifacts_in_both_spellings(env: dict[str, str], tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
        first = (await http.post(f"/v1/agents/{AGENT}/install")).json()
        assert (first["alreadyInstalled"], first["already_installed"]) == (False, False)
        [artifact] = first["artifacts"]
        assert set(artifact) == ARTIFACT
        assert (artifact["kind"], artifact["version"], artifact["source"]) == ("agent_process", "1.0.0", "registry")
        assert artifact["sizeBytes"] > 0
        assert Path(artifact["path"]).is_dir()
        again = (await http.post(f"/v1/agents/{AGENT}/install", json={})).json()
        assert (again["alreadyInstalled"], again["artifacts"]) == (True, first["artifacts"])
        renewed = (await http.post(f"/v1/agents/{AGENT}/install", json={"reinstall": True})).json()
        assert renewed["already_installed"] is False


async def test_progress_comes_as_events_that_end_with_done(env: dict[str, str], tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
        answer = await http.post(f"/v1/agents/{AGENT}/install", headers=SSE)
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = events_of(answer.text)
        assert {name for name, _ in events[:-1]} == {"progress"}
        steps = [body["step"] for name, body in events if name == "progress"]
        assert list(dict.fromkeys(steps)) == ["plan", "download", "unpack", "verify", "done"]
        assert events[-1][0] == "done"
        assert events[-1][1]["alreadyInstalled"] is False
        again = events_of((await http.post(f"/v1/agents/{AGENT}/install", headers=SSE)).text)
        assert [(name, body["alreadyInstalled"]) for name, body in again] == [("done", True)]


async def test_a_failure_on_the_way_is_an_error_event_and_one_before_it_a_problem(
    site: LoopbackSite, env: dict[str, str], tmp_path: Path
) -> None:
    lie = binary_entry(AGENT, site.url("/tiny.tar.gz"), platform=current_platform(), sha256="0" * 64)
    site.publish_registry(lie)
    async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
        name, body = events_of((await http.post(f"/v1/agents/{AGENT}/install", headers=SSE)).text)[-1]
        assert (name, body["status"], body["type"]) == ("error", 502, "urn:sandbox-agent:error:install_error")
        unknown = await http.post("/v1/agents/no-such-agent/install", headers=SSE)
        assert unknown.status_code == 404 or events_of(unknown.text)[-1][1]["status"] == 404
        amp = await http.post("/v1/agents/amp/install", headers=SSE)
        assert (amp.status_code, amp.json()["type"]) == (409, "urn:sandbox-agent:error:install_impossible")
        option = {"agentProcessVersion": "--global"}
        assert (await http.post(f"/v1/agents/{AGENT}/install", json=option)).status_code == 400


async def test_an_install_goes_on_when_the_one_who_watched_it_leaves(
    site: LoopbackSite, env: dict[str, str], tmp_path: Path
) -> None:
    page = site.pages["/tiny.tar.gz"]
    page.stalled = threading.Event()
    async with running_server(tmp_path, "--no-token", env=env) as server:
        async with web(server.url) as http, http.stream("POST", f"/v1/agents/{AGENT}/install", headers=SSE) as answer:
            assert answer.status_code == 200
            assert await asyncio.to_thread(page.reached.wait, 50)
        page.stalled.set()
        await until((tmp_path / "data/agents" / AGENT / "current").exists)


async def test_a_client_that_speaks_acp_only_lists_and_installs(
    site: LoopbackSite, env: dict[str, str], tmp_path: Path
) -> None:
    page = site.pages["/tiny.tar.gz"]
    page.stalled = threading.Event()
    async with (
        running_server(tmp_path, "--no-token", env=env) as server,
        connected(server.url) as client,
        client.stream() as events,
    ):
        extensions = client.initialized["_meta"]["sandboxagent.dev"]["extensions"]
        assert {"_sandboxagent/agent/list", "_sandboxagent/agent/install"} < set(extensions)

        async def listed(name: str) -> dict[str, Any]:
            agents = (await client.call("_sandboxagent/agent/list"))["agents"]
            return next(agent for agent in agents if agent["id"] == name)

        assert (await listed("mock"))["running"] is True
        assert (await listed(AGENT))["installed"] is False
        installing = asyncio.create_task(client.call("_sandboxagent/agent/install", {"agent": AGENT}))
        assert await asyncio.to_thread(page.reached.wait, 50)
        assert (await listed(AGENT))["installing"]["step"] == "download"
        page.stalled.set()
        result = await installing
        assert (result["alreadyInstalled"], result["already_installed"]) == (False, False)
        assert set(result["artifacts"][0]) == ARTIFACT
        told = [m["params"] for m in events.messages if m.get("method") == "_sandboxagent/agent/install_progress"]
        assert told[0] == {**told[0], "agent": AGENT, "step": "plan"}
        here = await listed(AGENT)
        assert (here["installed"], here["source"], here["installing"]) == (True, "registry", None)
        wrong = await client.request("_sandboxagent/agent/install", {"agent": 5})
        assert wrong["error"]["code"] == -32602
        amp = await client.request("_sandboxagent/agent/install", {"agent": "amp"})
        assert "does not speak ACP" in amp["error"]["message"]
