"""Installing an agent through the SDK, with progress on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.agents.surroundings import current_platform
from sandbox_agent.errors import InstallError, UnknownAgent
from support.loopback_site import TINY_AGENT, LoopbackSite, binary_entry
from support.server import running_server

AGENT = "gemini"


async def test_each_step_of_an_install_is_told_and_the_end_is_what_was_installed(tmp_path: Path) -> None:
    with LoopbackSite() as site:
        archive = site.publish_archive("/tiny.tar.gz", {"bin/tiny": TINY_AGENT})
        registry = site.publish_registry(binary_entry(AGENT, archive, platform=current_platform()))
        env = {"SANDBOX_AGENT_ACP_REGISTRY_URL": registry, "PATH": "/usr/bin:/bin"}
        async with (
            running_server(tmp_path, "--no-token", env=env) as server,
            SandboxAgent.connect(server.url) as sandbox,
        ):
            told: list[dict[str, Any]] = []
            done = await sandbox.agents.install(AGENT, progress=told.append)
            assert list(dict.fromkeys(step["step"] for step in told)) == [
                "plan",
                "download",
                "unpack",
                "verify",
                "done",
            ]
            assert (done["alreadyInstalled"], done["source"]) == (False, "registry")
            again = await sandbox.agents.install(AGENT, progress=told.append)
            assert again["alreadyInstalled"] is True


async def test_an_install_that_fails_on_its_way_raises_what_the_server_said(tmp_path: Path) -> None:
    with LoopbackSite() as site:
        registry = site.publish_registry(
            binary_entry(AGENT, f"{site.url}/not-there.tar.gz", platform=current_platform())
        )
        env = {"SANDBOX_AGENT_ACP_REGISTRY_URL": registry, "PATH": "/usr/bin:/bin"}
        async with (
            running_server(tmp_path, "--no-token", env=env) as server,
            SandboxAgent.connect(server.url) as sandbox,
        ):
            with pytest.raises(InstallError):
                await sandbox.agents.install(AGENT, progress=lambda step: None)
            with pytest.raises(UnknownAgent):
                await sandbox.agents.install("nobody", progress=lambda step: None)
