"""MCP servers and skills of a directory: kept there, given to sessions there and below, named if they cannot be."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.node import require_tool
from support.noting import asked, noting_config
from support.rpc import RpcClient, connected
from support.served import problem
from support.server import Server, running_server

META = "sandboxagent.dev"
HTTP = {
    "protocolVersion": 1,
    "agentCapabilities": {"mcpCapabilities": {"http": True}, "sessionCapabilities": {"resume": {}}},
}


class Bench:
    def __init__(self, server: Server, rpc: RpcClient, http: httpx.AsyncClient, notes: Path) -> None:
        self.server = server
        self.rpc = rpc
        self.http = http
        self.notes = notes

    async def put(self, kind: str, directory: Path, name: str, config: Any) -> httpx.Response:
        query = {"directory": str(directory), ("mcpName" if kind == "mcp" else "skillName"): name}
        return await self.http.put(f"/v1/config/{kind}", params=query, json=config)

    async def new(self, cwd: Path, own: list[Any] | None = None, **meta: Any) -> dict[str, Any]:
        """What our part of the answer says; the agent's view is in `sent`."""
        params = {"cwd": str(cwd), "mcpServers": own or [], "_meta": {META: meta}}
        answer = await self.rpc.call("session/new", params)
        self.session = answer["sessionId"]
        ours: dict[str, Any] = answer["_meta"][META]
        return ours

    def sent(self) -> dict[str, Any]:
        """The servers of the newest session, by name, as the agent got them."""
        servers = asked(self.notes, "session/new")[-1]["mcpServers"]
        return {server["name"]: server for server in servers}


@asynccontextmanager
async def benched(tmp_path: Path, *flags: str, **env: str) -> AsyncIterator[Bench]:
    notes = tmp_path / "notes"
    notes.touch()
    config = noting_config(notes, HTTP) + 'skills = ".agents/skills"\n'
    async with (
        running_server(tmp_path / "home", *flags, config=config, env=env) as server,
        connected(server.url, "noting") as rpc,
        httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=60) as http,
    ):
        yield Bench(server, rpc, http, notes)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    (made / "below" / "deep").mkdir(parents=True)
    return made.resolve()


