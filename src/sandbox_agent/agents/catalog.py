"""The agents this server knows: those of the manifest, of the user's config, and what was installed by slug."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from sandbox_agent.agents.credentials import AGENTS_WITH_CREDENTIALS, find_credentials
from sandbox_agent.agents.custom import CustomAgent
from sandbox_agent.agents.install import Installer, InstallResult, ProgressCallback
from sandbox_agent.agents.instructions import install_command, registry_instructions, write_instructions
from sandbox_agent.agents.manifest import AgentEntry, Manifest, Runtime, Support, load_manifest
from sandbox_agent.agents.names import check_agent_id
from sandbox_agent.agents.plan import InstallRequest, InstallWish, find_listed
from sandbox_agent.agents.registry import DEFAULT_REGISTRY_URL, Registry, RegistryAgent
from sandbox_agent.agents.shelf import Artifact, Receipt, Source, expand
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import Isolation, LaunchSpec
from sandbox_agent.errors import (
    AgentNotInstalled,
    ConfigError,
    InstallImpossible,
    InvalidParams,
    UnknownAgent,
)

_COMMAND = re.compile(r"\{bin\}/([\w.+-]+)")


class AgentListing(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is true of an agent now. `source` is where what is installed came from; None when nothing is."""

    id: str
    name: str
    support: Support
    installed: bool
    version: str | None = None
    path: str | None = None
    source: Source | None = None
    verified: bool = False
    credentials_available: bool = False
    instructions: str = ""
    runtime: Runtime | None = None
    isolation: Isolation
    """`process`: all sessions share one. `session`: each has its own."""
    origin: Literal["registry", "non_registry"] | None = None
    """Where an install takes it from, as far as is known: the ACP registry, or the version that this program pins."""
    artifacts: tuple[Artifact, ...] = ()


