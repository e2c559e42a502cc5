"""An agent that is not there is installed by the `initialize` that asks for it, through a real server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox_agent.agents.surroundings import current_platform
from support.loopback_site import TINY_AGENT, LoopbackSite, Page, binary_entry
from support.rpc import connected
from support.server import running_server
from support.waiting import until

# an agent of the manifest whose archive the registry of these tests lists
AGENT = "gemini"
LONG = 60.0


@pytest.fixture
def site() -> Iterator[LoopbackSite]:
    with LoopbackSite() as site:
        yield site


@pytest.fixture
def env(site: LoopbackSite) -> dict[str, str]:
    archive = site.publish_archive("/tiny.tar.gz", {"bin/tiny": TINY_AGENT})
    registry = site.publish_registry(binary_entry(AGENT, archive, platform=current_platform()))
    return {"SANDBOX_AGENT_ACP_REGISTRY_URL": registry, "PATH": "/usr/bin:/bin"}


def stall(site: LoopbackSite) -> Page:
    page = site.pages["/tiny.tar.gz"]
    page.stalled = threading.Event()
    return page


async def initialize(http: httpx.AsyncClient, agent: str = AGENT) -> httpx.Response:
    params = {"protocolVersion": 1, "_meta": {"sandboxagent.dev": {"agent": agent}}}
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    return await http.post("/v1/rpc", json=message)


def web(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=LONG, trust_env=False)


def problem(answer: httpx.Response) -> dict[str, Any]:
    body: dict[str, Any] = answer.json()
    return {**body, "kind": body["type"].rpartition(":")[2]}


@pytest.mark.promise("P-install-1")
async def test_initialize_installs_the_agent_and_takes_longer_than_the_request_limit(
    site: LoopbackSite, env: dict[str, str], tmp_path: Path
) -> None:
    page = stall(site)
    env = {**env, "SANDBOX_AGENT_ACP_REQUEST_TIMEOUT_MS": "100"}
    async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
        waiting = asyncio.create_task(initialize(http))
        assert await asyncio.to_thread(page.reached.wait, LONG)
        async with connected(server.url, "mock") as client:  # nobody else waits
            assert (await client.prompt(await client.new_session(), "hello"))["result"]["stopReason"] == "end_turn"
        await asyncio.sleep(0.3)  # three times the limit for other requests
        assert not waiting.done()
        assert page.stalled is not None
        page.stalled.set()
        answer = await waiting
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["protocolVersion"] == 1
        listed = (await http.get(f"/v1/agents/{AGENT}")).json()
        assert (listed["installed"], listed["source"], listed["version"]) == (True, "registry", "1.0.0")


@pytest.mark.promise("P-install-1")
async def test_ten_clients_at_once_make_one_install(site: LoopbackSite, env: dict[str, str], tmp_path: Path) -> None:
    page = stall(site)
    async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
        waiting = [asyncio.create_task(initialize(http)) for _ in range(10)]
        assert await asyncio.to_thread(page.reached.wait, LONG)
        assert page.stalled is not None
        page.stalled.set()
        answers = await asyncio.gather(*waiting)
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.headers["x-acp-connection-id"] for answer in answers}) == 10
    assert site.hits["/tiny.tar.gz"] == 1


async def test_an_install_goes_on_when_the_client_that_wanted_it_leaves(
    site: LoopbackSite, env: dict[str, str], tmp_path: Path
) -> None:
    page = stall(site)
    async with running_server(tmp_path, "--no-token", env=env) as server:
        async with web(server.url) as http:
            waiting = asyncio.create_task(initialize(http))
            assert await asyncio.to_thread(page.reached.wait, LONG)
            waiting.cancel()
        assert page.stalled is not None
        page.stalled.set()
        await until((tmp_path / "data/agents" / AGENT / "current").exists, deadline=LONG)


@pytest.mark.promise("P-install-4")
async def test_require_preinstall_refuses_with_the_command_that_installs(
    site: LoopbackSite, env: dict[str, str], tmp_path: Path
) -> None:
    env = {**env, "SANDBOX_AGENT_REQUIRE_PREINSTALL": "1"}
    async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
        told = problem(await initialize(http))
        assert (told["kind"], told["status"]) == ("agent_not_installed", 409)
        assert told["command"] == f"sandbox-agent install-agent {AGENT}"
        assert told["command"] in told["detail"]
        installed = await http.post(f"/v1/agents/{AGENT}/install")
        assert installed.status_code == 200, installed.text
        assert (await initialize(http)).status_code == 200


@pytest.mark.promise("P-install-2")
async def test_a_server_killed_in_the_middle_twice_leaves_nothing_that_harms_the_third(
    site: LoopbackSite, env: dict[str, str], tmp_path: Path
) -> None:
    for _ in range(2):
        page = stall(site)
        page.reached.clear()
        async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
            waiting = asyncio.create_task(initialize(http))
            assert await asyncio.to_thread(page.reached.wait, LONG)
            server.kill()
            with pytest.raises(httpx.TransportError):
                await waiting
        assert page.stalled is not None
        page.stalled.set()
    page.stalled = None
    async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
        answer = await initialize(http)
        assert answer.status_code == 200, answer.text
        shelf = tmp_path / "data/agents" / AGENT
        assert {path.name for path in shelf.iterdir() if path.name != ".lock"} == {"current", "1.0.0"}


async def test_a_stop_in_the_middle_of_an_install_is_quick_and_tells_the_client(
    site: LoopbackSite, env: dict[str, str], tmp_path: Path
) -> None:
    page = stall(site)
    async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
        waiting = asyncio.create_task(initialize(http))
        assert await asyncio.to_thread(page.reached.wait, LONG)
        assert await server.stop() == 0
        answer = await waiting
        assert (answer.status_code, problem(answer)["kind"]) == (503, "shutting_down")


async def test_a_lying_registry_is_a_problem_and_the_next_try_may_succeed(
    site: LoopbackSite, env: dict[str, str], tmp_path: Path
) -> None:
    archive = site.url("/tiny.tar.gz")
    lie = binary_entry(AGENT, archive, platform=current_platform(), sha256="0" * 64)
    site.publish_registry(lie)
    async with running_server(tmp_path, "--no-token", env=env) as server, web(server.url) as http:
        told = problem(await initialize(http))
        assert (told["kind"], told["status"], told["retryable"]) == ("install_error", 502, True)
        assert "has checksum" in told["detail"]
        assert not (await http.get(f"/v1/agents/{AGENT}")).json()["installed"]
        site.publish_registry(binary_entry(AGENT, archive, platform=current_platform()))
        assert (await initialize(http)).status_code == 200


async def test_with_the_registry_down_and_no_runtime_the_problem_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    env = {"SANDBOX_AGENT_ACP_REGISTRY_URL": "http://127.0.0.1:9/registry.json", "PATH": str(tmp_path / "empty")}
    async with running_server(tmp_path / "home", "--no-token", env=env) as server, web(server.url) as http:
        told = problem(await initialize(http))
        assert (told["kind"], told["status"]) == ("install_impossible", 409)
        assert "Node.js" in told["detail"]
        assert problem(await initialize(http, "no-such-agent"))["kind"] == "unknown_agent"