def skill(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir(parents=True)
    (made / "SKILL.md").write_text(f"---\nname: {name}\ndescription: tests {name}\n---\nDo it.\n")
    return made


async def test_entries_are_stored_read_listed_and_deleted(tmp_path: Path, work: Path) -> None:
    async with benched(tmp_path) as bench:
        config = {"type": "local", "command": "true", "args": ["a"], "env": {"K": "v"}}
        query = {"directory": str(work), "mcpName": "one"}
        assert problem(await bench.http.get("/v1/config/mcp", params=query)) == "not_found"
        assert (await bench.put("mcp", work, "one", config)).status_code == 204
        assert (await bench.http.get("/v1/config/mcp", params=query)).json() == config
        assert json.loads((work / ".sandbox-agent/config/mcp.json").read_text()) == {"one": config}
        listed = (await bench.http.get("/v1/config/mcp", params={"directory": str(work / "below")})).json()
        assert listed == {
            "entries": [{"name": "one", "directory": str(work), "trusted": True, "problem": None, "config": config}]
        }
        assert (await bench.http.delete("/v1/config/mcp", params=query)).status_code == 204
        assert (await bench.http.delete("/v1/config/mcp", params=query)).status_code == 204
        assert problem(await bench.http.get("/v1/config/mcp", params=query)) == "not_found"
        wrongs: list[Any] = [
            {"type": "weird"},
            {"command": "x"},
            {"type": "local"},
            {"type": "remote", "url": "no"},
            {"type": "local", "command": "x", "more": 1},
            [],
        ]
        for wrong in wrongs:
            assert problem(await bench.put("mcp", work, "two", wrong)) == "invalid_params"
        assert problem(await bench.put("mcp", Path("relative"), "two", config)) == "invalid_params"
        for bad in ({}, {"sources": [{"type": "github", "source": "not a repository"}]}):
            assert problem(await bench.put("skills", work, "s", bad)) == "invalid_params"


async def test_sessions_get_the_servers_of_the_nearest_directory_and_the_clients_own_win(
    tmp_path: Path, work: Path
) -> None:
    async with benched(tmp_path, WORDS_KEY="from the environment", API_TOKEN="s3cret-token-value") as bench:
        await bench.put("mcp", work, "far", {"type": "local", "command": "true"})
        await bench.put("mcp", work, "both", {"type": "local", "command": "true", "args": ["far"]})
        await bench.put("mcp", work / "below", "both", {"type": "stdio", "command": "true", "args": ["near"]})
        await bench.put("mcp", work / "below", "off", {"type": "local", "command": "true", "enabled": False})
        await bench.put(
            "mcp", work / "below", "keyed", {"type": "local", "command": "true", "env": {"KEY": "${WORDS_KEY}"}}
        )
        remote = {"type": "remote", "url": "https://mcp.example/x", "bearerTokenEnvVar": "API_TOKEN"}
        await bench.put("mcp", work / "below", "remote", remote)
        own = [{"name": "mine", "command": "true", "args": [], "env": []}]
        told = (await bench.new(work / "below" / "deep", own))["mcp"]
        sent = bench.sent()
        assert list(sent) == ["mine", "both", "keyed", "remote", "far"]
        assert sent["both"]["args"] == ["near"]
        assert sent["keyed"]["env"] == [{"name": "KEY", "value": "from the environment"}]
        assert sent["remote"]["headers"] == [{"name": "Authorization", "value": "Bearer s3cret-token-value"}]
        assert told["both"] == {"applied": True, "directory": str(work / "below")}
        assert "off" not in told
        shown = await bench.http.get(f"/v1/sessions/{bench.session}")
        assert list(shown.json()["mcp"]) == ["mine"]
        history = await bench.http.get(f"/v1/sessions/{bench.session}/transcript")
        database = b"".join(file.read_bytes() for file in (tmp_path / "home" / "data").glob("history*"))
        for secret in ("s3cret-token-value", "from the environment"):
            assert secret not in shown.text + history.text
            assert secret.encode() not in database
        again = [{"name": "both", "command": "true", "args": ["own"], "env": []}]
        told = (await bench.new(work / "below", again))["mcp"]
        assert bench.sent()["both"]["args"] == ["own"]
        assert told["both"] == {"applied": False, "reason": "the client has one of this name"}
        await bench.new(tmp_path)
        assert bench.sent() == {}


async def test_a_session_that_is_woken_gets_them_again(tmp_path: Path, work: Path) -> None:
    async with benched(tmp_path) as bench:
        await bench.put("mcp", work, "one", {"type": "local", "command": "true"})
        await bench.new(work)
        await bench.rpc.prompt(bench.session, "die")
        await bench.rpc.prompt(bench.session, "hello again")
        (resumed,) = asked(bench.notes, "session/resume")
        assert [server["name"] for server in resumed["mcpServers"]] == ["one"]


async def test_a_broken_server_is_named_and_does_not_stop_the_session(tmp_path: Path, work: Path) -> None:
    async with benched(tmp_path) as bench:
        await bench.put("mcp", work, "gone", {"type": "local", "command": "no-such-program"})
        await bench.put("mcp", work, "unset", {"type": "local", "command": "true", "env": {"A": "${NOT_SET}"}})
        await bench.put("mcp", work, "sse", {"type": "remote", "url": "http://127.0.0.1:9/", "transport": "sse"})
        await bench.put("mcp", work, "good", {"type": "local", "command": "true"})
        told = (await bench.new(work))["mcp"]
        assert list(bench.sent()) == ["good"]
        assert {name: ours["applied"] for name, ours in told.items()} == {
            "gone": False,
            "unset": False,
            "sse": False,
            "good": True,
        }
        assert "no-such-program" in told["gone"]["reason"]
        assert "NOT_SET" in told["unset"]["reason"]
        assert "sse" in told["sse"]["reason"]
        (work / ".sandbox-agent/config/mcp.json").write_text("{ nonsense")
        assert "mcp" not in await bench.new(work)


@pytest.mark.promise("P-process-7")
async def test_what_a_project_brings_along_is_not_run(tmp_path: Path, work: Path) -> None:
    folder = work / ".sandbox-agent" / "config"
    folder.mkdir(parents=True)
    (folder / "mcp.json").write_text('{"evil": {"type": "local", "command": "true"}}')
    (folder / "skills.json").write_text('{"evil": {"sources": [{"type": "local", "source": "."}]}}')
    async with benched(tmp_path) as bench:
        told = await bench.new(work)
        assert bench.sent() == {}
        assert "not added through this server" in told["mcp"]["evil"]["reason"]
        assert "not added through this server" in told["skills"]["evil"]["reason"]
        await bench.put("mcp", work, "evil", {"type": "local", "command": "true"})
        assert (await bench.new(work))["mcp"]["evil"]["applied"]


async def test_skills_are_laid_where_the_agent_looks_and_taken_away(tmp_path: Path, work: Path) -> None:
    skill(tmp_path / "library", "review")
    skill(tmp_path / "library" / "skills", "deploy")
    async with benched(tmp_path) as bench:
        source = {"type": "local", "source": str(tmp_path / "library")}
        assert (await bench.put("skills", work, "library", {"sources": [source]})).status_code == 204
        told = (await bench.new(work))["skills"]
        assert told == {"library": {"applied": True, "skills": ["deploy", "review"], "place": ".agents/skills"}}
        assert (work / ".agents/skills/review/SKILL.md").read_text().startswith("---\nname: review")
        assert (work / ".agents/skills/deploy/SKILL.md").is_file()
        mine = skill(work / ".agents" / "skills", "mine")
        (tmp_path / "other").mkdir()
        skill(tmp_path / "other", "mine")
        given = {"sources": [{"type": "local", "source": str(tmp_path / "other")}]}
        told = (await bench.new(work, skills=given))["skills"]
        assert "not ours" in told["session"]["reason"]
        assert mine.is_dir()
        assert not mine.is_symlink()
        query = {"directory": str(work), "skillName": "library"}
        assert (await bench.http.delete("/v1/config/skills", params=query)).status_code == 204
        assert [entry.name for entry in (work / ".agents/skills").iterdir()] == ["mine"]
        assert (tmp_path / "library" / "review" / "SKILL.md").is_file()


async def test_a_local_skill_that_is_not_there_is_named_in_the_list_and_one_from_above_is_found(
    tmp_path: Path, work: Path
) -> None:
    skill(work / "tips", "review")
    (work / "bare").mkdir()
    sources: dict[str, dict[str, Any]] = {
        "good": {"source": "tips"},
        "gone": {"source": "no-such-folder"},
        "empty": {"source": "bare"},
        "other": {"source": "tips", "skills": ["deploy"]},
        "remote": {"type": "git", "source": "https://127.0.0.1:9/nothing.git"},
    }
    async with benched(tmp_path) as bench:
        for name, source in sources.items():
            config = {"sources": [{"type": "local", **source}]}
            assert (await bench.put("skills", work, name, config)).status_code == 204
        listed = await bench.http.get("/v1/config/skills", params={"directory": str(work / "below")})
        problems = {entry["name"]: entry["problem"] for entry in listed.json()["entries"]}
        assert (problems["good"], problems["remote"]) == (None, None)
        assert "no-such-folder" in problems["gone"]
        assert "SKILL.md" in problems["empty"]
        assert "deploy" in problems["other"]
        query = {"directory": str(work), "skillName": "remote"}
        assert (await bench.http.delete("/v1/config/skills", params=query)).status_code == 204
        told = (await bench.new(work / "below"))["skills"]
        assert (told["good"]["applied"], told["good"]["skills"]) == (True, ["review"])
        assert [told[name]["reason"] for name in ("gone", "empty", "other")] == [
            problems[name] for name in ("gone", "empty", "other")
        ]


async def test_skills_at_session_new_and_from_a_repository(tmp_path: Path, work: Path) -> None:
    require_tool("git")
    repository = tmp_path / "repository"
    skill(repository / "tools", "lint")
    skill(repository / "tools", "format")
    name = ["-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*name, "commit", "-qm", "skills"]):
        subprocess.run(["git", *words], cwd=repository, check=True)
    async with benched(tmp_path) as bench:
        source = {"type": "git", "source": repository.as_uri(), "ref": "main", "subpath": "tools", "skills": ["lint"]}
        told = (await bench.new(work, skills={"sources": [source]}))["skills"]
        assert told["session"]["skills"] == ["lint"]
        assert (work / ".agents/skills/lint/SKILL.md").is_file()
        assert not (work / ".agents/skills/format").exists()
        told = (await bench.new(work, skills={"sources": [{**source, "skills": ["nothing"]}]}))["skills"]
        assert "nothing" in told["session"]["reason"]
        gone = {"type": "git", "source": (tmp_path / "nowhere").as_uri()}
        told = (await bench.new(work, skills={"sources": [gone]}))["skills"]
        assert "cannot be cloned" in told["session"]["reason"]
        async with connected(bench.server.url, "mock") as mock:
            params = {"cwd": str(work), "mcpServers": [], "_meta": {META: {"skills": {"sources": [source]}}}}
            answer = await mock.call("session/new", params)
            assert "knows no skills" in answer["_meta"][META]["skills"]["session"]["reason"]


async def test_nothing_is_read_or_laid_outside_the_roots(tmp_path: Path, work: Path) -> None:
    async with benched(tmp_path) as bench:
        await bench.put("mcp", work, "above", {"type": "local", "command": "true"})
    library = skill(tmp_path / "library", "review").parent
    async with benched(tmp_path, "--fs-root", str(work / "below")) as bench:
        assert problem(await bench.put("mcp", work, "x", {"type": "local", "command": "true"})) == "forbidden"
        outside = {"sources": [{"type": "local", "source": str(library)}]}
        assert (await bench.put("skills", work / "below", "s", outside)).status_code == 204
        told = await bench.new(work / "below")
        assert "mcp" not in told
        assert "outside" in told["skills"]["s"]["reason"]