class Catalog:
    """`env` is the environment to look for commands and credentials in; nothing else of it is read here.

    Without `data_dir` only built-in, custom and already present agents can be launched.
    """

    def __init__(
        self,
        custom: Mapping[str, CustomAgent] | None = None,
        *,
        data_dir: Path | None = None,
        registry_url: str = DEFAULT_REGISTRY_URL,
        require_preinstall: bool = False,
        env: Mapping[str, str] | None = None,
        manifest: Manifest | None = None,
    ) -> None:
        self._manifest = manifest or load_manifest()
        self._custom = dict(custom or {})
        self._data_dir = data_dir
        self._require_preinstall = require_preinstall
        self._env = dict(env or {})
        for name, agent in self._custom.items():
            _check_custom(name, agent, self._manifest)
        self._registry: Registry | None = None
        self._installer: Installer | None = None
        if data_dir is not None:
            self._registry = Registry(registry_url, data_dir / "cache", self._env)
            self._installer = Installer(self._manifest, self._registry, data_dir=data_dir, env=self._env)

    def ids(self) -> list[AgentId]:
        """Every agent by name: the manifest's, the config's, and those installed from the registry by their slug."""
        shelves = self._data_dir / "agents" if self._data_dir else None
        by_slug = sorted(p.name for p in shelves.iterdir() if p.is_dir()) if shelves and shelves.is_dir() else []
        others = [name for name in by_slug if self._installed(name)]
        return [AgentId(name) for name in dict.fromkeys([*self._manifest.agents, *self._custom, *others])]

    async def ensure(self, agent: AgentId, *, progress: ProgressCallback | None = None) -> LaunchSpec:
        """How to launch `agent`, installed if need be.

        Raises UnknownAgent, AgentNotInstalled when nothing may be installed, or InstallError. A name that neither
        the catalog nor the last copy of the registry knows is unknown: the network is asked by `install` only.
        """
        launch = self.present(agent)
        if launch is not None:
            return launch
        self._check_known(agent)
        if self._require_preinstall or self._installer is None:
            raise AgentNotInstalled(
                f"{agent} is not installed, and installing on demand is off: run `{install_command(agent)}` first",
                agent=agent,
                command=install_command(agent),
            )
        await self.install(agent, progress=progress)
        launch = self.present(agent)
        if launch is None:
            raise AgentNotInstalled(f"{agent} was removed while it was being started", agent=agent)
        return launch

    async def install(
        self,
        agent: AgentId,
        wish: InstallWish | None = None,
        *,
        progress: ProgressCallback | None = None,
    ) -> InstallResult:
        """Install `agent`, known here or to the registry. Agents that come with the server or the machine already are.

        Raises UnknownAgent, InvalidParams, InstallImpossible, InstallError.
        """
        custom = self._custom.get(agent)
        wish = wish or InstallWish()
        request = InstallRequest(
            agent=agent,
            reinstall=wish.reinstall,
            agent_version=wish.agent_version,
            agent_process_version=wish.agent_process_version or (custom.version if custom else None),
        )
        listing = self.describe(agent) if agent in self._manifest.agents or custom else None
        if listing and listing.installed and listing.source in {"builtin", "custom", "path"}:
            entry = self._manifest.agents.get(agent)
            if listing.source != "path" or entry is None or entry.support == "manual":
                return InstallResult(
                    agent=agent, already_installed=True, artifacts=listing.artifacts, source=listing.source
                )
        if self._installer is None:
            raise InstallImpossible(f"{agent} cannot be installed: there is no data directory")
        return await self._installer.install(request, progress)

    def describe(self, agent: AgentId) -> AgentListing:
        """Reads a few small files; asks nobody. Raises UnknownAgent."""
        self._check_known(agent)
        entry, custom = self._manifest.agents.get(agent), self._custom.get(agent)
        there = self._installed(agent)
        index = self._registry.cached() if self._registry else None
        listed = find_listed(agent, entry, index)
        listing = AgentListing(
            id=agent,
            name=(custom and custom.name) or (entry.name if entry else agent),
            support=entry.support if entry and not (custom and custom.command) else "supported",
            installed=False,
            credentials_available=self._has_credentials(agent, entry),
            instructions=_instructions(agent, entry, listed),
            origin=_origin(entry, listed, has_command=bool(custom and custom.command)),
            runtime=entry.runtime if entry else None,
            isolation=self.isolation(agent),
        )
        launch = self.present(agent)
        if launch is None:
            return listing
        if there and not (custom and custom.command):
            home, receipt = there
            return msgspec.structs.replace(
                listing,
                installed=True,
                version=receipt.version,
                path=str(home),
                source=receipt.source,
                verified=receipt.verified,
                artifacts=receipt.artifacts,
            )
        source: Source = "custom" if custom and custom.command else "builtin" if entry and entry.builtin else "path"
        return msgspec.structs.replace(
            listing, installed=True, path=launch.command[0], source=source, verified=source == "builtin"
        )

    def isolation(self, agent: AgentId) -> Isolation:
        """What the sessions of `agent` share: nothing, until somebody has checked that it keeps them apart."""
        entry, custom = self._manifest.agents.get(agent), self._custom.get(agent)
        if custom and custom.isolation:
            return custom.isolation
        return entry.isolation if entry and not (custom and custom.command) else "session"

    def skills_place(self, agent: AgentId) -> str | None:
        """Where in a working directory `agent` looks for skills; None where it knows none."""
        entry, custom = self._manifest.agents.get(agent), self._custom.get(agent)
        if custom and (custom.skills or custom.command):
            return custom.skills
        return entry.skills if entry else None

    def instructions(self, agent: AgentId) -> str:
        return self.describe(agent).instructions

    def launch(self, agent: AgentId) -> LaunchSpec | None:
        """How to launch what is here now; None when it is not installed. Raises UnknownAgent."""
        self._check_known(agent)
        return self.present(agent)

    def present(self, agent: AgentId) -> LaunchSpec | None:
        """How to launch what is here now: the config's command, the built-in one, an install of ours, one on PATH."""
        entry, custom = self._manifest.agents.get(agent), self._custom.get(agent)
        there = self._installed(agent)
        if custom and custom.command:
            launch = LaunchSpec(agent=agent, command=custom.command, login=custom.login)
        elif entry and entry.builtin:
            launch = LaunchSpec(agent=agent, command=(sys.executable, "-m", entry.builtin))
        elif there:
            launch = self._launch_installed(agent, *there)
        elif entry and (entry.support == "manual" or self._require_preinstall):
            on_path = self._on_path(entry)
            if on_path is None:
                return None
            launch = on_path
        else:
            return None
        return msgspec.structs.replace(
            launch,
            env={**launch.env, **(custom.env if custom else {})},
            env_passthrough=(
                *(entry.env_passthrough if entry else ()),
                *(custom.env_passthrough if custom else ()),
            ),
            auth_keys={**(entry.auth_keys if entry else {}), **(custom.auth_keys if custom else {})},
            login_env=entry.login_env if entry and not (custom and custom.command) else (),
            advice=entry.advice if entry else {},
            protocol_version=custom.protocol_version if custom else None,
        )

    def _launch_installed(self, agent: AgentId, home: Path, receipt: Receipt) -> LaunchSpec:
        entry = self._manifest.agents.get(agent)
        templates, more = _how_to_start(entry, receipt)
        env = {name: expand(value, home, receipt.layout) for name, value in more.items()}
        if receipt.private_node:
            env["PATH"] = f"{home}/runtime/bin{os.pathsep}{self._env.get('PATH', os.defpath)}"
        command = tuple(expand(part, home, receipt.layout) for part in templates)
        login = tuple(expand(part, home, receipt.layout) for part in entry.login) if entry else ()
        return LaunchSpec(agent=agent, command=command, env=env, login=login)

    def _on_path(self, entry: AgentEntry) -> LaunchSpec | None:
        """Launch commands that the user put on PATH, under the names that an install would have given them."""
        path, missing = self._env.get("PATH", ""), False

        def find(match: re.Match[str]) -> str:
            nonlocal missing
            found = shutil.which(match[1], path=path)
            missing = missing or found is None
            return found or match[1]

        command = tuple(_COMMAND.sub(find, part) for part in entry.command if part != "{python}")
        env = {name: _COMMAND.sub(find, value) for name, value in entry.env.items()}
        if missing or not command:
            return None
        login = tuple(_COMMAND.sub(find, part) for part in entry.login)
        return LaunchSpec(agent=AgentId(entry.id), command=command, env=env, login=login)

    def _installed(self, agent: str) -> tuple[Path, Receipt] | None:
        """Our own install, if it is of the version that the config may pin."""
        there = self._installer.installed(agent) if self._installer and _is_name(agent) else None
        custom = self._custom.get(agent)
        if there is None or custom is None or custom.version is None:
            return there
        return there if custom.version in {a.version for a in there[1].artifacts if a.kind == "agent_process"} else None

    def _check_known(self, agent: AgentId) -> None:
        if agent in self._manifest.agents or agent in self._custom or self._installed(agent):
            return
        listed = self._registry.cached() if self._registry and _is_name(agent) else None
        if listed is None or agent not in listed.agents:
            raise UnknownAgent(agent, known=sorted(self.ids()))

    def _has_credentials(self, agent: AgentId, entry: AgentEntry | None) -> bool:
        passed = entry.env_passthrough if entry else ()
        keys = (entry.login_env if entry else ()) or [n for n in passed if n.endswith(("_API_KEY", "_TOKEN"))]
        if any(self._env.get(name) for name in keys):
            return True
        home = Path(self._env.get("HOME") or "/nonexistent")
        return agent in AGENTS_WITH_CREDENTIALS and bool(find_credentials(self._env, home, agent=agent))


