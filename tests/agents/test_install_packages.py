"""Installs with the real npm and pip, from packages made on the spot."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.agents import Catalog, CustomAgent, InstallWish, Progress
from sandbox_agent.agents.manifest import Manifest, parse_manifest
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import InstallError, InstallImpossible
from support.loopback_site import TINY_AGENT, TINY_NODE_AGENT, LoopbackSite

NODE = AgentId("node-agent")
PY = AgentId("py-agent")


def manifest(*, node: str = "18", scripts: str = "false") -> Manifest:
    return parse_manifest(f"""
        [private_node]
        linux-x86_64 = {{ name = "private-node", version = "99.0.0" }}
        linux-aarch64 = {{ name = "private-node", version = "99.0.0" }}

        [agents.node-agent]
        name = "Node agent"
        support = "supported"
        license = "MIT"
        docs = "https://example.org"
        registry = ["listed-node-agent"]
        package = {{ kind = "npm", name = "@tiny/acp", version = "1.0.0", install_scripts = {scripts} }}
        native = {{ name = "tool", found = "package", package = "tiny-tool", version = "5.0.0" }}
        runtime = {{ kind = "node", min_version = "{node}" }}
        command = ["{{bin}}/tiny-acp", "--acp"]
        env = {{ TOOL = "{{bin}}/tiny-tool" }}
        verify = ["{{bin}}/tiny-tool", "--version"]
        env_passthrough = ["TINY_API_KEY"]

        [agents.py-agent]
        name = "Python agent"
        support = "supported"
        license = "MIT"
        docs = "https://example.org"
        package = {{ kind = "pypi", name = "tiny-acp", version = "1.0.0" }}
        runtime = {{ kind = "python", min_version = "3.11" }}
        command = ["{{python}}", "{{bin}}/tiny-acp"]
        verify = ["{{python}}", "{{bin}}/tiny-acp", "--version"]
    """)


class NpmWorld:
    def __init__(self, site: LoopbackSite, data_dir: Path, env: dict[str, str]) -> None:
        self.site, self.data_dir, self.env = site, data_dir, env
        self.registry = site.publish_registry()
        files = {"tiny.js": TINY_NODE_AGENT}
        self.publish("@tiny/acp", {"1.0.0": files, "1.1.0": files, "2.0.0": files}, {"tiny-acp": "tiny.js"})
        self.publish("tiny-tool", {"5.0.0": files, "6.0.0": files}, {"tiny-tool": "tiny.js"})

    def publish(self, name: str, versions: Any, commands: dict[str, str], scripts: Any = None) -> None:
        self.site.publish_npm(name, versions, commands=commands, scripts=scripts)

    def catalog(self, custom: dict[str, CustomAgent] | None = None, **options: Any) -> Catalog:
        options = {"manifest": manifest(), "registry_url": self.registry, "env": self.env, **options}
        return Catalog(custom, data_dir=self.data_dir, **options)

    def list_in_registry(self, package: str) -> None:
        entry = {"id": "listed-node-agent", "version": "2.0.0", "distribution": {"npx": {"package": package}}}
        self.site.publish_registry(entry)


@pytest.fixture
def npm(site: LoopbackSite, tmp_path: Path, npm_env: dict[str, str]) -> NpmWorld:
    return NpmWorld(site, tmp_path / "data", npm_env)


def versions(result: Any) -> list[tuple[str, str, str]]:
    return [(artifact.kind, artifact.version, artifact.source) for artifact in result.artifacts]


async def test_an_unlisted_agent_is_installed_from_its_pin_with_its_native_agent(npm: NpmWorld) -> None:
    catalog, told = npm.catalog(), list[Progress]()
    result = await catalog.install(NODE, progress=told.append)
    assert versions(result) == [("agent_process", "1.0.0", "fallback"), ("native_agent", "5.0.0", "fallback")]
    assert [p.step for p in told if p.step != "npm"] == ["plan", "verify", "done"]
    assert "@tiny/acp 1.0.0, tiny-tool 5.0.0" in next(p.message for p in told if p.step == "npm")

    spec = await catalog.ensure(NODE)
    assert spec.command[1:] == ("--acp",)
    assert Path(spec.command[0]).is_file()
    assert Path(spec.env["TOOL"]).is_file()
    assert spec.env_passthrough == ("TINY_API_KEY",)
    assert "PATH" not in spec.env


async def test_a_listed_agent_is_installed_in_the_registrys_version(npm: NpmWorld) -> None:
    npm.list_in_registry("@tiny/acp@2.0.0")
    result = await npm.catalog().install(NODE)
    assert versions(result)[0] == ("agent_process", "2.0.0", "registry")


async def test_a_registry_that_is_down_means_the_pin(npm: NpmWorld) -> None:
    result = await npm.catalog(registry_url="http://127.0.0.1:9/registry.json").install(NODE)
    assert versions(result)[0] == ("agent_process", "1.0.0", "fallback")


async def test_pins_are_kept_and_what_is_there_already_is_not_installed_again(npm: NpmWorld) -> None:
    catalog = npm.catalog()
    pinned = await catalog.install(NODE, InstallWish(agent_process_version="1.1.0", agent_version="6.0.0"))
    assert [version for _, version, _ in versions(pinned)] == ["1.1.0", "6.0.0"]
    assert (await catalog.install(NODE)).already_installed
    assert (await catalog.install(NODE, InstallWish(agent_version="6.0.0"))).already_installed
    other = await catalog.install(NODE, InstallWish(agent_version="5.0.0"))
    assert not other.already_installed
    assert catalog.describe(NODE).version == "1.0.0+5.0.0"


async def test_the_config_can_pin_a_version_and_add_environment(npm: NpmWorld) -> None:
    added = CustomAgent(version="1.1.0", env={"MORE": "1"}, env_passthrough=("OTHER_KEY",))
    await npm.catalog().install(NODE)
    assert not npm.catalog({NODE: added}).describe(NODE).installed
    spec = await npm.catalog({NODE: added}).ensure(NODE)
    assert "/1.1.0+5.0.0/" in spec.command[0]
    assert spec.env["MORE"] == "1"
    assert spec.env_passthrough == ("TINY_API_KEY", "OTHER_KEY")


async def test_an_agent_is_installed_on_first_use_and_then_only_launched(npm: NpmWorld) -> None:
    catalog, told = npm.catalog(), list[Progress]()
    assert not catalog.describe(NODE).installed
    await catalog.ensure(NODE, progress=told.append)
    assert told[-1].step == "done"
    told.clear()
    await catalog.ensure(NODE, progress=told.append)
    assert not told


async def test_an_install_moves_with_its_data_directory(npm: NpmWorld, tmp_path: Path) -> None:
    await npm.catalog().install(NODE)
    npm.data_dir = npm.data_dir.rename(tmp_path / "moved")
    spec = await npm.catalog(require_preinstall=True).ensure(NODE)
    assert Path(spec.command[0]).is_relative_to(tmp_path / "moved")


async def test_install_scripts_do_not_run_unless_the_manifest_says_so(npm: NpmWorld, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    scripts = {"postinstall": f"{sys.executable} -c \"open('{mark}', 'w')\""}
    npm.publish("@tiny/acp", {"1.0.0": {"tiny.js": TINY_NODE_AGENT}}, {"tiny-acp": "tiny.js"}, scripts)
    await npm.catalog().install(NODE)
    assert not mark.exists()
    await npm.catalog(manifest=manifest(scripts="true")).install(NODE, InstallWish(reinstall=True))
    assert mark.exists()


async def test_a_node_that_is_too_old_gets_company_of_a_private_one(npm: NpmWorld) -> None:
    wrapper = f'#!/bin/sh\nexec "{shutil.which("node")}" "$@"\n'
    npm.publish("private-node", {"99.0.0": {"bin/node": wrapper}}, {"node": "bin/node"})
    catalog = npm.catalog(manifest=manifest(node="99"))
    result = await catalog.install(NODE)
    assert versions(result)[-1] == ("runtime", "99.0.0", "fallback")
    first = (await catalog.ensure(NODE)).env["PATH"].split(os.pathsep)[0]
    assert [path.name for path in Path(first).iterdir()] == ["node"]


async def test_a_missing_runtime_is_said_before_anything_is_downloaded(npm: NpmWorld, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    catalog = npm.catalog(env={**npm.env, "PATH": str(tmp_path / "empty")})
    with pytest.raises(InstallImpossible, match=r"needs Node\.js 18 or newer, and none is there.*nodejs\.org"):
        await catalog.install(NODE)
    assert not any(path.startswith("/npm") for path in npm.site.hits)
    assert not (npm.data_dir / "agents").exists()


async def test_a_version_that_npm_does_not_have_fails_with_npms_own_words(npm: NpmWorld) -> None:
    with pytest.raises(InstallError, match=r"7\.7\.7"):
        await npm.catalog().install(NODE, InstallWish(agent_process_version="7.7.7"))
    assert {path.name for path in (npm.data_dir / "agents/node-agent").iterdir()} == {".lock"}


async def test_a_data_directory_that_cannot_be_written_is_an_install_error(npm: NpmWorld) -> None:
    npm.data_dir.mkdir()
    (npm.data_dir / "agents").write_text("in the way")
    with pytest.raises(InstallError, match="cannot be put under"):
        await npm.catalog().install(NODE)


async def test_a_tarball_that_was_tampered_with_is_refused(npm: NpmWorld) -> None:
    address = "/npm/tiny-tool/-/5.0.0.tgz"
    npm.site.pages[address].body = npm.site.pages["/npm/tiny-tool/-/6.0.0.tgz"].body
    with pytest.raises(InstallError, match=r"EINTEGRITY|integrity"):
        await npm.catalog().install(NODE)


async def test_a_version_command_that_fails_refuses_the_install(npm: NpmWorld) -> None:
    npm.publish("tiny-tool", {"5.0.0": {"tiny.js": "#!/bin/sh\nexit 3\n"}}, {"tiny-tool": "tiny.js"})
    with pytest.raises(InstallError, match="exited with 3"):
        await npm.catalog().install(NODE)
    assert not npm.catalog().describe(NODE).installed


async def test_npm_and_the_agent_see_no_secrets_while_installing(npm: NpmWorld, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    spy = TINY_NODE_AGENT.replace(
        "if (process", f'require("fs").appendFileSync("{seen}", JSON.stringify(process.env))\nif (process', 1
    )
    npm.publish("tiny-tool", {"5.0.0": {"tiny.js": spy}}, {"tiny-tool": "tiny.js"})
    secret = {
        "SANDBOX_AGENT_TOKEN": "hush-1",
        "TINY_API_KEY": "hush-2",
        "NODE_OPTIONS": "--no-warnings",
        "LD_DEBUG": "x",
    }
    await npm.catalog(env={**npm.env, **secret}).install(NODE)
    text = seen.read_text()
    assert '"PATH"' in text
    assert not [word for word in ("hush", "NODE_OPTIONS", "LD_DEBUG") if word in text]


async def test_an_npm_package_of_the_registry_runs_as_npx_would(npm: NpmWorld) -> None:
    target = {"package": "@tiny/acp@1.1.0", "args": ["--acp"], "env": {"A": "b"}}
    npm.site.publish_registry({"id": "stranger", "version": "1.1.0", "distribution": {"npx": target}})
    catalog = npm.catalog()
    await catalog.install(AgentId("stranger"))
    spec = await catalog.ensure(AgentId("stranger"))
    assert (Path(spec.command[0]).name, spec.command[1:], spec.env) == ("tiny-acp", ("--acp",), {"A": "b"})


def write_wheel(directory: Path) -> None:
    """A wheel of the package tiny-acp 1.0.0, whose command is the tiny agent."""
    body = "def main():\n" + "".join(f"    {line}\n" for line in TINY_AGENT.splitlines()[1:])
    info = "tiny_acp-1.0.0.dist-info"
    files = {
        "tiny_acp.py": body,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-acp\nVersion: 1.0.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntiny-acp = tiny_acp:main\n",
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text.encode())}\n"
    directory.mkdir()
    with zipfile.ZipFile(directory / "tiny_acp-1.0.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            wheel.writestr(name, text)


async def test_a_pypi_package_is_installed_into_a_venv_that_works_after_its_move(
    site: LoopbackSite, tmp_path: Path, machine_env: dict[str, str]
) -> None:
    write_wheel(tmp_path / "wheels")
    env = {**machine_env, "PATH": "/nowhere", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    catalog = Catalog(
        {}, data_dir=tmp_path / "data", registry_url=site.publish_registry(), env=env, manifest=manifest()
    )
    result = await catalog.install(PY)
    assert versions(result) == [("agent_process", "1.0.0", "fallback")]

    from sandbox_agent.agents.programs import ask_initialize

    spec = await catalog.ensure(PY)
    answer = await ask_initialize(spec.command, env={}, cwd=tmp_path, log=tmp_path / "log", deadline=40)
    assert answer == {"protocolVersion": 1}
