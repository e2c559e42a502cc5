from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from sandbox_agent.agents import Catalog, CustomAgent
from sandbox_agent.agents.manifest import load_manifest
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import AgentNotInstalled, ConfigError, InstallImpossible, UnknownAgent
from support.real_agents import CHECKED_AGENTS

CLAUDE, CURSOR, MINE, MOCK = AgentId("claude"), AgentId("cursor"), AgentId("mine"), AgentId("mock")


def put_on_path(folder: Path, *names: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


async def test_the_mock_agent_is_there_without_any_setting() -> None:
    catalog = Catalog({})
    spec = await catalog.ensure(MOCK)
    assert spec.command == (sys.executable, "-m", "sandbox_agent.mock_agent")
    listing = catalog.describe(MOCK)
    assert (listing.installed, listing.source, listing.verified) == (True, "builtin", True)
    assert (await catalog.install(MOCK)).already_installed


@pytest.mark.promise("P-agent-5")
async def test_an_agent_of_the_config_is_launched_as_it_says() -> None:
    catalog = Catalog({"mine": CustomAgent(command=("python3", "x.py"), env={"A": "b"}, env_passthrough=("KEY",))})
    spec = await catalog.ensure(MINE)
    assert (spec.command, spec.env, spec.env_passthrough) == (("python3", "x.py"), {"A": "b"}, ("KEY",))
    assert MINE in catalog.ids()
    assert catalog.describe(MINE).source == "custom"
    assert (await catalog.install(MINE)).already_installed


async def test_the_config_can_replace_an_agent_of_the_manifest() -> None:
    catalog = Catalog({"amp": CustomAgent(command=("my-amp-adapter",), name="My Amp")})
    spec = await catalog.ensure(AgentId("amp"))
    assert spec.command == ("my-amp-adapter",)
    assert "AMP_API_KEY" in spec.env_passthrough
    listing = catalog.describe(AgentId("amp"))
    assert (listing.name, listing.support, listing.installed) == ("My Amp", "supported", True)


@pytest.mark.parametrize("name", ["mine", "../up", "-x"])
def test_a_config_entry_that_cannot_work_is_a_wrong_setting(name: str) -> None:
    with pytest.raises(ConfigError, match="agents"):
        Catalog({name: CustomAgent(env={"A": "b"})})


def test_a_version_in_the_config_that_is_none_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigError, match="latest"):
        Catalog({"claude": CustomAgent(version="latest")})


@pytest.mark.parametrize("name", ["nobody", "../claude", "", "a b"])
async def test_an_unknown_agent_is_said_to_be_unknown_without_asking_the_network(name: str, tmp_path: Path) -> None:
    catalog = Catalog({}, data_dir=tmp_path, registry_url="http://192.0.2.1/never-asked.json")
    with pytest.raises(UnknownAgent, match=r"known agents: .*claude"):
        await catalog.ensure(AgentId(name))
    with pytest.raises(UnknownAgent):
        catalog.describe(AgentId(name))


async def test_where_nothing_may_be_installed_the_error_has_the_command_that_helps(tmp_path: Path) -> None:
    catalog = Catalog({}, data_dir=tmp_path, require_preinstall=True)
    with pytest.raises(AgentNotInstalled, match="sandbox-agent install-agent claude") as caught:
        await catalog.ensure(CLAUDE)
    assert caught.value.data["command"] == "sandbox-agent install-agent claude"
    assert not list(tmp_path.iterdir())


async def test_a_manual_agent_is_used_once_it_is_on_the_path(tmp_path: Path) -> None:
    catalog = Catalog({}, data_dir=tmp_path / "data", env={"PATH": ""}, registry_url="file:///nonexistent")
    assert not catalog.describe(CURSOR).installed
    with pytest.raises(InstallImpossible, match="cursor-agent login"):
        await catalog.ensure(CURSOR)
    catalog = Catalog({}, data_dir=tmp_path / "data", env=put_on_path(tmp_path / "bin", "cursor-agent"))
    assert (await catalog.ensure(CURSOR)).command == (str(tmp_path / "bin/cursor-agent"), "acp")
    assert (catalog.describe(CURSOR).installed, catalog.describe(CURSOR).source) == (True, "path")
    assert (await catalog.install(CURSOR)).already_installed


async def test_an_agent_on_the_path_counts_only_where_nothing_may_be_installed(tmp_path: Path) -> None:
    env = put_on_path(tmp_path / "bin", "claude-agent-acp", "pi-acp", "pi")
    assert not Catalog({}, data_dir=tmp_path, env=env).describe(CLAUDE).installed
    strict = Catalog({}, data_dir=tmp_path, env=env, require_preinstall=True)
    listing = strict.describe(CLAUDE)
    assert (listing.installed, listing.source, listing.verified) == (True, "path", False)
    pi = await strict.ensure(AgentId("pi"))
    assert pi.env["PI_ACP_PI_COMMAND"] == str(tmp_path / "bin/pi")
    with pytest.raises(AgentNotInstalled):
        await strict.ensure(AgentId("vibe"))


@pytest.mark.parametrize(("agent", "words"), [("cursor", "cursor-agent login"), ("amp", "does not speak ACP")])
async def test_an_agent_that_we_never_install_is_refused_without_asking_the_network(
    agent: str, words: str, tmp_path: Path
) -> None:
    catalog = Catalog({}, data_dir=tmp_path, registry_url="http://192.0.2.1/never-asked.json")
    with pytest.raises(InstallImpossible, match=words):
        await catalog.install(AgentId(agent))
    with pytest.raises(InstallImpossible, match=words):
        await catalog.ensure(AgentId(agent))


