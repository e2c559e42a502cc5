"""The contract of providers: a server that answers to its token alone, and nothing left behind whatever fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from sandbox_agent import BlockingSandboxAgent, SandboxAgent
from sandbox_agent.client import providers
from sandbox_agent.client.providers import Provider
from sandbox_agent.client.providers.provider import environment
from sandbox_agent.errors import ConfigError, ConnectionLost, InvalidParams
from support import vendors
from support.vendors import Vendor

pytestmark = pytest.mark.timeout(120)
FAKES: dict[str, tuple[Callable[[Vendor], dict[str, ModuleType]], Callable[[], Provider], str]] = {
    "e2b": (vendors.e2b, lambda: providers.e2b("my-template"), "e2b:AsyncSandbox.get_host"),
    "daytona": (vendors.daytona, lambda: providers.daytona("my-snapshot"), "daytona:AsyncSandbox.get_preview_link"),
    "modal": (vendors.modal, lambda: providers.modal("my/image"), "modal:Sandbox.tunnels"),
    "vercel": (vendors.vercel, providers.vercel, "vercel.sandbox:Sandbox.create_process"),
}
"""By name: the vendor's SDK, a provider that uses it, and the last call that can fail."""


class World:
    """A provider, and what is left of its sandboxes."""

    def __init__(self, provider: Provider, left: Callable[[], int], vendor: Vendor | None = None) -> None:
        self.provider = provider
        self.left = left
        self.vendor = vendor


@pytest.fixture(params=["local", "docker", "fly", *FAKES])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with ExitStack() as stack:
        yield _world(request.param, tmp_path, monkeypatch, stack)


