"""The manifest: every agent this program knows, read from `agents.toml` and checked as a whole."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Literal

import msgspec

from sandbox_agent.agents.names import check_agent_id, check_npm_name, check_pypi_name, check_version
from sandbox_agent.core.launch import Isolation
from sandbox_agent.errors import ConfigError, InvalidParams

PLATFORMS = ("linux-x86_64", "linux-aarch64", "darwin-x86_64", "darwin-aarch64")
Support = Literal["supported", "manual", "unsupported"]
_PLACEHOLDER = re.compile(r"\{[^}]*\}")
_PLACEHOLDERS = {"{bin}", "{root}", "{python}"}


class PackagePin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One package at one version."""

    name: str
    version: str


class Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The package that holds the agent process. npm runs its install scripts only where they are needed."""

    kind: Literal["npm", "pypi"]
    name: str
    version: str
    install_scripts: bool = False

    def __post_init__(self) -> None:
        (check_npm_name if self.kind == "npm" else check_pypi_name)(self.name)
        check_version(self.version)


class Native(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The program that the agent process drives: inside its package, or a package of its own."""

    name: str
    found: Literal["bundled", "package"]
    package: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        if (self.found == "package") != (self.package is not None and self.version is not None):
            raise InvalidParams(f"native {self.name!r}: package and version go with found = 'package'")
        if self.package is not None and self.version is not None:
            check_npm_name(self.package)
            check_version(self.version)


class Runtime(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    kind: Literal["node", "python"]
    min_version: str


class AgentEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One agent. `command`, `env`, `login` and `verify` are templates over {bin}, {root} and {python}."""

    id: str
    name: str
    support: Support
    license: str
    docs: str
    registry: tuple[str, ...] = ()
    """Names under which the registry lists it."""
    reason: str | None = None
    """Why it is not supported; `manual` says what a person does instead."""
    manual: str | None = None
    builtin: str | None = None
    """The module of ours that is the agent."""
    command: tuple[str, ...] = ()
    package: Package | None = None
    native: Native | None = None
    runtime: Runtime | None = None
    env: dict[str, str] = {}
    verify: tuple[str, ...] = ()
    verify_env: dict[str, str] = {}
    env_passthrough: tuple[str, ...] = ()
    login: tuple[str, ...] = ()
    auth_keys: dict[str, tuple[str, ...]] = {}
    """Auth methods of the agent that one of these variables satisfies."""
    login_env: tuple[str, ...] = ()
    """The variables that spare a login, where not every key that is passed through does."""
    advice: dict[str, str] = {}
    """What to do about errors of the agent that contain certain words, where the agent does not say."""
    platforms: tuple[str, ...] = PLATFORMS
    isolation: Isolation = "session"
    """What its sessions share. `process` only for agents that `sandbox-agent agents check` found to keep them apart."""
    skills: str | None = None
    """Where in a working directory it looks for skills: folders with a SKILL.md."""

    def __post_init__(self) -> None:
        for slug in (self.id, *self.registry):
            check_agent_id(slug)
        complaint = self._complaint()
        if complaint:
            raise InvalidParams(f"agent {self.id!r}: {complaint}")

    def _complaint(self) -> str | None:
        if self.support != "supported" and not self.reason:
            return f"support = {self.support!r} needs a reason"
        if self.support == "manual" and not (self.manual and self.command):
            return "support = 'manual' needs `manual` and `command`"
        if self.support == "supported" and not (self.builtin or (self.package and self.command and self.runtime)):
            return "needs `builtin`, or `package`, `runtime` and `command`"
        if unknown := set(self.login_env) - set(self.env_passthrough):
            return f"login_env names what is not passed through: {sorted(unknown)}"
        if unknown := set(self.platforms) - set(PLATFORMS):
            return f"unknown platforms {sorted(unknown)}"
        templates = (*self.command, *self.verify, *self.login, *self.env.values())
        used = {found for template in templates for found in _PLACEHOLDER.findall(template)}
        if used - _PLACEHOLDERS:
            return f"unknown placeholders {sorted(used - _PLACEHOLDERS)}"
        return None


class Manifest(msgspec.Struct, frozen=True):
    agents: dict[str, AgentEntry]
    private_node: dict[str, PackagePin] = {}

    def by_slug(self, slug: str) -> AgentEntry | None:
        """The agent that has this id, or that the registry lists under this slug."""
        known = self.agents.get(slug)
        return known or next((entry for entry in self.agents.values() if slug in entry.registry), None)


def parse_manifest(text: str) -> Manifest:
    """Raises ConfigError that names the agent and the field."""
    try:
        document = tomllib.loads(text)
        if unknown := set(document) - {"agents", "private_node"}:
            raise ConfigError(f"manifest: unknown tables {sorted(unknown)}")
        agents = {name: _entry(name, table) for name, table in document.get("agents", {}).items()}
        nodes = msgspec.convert(document.get("private_node", {}), dict[str, PackagePin])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"manifest: {error}") from error
    return Manifest(agents=agents, private_node=nodes)


@functools.cache
def load_manifest() -> Manifest:
    """The manifest that ships with this program."""
    text = resources.files("sandbox_agent.agents").joinpath("agents.toml").read_text(encoding="utf-8")
    return parse_manifest(text)


def _entry(name: str, table: Mapping[str, object]) -> AgentEntry:
    try:
        return msgspec.convert({**table, "id": name}, AgentEntry)
    except (msgspec.ValidationError, InvalidParams) as error:
        raise ConfigError(f"manifest, agent {name!r}: {error}") from error