@pytest.mark.parametrize("broken", [b"", b"{}", b"not json", b'{"agent": 5}'])
def test_an_install_whose_receipt_is_broken_does_not_count(broken: bytes, tmp_path: Path) -> None:
    home = tmp_path / "agents/claude/1.0.0"
    home.mkdir(parents=True)
    (home / "install.json").write_bytes(broken)
    (home.parent / "current").symlink_to("1.0.0")
    assert not Catalog({}, data_dir=tmp_path).describe(CLAUDE).installed


def test_a_pointer_that_leads_out_of_its_shelf_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "agents/claude").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/install.json").write_text("{}")
    (tmp_path / "agents/claude/current").symlink_to(tmp_path / "elsewhere")
    assert not Catalog({}, data_dir=tmp_path).describe(CLAUDE).installed


def test_every_agent_can_be_described_offline_with_instructions(tmp_path: Path) -> None:
    catalog = Catalog({}, data_dir=tmp_path, env={"HOME": str(tmp_path)})
    for agent in catalog.ids():
        listing = catalog.describe(agent)
        assert listing.instructions == catalog.instructions(agent)
        assert listing.instructions
        assert not listing.credentials_available
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("agent", "variable"), [("claude", "ANTHROPIC_API_KEY"), ("goose", "OPENAI_API_KEY"), ("copilot", "GH_TOKEN")]
)
def test_a_key_in_the_environment_makes_credentials_available(agent: str, variable: str) -> None:
    catalog = Catalog({}, env={variable: "secret"})
    assert catalog.describe(AgentId(agent)).credentials_available
    assert not Catalog({}, env={variable: ""}).describe(AgentId(agent)).credentials_available


def test_importing_the_agents_costs_no_http_client_and_no_protocol_types() -> None:
    program = (
        "import sys, sandbox_agent.agents as agents; agents.Catalog({});"
        "print(sorted({'httpx', 'pydantic', 'acp', 'anyio'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_sessions_share_a_process_only_where_somebody_has_checked_the_agent() -> None:
    catalog = Catalog(
        {
            "mine": CustomAgent(command=("x",)),
            "trusted": CustomAgent(command=("x",), isolation="process"),
            "claude": CustomAgent(command=("another-claude",)),
            "codex": CustomAgent(env={"A": "b"}),
            "gemini": CustomAgent(isolation="session"),
        }
    )
    found = {
        name: catalog.isolation(AgentId(name)) for name in ("mock", "mine", "trusted", "claude", "codex", "gemini")
    }
    assert found == {
        "mock": "process",
        "mine": "session",
        "trusted": "process",
        "claude": "session",
        "codex": "process",
        "gemini": "session",
    }
    assert catalog.isolation(AgentId("droid")) == "session"
    assert catalog.isolation(AgentId("from-the-registry")) == "session"


def test_only_agents_that_the_real_agent_suite_checks_share_a_process() -> None:
    sharing = {name for name, entry in load_manifest().agents.items() if entry.isolation == "process"}
    assert sharing <= {"mock", *CHECKED_AGENTS}


def cached_registry(data_dir: Path, *agents: dict[str, object]) -> Catalog:
    """A catalog whose last copy of the registry lists these."""
    url = "http://127.0.0.1:9/registry.json"
    cache = data_dir / "cache"
    cache.mkdir(parents=True)
    name = f"registry-{hashlib.sha256(url.encode()).hexdigest()[:16]}.json"
    (cache / name).write_bytes(msgspec.json.encode({"version": "1", "agents": list(agents)}))
    return Catalog({}, data_dir=data_dir, registry_url=url)


def test_instructions_are_the_registrys_where_it_has_the_agent_and_say_so_before_any_install(tmp_path: Path) -> None:
    npx = {"package": "@agentclientprotocol/codex-acp@9.9.9", "args": ["--fast"]}
    archive = {"archive": "https://example.org/n.tar.gz", "cmd": "./n", "args": ["acp"]}
    catalog = cached_registry(
        tmp_path,
        {"id": "codex-acp", "version": "9.9.9", "distribution": {"npx": npx}},
        {"id": "newcomer", "version": "0.1.0", "distribution": {"binary": {"linux-x86_64": archive}}},
    )
    codex, newcomer = catalog.describe(AgentId("codex")), catalog.describe(AgentId("newcomer"))
    assert (codex.installed, codex.origin) == (False, "registry")
    assert "version: 9.9.9 (ACP registry: codex-acp)" in codex.instructions
    assert "by hand: npx @agentclientprotocol/codex-acp@9.9.9 --fast" in codex.instructions
    assert "2.6.0" not in codex.instructions
    assert "archive for linux-x86_64: https://example.org/n.tar.gz, starts ./n acp" in newcomer.instructions
    assert newcomer.origin == "registry"


def test_an_agent_that_the_registry_lacks_is_non_registry_before_any_install(tmp_path: Path) -> None:
    catalog = cached_registry(tmp_path)
    goose = catalog.describe(AgentId("goose"))
    assert (goose.installed, goose.origin) == (False, "non_registry")
    assert "npm install -g @aaif/goose@" in goose.instructions
    assert [catalog.describe(AgentId(name)).origin for name in ("mock", "cursor")] == [None, None]
