"""`/v1/agents`: what is said of an agent without starting it, and in the words of earlier clients."""

from __future__ import annotations

from pathlib import Path

import httpx

from support.previous_api import TYPES
from support.rpc import connected
from support.server import Server, running_server

EARLIER = TYPES["AgentCapabilities"]
"""Booleans, also in the npm package `sandbox-agent` 0.4.2."""


async def test_models_and_modes_are_told_from_what_is_remembered_and_nothing_is_started(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--no-token") as server, connected(server.url) as client:
        unknown = (await client.http.get("/v1/agents/mock")).json()
        assert (unknown["models"], unknown["modes"], unknown["configOptions"]) == (None, None, None)
        await client.new_session()
        after_a_session = (await client.http.get("/v1/agents/mock")).json()
        assert [model["id"] for model in after_a_session["models"]] == ["mock-small", "mock-large"]
        await server.stop()
    async with running_server(tmp_path, "--no-token") as server, httpx.AsyncClient(base_url=server.url) as http:
        agents = (await http.get("/v1/agents")).json()["agents"]
        [mock] = [agent for agent in agents if agent["id"] == "mock"]
        assert mock["serverStatus"]["status"] == "stopped"
        assert [model["id"] for model in mock["models"]] == ["mock-small", "mock-large"]
        assert [mode["id"] for mode in mock["modes"]] == ["ask", "code"]
        assert [option["id"] for option in mock["configOptions"]] == ["mode", "model", "effort"]
        assert all(agent["models"] is None for agent in agents if not agent["installed"])


async def test_capabilities_have_the_booleans_that_earlier_clients_read_beside_acps_own(server: Server) -> None:
    async with connected(server.url) as client:
        found = (await client.http.get("/v1/agents/mock")).json()["capabilities"]
        said = client.initialized["agentCapabilities"]
        assert {name: type(found[name]) for name in EARLIER} == dict.fromkeys(EARLIER, bool)
        assert found["images"] == said["promptCapabilities"]["image"]
        assert found["fileAttachments"] == said["promptCapabilities"]["embeddedContext"]
        assert found["loadSession"] == said["loadSession"]
        for agent in (await client.http.get("/v1/agents")).json()["agents"]:
            assert set(EARLIER) <= agent["capabilities"].keys(), "before its first start too"


async def test_an_unknown_agent_is_a_404_which_earlier_clients_look_up_in_the_list(server: Server) -> None:
    async with connected(server.url) as client:
        answer = await client.http.get("/v1/agents/nobody?config=true&no_cache=true")
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:sandbox-agent:error:unknown_agent")