def _instructions(agent: str, entry: AgentEntry | None, listed: RegistryAgent | None) -> str:
    if entry is not None:
        return write_instructions(entry, listed)
    return registry_instructions(listed) if listed is not None else f"install: {install_command(agent)}"


def _origin(
    entry: AgentEntry | None, listed: RegistryAgent | None, *, has_command: bool
) -> Literal["registry", "non_registry"] | None:
    """None for what is not installed by us: built in, by hand, or a command of the user's own."""
    if has_command or (entry is not None and (entry.builtin or entry.package is None)):
        return None
    return "registry" if listed is not None else "non_registry"


def _how_to_start(entry: AgentEntry | None, receipt: Receipt) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Command and environment: the manifest's of today, where the install is of its package, else the receipt's."""
    process = next((artifact for artifact in receipt.artifacts if artifact.kind == "agent_process"), None)
    package = entry.package if entry else None
    if entry and package and process and (package.kind, package.name) == (receipt.layout, process.name):
        return entry.command, entry.env
    return receipt.command, receipt.env


def _is_name(agent: str) -> bool:
    try:
        check_agent_id(agent)
    except InvalidParams:
        return False
    return True


def _check_custom(name: str, agent: CustomAgent, manifest: Manifest) -> None:
    if not _is_name(name):
        raise ConfigError(f"agents.{name}: not a valid agent name")
    if not agent.command and name not in manifest.agents:
        raise ConfigError(f"agents.{name}: there is no such agent to add to, so it needs a `command`")
    try:
        InstallRequest(agent=name, agent_process_version=agent.version)
    except InvalidParams as error:
        raise ConfigError(f"agents.{name}: {error}") from error
