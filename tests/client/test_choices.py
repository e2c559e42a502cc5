"""What does not exist is an error that lists what does: models, modes, permission modes, options."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.client.asking import PermissionRequest, _read_permission
from sandbox_agent.errors import InvalidParams
from support.server import running_server


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[SandboxAgent]:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        yield sandbox


async def test_a_typo_is_an_error_that_lists_what_there_is_and_leaves_no_open_session(sandbox: SandboxAgent) -> None:
    typos: list[tuple[dict[str, Any], str]] = [
        ({"model": "nope"}, "has no model 'nope'; available: mock-small, mock-large"),
        ({"mode": "nope"}, "has no mode 'nope'; available: "),
        ({"permission_mode": "alow"}, "'alow' is not known; available: ask, allow, reject, "),
        ({"mcp_servers": [{"name": "x", "command": "y"}]}, "a server of type stdio has name, command, args, env"),
        ({"colour": "red"}, "create_session does not know colour; it knows "),
    ]
    for options, said in typos:
        with pytest.raises(InvalidParams) as refused:
            await sandbox.create_session(agent="mock", cwd="/tmp", **options)
        assert said in str(refused.value)
    assert [known for known in await sandbox.list_sessions() if not known.ended] == []


async def test_what_exists_is_applied(sandbox: SandboxAgent) -> None:
    await sandbox.create_session(agent="mock", cwd="/tmp", model="mock-large", permission_mode={"edit": "allow"})


async def test_without_a_cwd_a_session_works_in_the_current_directory(
    sandbox: SandboxAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (await sandbox.create_session(agent="mock")).cwd == str(tmp_path)
    async with SandboxAgent.connect("http://sandbox.example:2468") as elsewhere:
        with pytest.raises(InvalidParams, match="give a cwd"):
            elsewhere._cwd(None)


def test_allowing_once_does_not_allow_always() -> None:
    always = {"optionId": "a", "name": "Always", "kind": "allow_always"}
    request = _request(always)
    assert request.allow() == {"outcome": {"outcome": "cancelled"}}
    assert request.allow(always=True)["outcome"]["optionId"] == "a"
    once = {"optionId": "o", "name": "Once", "kind": "allow_once"}
    assert _request(always, once).allow()["outcome"]["optionId"] == "o"


def _request(*options: dict[str, str]) -> PermissionRequest:
    return _read_permission({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": list(options)})