def _world(name: str, home: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> World:
    for variable, value in (("HOME", ""), ("SANDBOX_AGENT_DATA_DIR", "data"), ("SANDBOX_AGENT_MOCK_STATE", "mock")):
        monkeypatch.setenv(variable, str(home / value))
    if name == "local":
        return World(providers.local(data_dir=home / "data"), lambda: 0)
    vendor = Vendor(home / "vendor")
    stack.callback(vendor.close)
    if name == "docker":
        return World(_docker(home, monkeypatch), lambda: _running(home))
    if name == "fly":
        api = stack.enter_context(vendors.fly_api(vendor))
        return World(_Fly(vendor, api), lambda: len(vendor.alive) + len(vendor.rented), vendor)
    modules, provider, _ = FAKES[name]
    for module, content in modules(vendor).items():
        monkeypatch.setitem(sys.modules, module, content)
    return World(provider(), lambda: len(vendor.alive) + len(vendor.rented), vendor)


class _Fly:
    """Fly's API knows no address of its own: the one of the app is that of the Machine here."""

    def __init__(self, vendor: Vendor, api: str) -> None:
        self._vendor = vendor
        self._api = api

    async def create(self, token: str, env: Mapping[str, str]) -> providers.Machine:
        made = await providers.fly("my-app", "my/image", api_token="secret", api_url=self._api).create(token, env)
        assert made.url == "https://my-app.fly.dev"
        (pid,) = self._vendor.alive
        assert made.headers == {"fly-force-instance-id": str(pid)}
        return providers.Machine(self._vendor.address(pid), made.token, made.destroy, made.headers)


def _docker(home: Path, monkeypatch: pytest.MonkeyPatch) -> Provider:
    program = vendors.fake_docker(home, monkeypatch)
    return providers.docker("my-image", program=str(program), volumes=["/src:/workspace"])


def _calls(home: Path) -> list[list[str]]:
    return [json.loads(line) for line in (home / "calls").read_text().splitlines()]


def _running(home: Path) -> int:
    calls = _calls(home)
    return sum(one[0] == "run" for one in calls) - sum(one[0] == "rm" for one in calls)


async def test_a_turn_runs_in_a_sandbox_that_takes_nobody_without_its_token_and_is_gone_afterwards(
    world: World,
) -> None:
    async with SandboxAgent.start(sandbox=world.provider, env={"TZ": "Asia/Tokyo"}) as sandbox:
        url = sandbox.url
        assert sandbox.token
        assert len(sandbox.token) >= 32
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{url}/v1/sessions")).status_code == 401
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        assert await session.prompt("hello").text() == "hello"
        assert "Asia/Tokyo" in await session.prompt("env TZ").text()
        assert "is not set" in await session.prompt("env SANDBOX_AGENT_TOKEN").text()
    assert world.left() == 0

    async with httpx.AsyncClient(trust_env=False) as http:
        with pytest.raises(httpx.TransportError):
            await http.get(url, timeout=2.0)


async def test_a_sandbox_that_is_not_on_this_machine_needs_a_cwd(world: World) -> None:
    async with SandboxAgent.start(sandbox=world.provider) as sandbox:
        assert sandbox._machine is not None
        if sandbox._machine.pid is None:
            with pytest.raises(InvalidParams, match="give a cwd"):
                await sandbox.create_session(agent="mock")


def test_the_synchronous_client_takes_providers_too(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "SANDBOX_AGENT_MOCK_STATE": str(tmp_path / "mock-state")}
    started = BlockingSandboxAgent.start(sandbox=providers.local(data_dir=tmp_path / "data"), env=env)
    with started as sandbox:
        assert sandbox.create_session(agent="mock", cwd="/tmp").prompt("hello").text() == "hello"


@pytest.mark.parametrize("name", FAKES)
async def test_a_sandbox_whose_last_step_fails_is_removed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        world = _world(name, tmp_path, monkeypatch, stack)
        assert world.vendor is not None
        world.vendor.fails_at = FAKES[name][2]
        with pytest.raises(RuntimeError, match="failed"):
            await SandboxAgent.start(sandbox=world.provider).__aenter__()
        assert world.left() == 0


@pytest.mark.parametrize("name", FAKES)
async def test_without_the_vendors_sdk_it_is_said_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (name, f"{name}.sandbox"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=f"is not installed; run: pip install {name}"):
        await SandboxAgent.start(sandbox=FAKES[name][1]()).__aenter__()


async def test_a_server_that_never_answers_is_an_error_that_says_so_and_its_sandbox_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        world = _world("modal", tmp_path, monkeypatch, stack)
        assert world.vendor is not None
        (tmp_path / "vendor/bin/sandbox-agent").write_text(
            f"#!/bin/sh\necho listening on http://127.0.0.1:9\nexec {sys.executable} -c 'import time; time.sleep(60)'\n"
        )
        with pytest.raises(ConnectionLost, match=r"http://127.0.0.1:9 did not answer within 1 s"):
            await SandboxAgent.start(sandbox=world.provider, within=1.0).__aenter__()
        assert world.left() == 0


async def test_docker_is_given_no_secret_on_its_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        world = _world("docker", tmp_path, monkeypatch, stack)
        async with SandboxAgent.start(sandbox=world.provider, env={"API_KEY": "s3cret"}) as sandbox:
            token = str(sandbox.token)
    said = (tmp_path / "calls").read_text()
    assert token not in said
    assert "s3cret" not in said
    run = _calls(tmp_path)[0]
    assert run[run.index("--publish") :][:2] == ["--publish", "127.0.0.1::2468"]
    assert run[run.index("--volume") :][:2] == ["--volume", "/src:/workspace"]


def test_a_server_in_a_sandbox_is_told_that_it_is_in_one_unless_the_caller_says_otherwise() -> None:
    assert environment("t", {"A": "1"}) == {"IS_SANDBOX": "1", "A": "1", "SANDBOX_AGENT_TOKEN": "t"}
    assert environment("t", {"IS_SANDBOX": ""})["IS_SANDBOX"] == ""


@pytest.mark.parametrize("fails", ["run", "port"])
async def test_what_docker_says_is_raised_and_no_container_is_left(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_DOCKER_FAILS", fails)
    with ExitStack() as stack:
        world = _world("docker", tmp_path, monkeypatch, stack)
        with pytest.raises(ConfigError, match=f"docker {fails} failed: no such image"):
            await SandboxAgent.start(sandbox=world.provider).__aenter__()
    if fails == "port":
        assert world.left() == 0
    with pytest.raises(ConfigError, match="is not installed"):
        await SandboxAgent.start(sandbox=providers.docker(program="no-such-docker")).__aenter__()


async def test_what_fly_answers_is_raised(tmp_path: Path) -> None:
    vendor = Vendor(tmp_path / "vendor")
    vendor.fails_at = "POST"
    with vendors.fly_api(vendor) as api, pytest.raises(ConfigError, match="Fly answered 422"):
        await SandboxAgent.start(sandbox=providers.fly("a", "b", api_token="s", api_url=api)).__aenter__()
    assert vendor.alive == {}


def test_options_of_a_local_server_are_refused_where_they_would_do_nothing() -> None:
    with pytest.raises(ConfigError, match="give them to local"):
        SandboxAgent.start(sandbox=providers.docker(), flags=("--access-log",))
