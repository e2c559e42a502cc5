"""Libraries of clients, as they are published: an agent of a server is one more command, or one more address."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from support.node import CLIENTS, installed, run_node, run_program, steps
from support.python_clients import installed_python, python_of
from support.server import Server, running_server


@pytest.fixture(scope="session")
def libraries() -> Path:
    """acp-factory, @mcpc-tech/acp-ai-provider with the AI SDK that it is for, and use-acp with React."""
    return installed("libraries")


def command_of(server: Server) -> list[str]:
    """An agent of the server, for clients that start agents."""
    return [sys.executable, "-m", "sandbox_agent", "stdio", "--endpoint", server.url, "--agent", "mock"]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("library", "said"),
    [
        (
            "acp-ai-provider",
            ["remember the provider", "1. remember the provider", "1. remember the provider\n2. recall"],
        ),
        ("acp-factory", ["remember the factory", "The tool ran.", "1. remember the factory\n2. tool ls", "again"]),
    ],
)
async def test_a_library_has_a_conversation_of_several_turns_and_takes_it_up_again(
    libraries: Path, tmp_path: Path, library: str, said: list[str]
) -> None:
    async with running_server(tmp_path / "server") as server:
        command = ["node", str(libraries / "conversation.mjs"), library, str(tmp_path), *command_of(server)]
        told = await run_program(command, cwd=tmp_path, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    heard = json.loads(told.strip().splitlines()[-1])
    if library == "acp-factory":  # it lets go of updates that come just before an answer, of a local agent too
        assert len(heard) == len(said)
        assert all(whole.startswith(part) for whole, part in zip(said, heard, strict=True))
        assert any(heard)
    else:
        assert heard == said


@pytest.mark.timeout(400)
async def test_the_hook_of_use_acp_does_it_all_over_its_websocket(libraries: Path, open_server: Server) -> None:
    address = open_server.url.replace("http", "ws", 1) + "/acp?agent=mock"
    output = await run_node(libraries, "use-acp.mjs", address, "/tmp")
    assert steps(output) == (
        "initialize, session/new, prompt, permission, cancel, prompt after cancel, session/load, permission after load"
    ).split(", ")


@pytest.mark.timeout(400)
async def test_acp_client_does_it_all_with_an_agent_of_a_server(tmp_path: Path) -> None:
    packages = installed_python("acp_client")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(packages)}
    async with running_server(tmp_path / "server") as server:
        command = [sys.executable, str(CLIENTS / "acp_client" / "conversation.py"), str(tmp_path), *command_of(server)]
        output = await run_program(command, cwd=tmp_path, env=env)
    assert steps(output) == (
        "session/new, prompt, permission, cancel, prompt after cancel, session/load, permission after load"
    ).split(", ")


@pytest.mark.timeout(1200)
@pytest.mark.skipif(os.environ.get("FULL") != "1", reason="485 MB of packages: with FULL=1 only")
async def test_the_agent_of_the_openhands_sdk_does_it_all_with_an_agent_of_a_server(tmp_path: Path) -> None:
    python = python_of("3.12")
    packages = installed_python("openhands", python)
    (tmp_path / "work").mkdir()
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OPENHANDS_SUPPRESS_BANNER": "1"}
    async with running_server(tmp_path / "server") as server:
        # its packages are for its own Python: the agent that it starts must not see them
        agent = ["env", "-u", "PYTHONPATH", *command_of(server)]
        command = [python, str(CLIENTS / "openhands" / "conversation.py"), str(tmp_path), *agent]
        env = {**surroundings, "PYTHONPATH": str(packages), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        output = await run_program(command, cwd=tmp_path, env=env, deadline=300)
    assert steps(output) == "prompt, permission, cancel, prompt after cancel, session/load".split(", ")
