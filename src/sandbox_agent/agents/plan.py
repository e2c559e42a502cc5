"""Decide an install: manifest, registry, machine and wishes go in, steps come out. No IO."""

from __future__ import annotations

from typing import Literal

import msgspec

from sandbox_agent.agents.manifest import AgentEntry, Manifest, Native, Package, PackagePin, Runtime
from sandbox_agent.agents.names import (
    check_agent_id,
    check_npm_name,
    check_pypi_name,
    check_version,
    version_key,
)
from sandbox_agent.agents.registry import BinaryTarget, PackageTarget, RegistryAgent, RegistryIndex
from sandbox_agent.agents.shelf import ArtifactKind, Receipt, Source
from sandbox_agent.agents.surroundings import Surroundings
from sandbox_agent.errors import InstallError, InstallImpossible, InvalidParams, UnknownAgent

NPM_NEEDS_NODE = (18,)
_ANY_FROM = ">="
_RUNTIME_NAMES = {"node": "Node.js", "python": "Python"}
_RUNTIME_ADVICE = {
    "node": "install it from https://nodejs.org (npm comes with it) and see that `node` and `npm` are on PATH",
    "python": "install it from https://www.python.org, or install uv, which fetches Pythons by itself",
}


class InstallWish(msgspec.Struct, frozen=True, rename="camel"):
    """What somebody asks for. `agent_version` pins the program, `agent_process_version` what speaks ACP for it."""

    reinstall: bool = False
    agent_version: str | None = None
    agent_process_version: str | None = None


class InstallRequest(InstallWish, frozen=True, kw_only=True):
    """A wish for an agent, checked."""

    agent: str

    def __post_init__(self) -> None:
        check_agent_id(self.agent)
        for version in (self.agent_version, self.agent_process_version):
            if version is not None:
                check_version(version)


class NpmStep(msgspec.Struct, frozen=True, kw_only=True):
    packages: tuple[PackagePin, ...]
    install_scripts: bool
    private_node: PackagePin | None = None


class PypiStep(msgspec.Struct, frozen=True, kw_only=True):
    package: PackagePin
    uv: str | None
    python: str


class ArchiveStep(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    command: str
    sha256: str | None
    size: int | None


Step = NpmStep | PypiStep | ArchiveStep


class PlannedArtifact(msgspec.Struct, frozen=True):
    kind: ArtifactKind
    name: str
    version: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Steps into an empty directory. An empty `command` is that of the package itself, known once it is there."""

    agent: str
    version: str
    source: Source
    layout: Literal["npm", "pypi", "archive"]
    step: Step
    artifacts: tuple[PlannedArtifact, ...]
    command: tuple[str, ...]
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    verify: tuple[str, ...] = ()
    verify_env: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    """What a person should know before anything is downloaded."""


def satisfies(receipt: Receipt, request: InstallRequest, entry: AgentEntry | None) -> bool:
    """Whether what is installed is what was asked for. Without pins any version is."""
    process, native = _pins(request, entry)
    versions = {artifact.kind: artifact.version for artifact in receipt.artifacts}
    return (process is None or versions.get("agent_process") == process) and (
        native is None or versions.get("native_agent") == native
    )


def may_need_python(request: InstallRequest, manifest: Manifest, index: RegistryIndex | None) -> bool:
    """Whether the machine's Pythons can matter to the plan: looking for them takes a second on some machines."""
    entry = manifest.agents.get(request.agent)
    listed = find_listed(request.agent, entry, index)
    ours = entry is not None and entry.package is not None and entry.package.kind == "pypi"
    return ours or (listed is not None and listed.distribution.uvx is not None)


def check_installable(entry: AgentEntry) -> None:
    """Raises InstallImpossible for an agent that nobody installs through us, on any machine."""
    if entry.builtin or entry.support != "supported":
        raise InstallImpossible(_refusal(entry), support=entry.support)


def plan_install(
    request: InstallRequest, manifest: Manifest, index: RegistryIndex | None, machine: Surroundings
) -> Plan:
    """Raises UnknownAgent, InvalidParams, or InstallImpossible with what is missing: all before any download."""
    entry = manifest.agents.get(request.agent)
    listed = find_listed(request.agent, entry, index)
    if entry is None:
        if listed is None:
            known = sorted({*manifest.agents, *(index.agents if index else ())})
            raise UnknownAgent(request.agent, known=known)
        return _from_registry(request, None, listed, manifest, machine)
    check_installable(entry)
    if machine.platform not in entry.platforms:
        raise InstallImpossible(
            f"{entry.name} does not run on {machine.platform}; it runs on {', '.join(entry.platforms)}",
            platform=machine.platform,
        )
    if listed is not None and _usable(listed, request, entry, machine):
        return _from_registry(request, entry, listed, manifest, machine)
    return _from_pin(request, entry, manifest, machine)


def _refusal(entry: AgentEntry) -> str:
    if entry.builtin:
        return f"{entry.name} is part of this program: there is nothing to install"
    return f"{entry.name} is not installed by this program. {entry.reason} {entry.manual or ''}".strip()


def find_listed(agent: str, entry: AgentEntry | None, index: RegistryIndex | None) -> RegistryAgent | None:
    """What the registry says of the agent, under whichever of its names."""
    slugs = entry.registry if entry else (agent,)
    return next((index.agents[slug] for slug in slugs if slug in index.agents), None) if index else None


def _usable(listed: RegistryAgent, request: InstallRequest, entry: AgentEntry, machine: Surroundings) -> bool:
    """For an agent with a pin of our own, a registry entry that cannot serve this wish is passed over."""
    ways = listed.distribution
    process, _ = _pins(request, entry)
    return bool(ways.npx or ways.uvx or (machine.platform in ways.binary and process in {None, listed.version}))


def _pins(request: InstallRequest, entry: AgentEntry | None) -> tuple[str | None, str | None]:
    """The versions asked for: of the agent process, and of its native agent where that is a package of its own."""
    process, native = request.agent_process_version, request.agent_version
    if entry is not None and entry.native is not None:
        if native is not None and entry.native.found == "bundled":
            raise InvalidParams(f"{entry.name} comes inside its agent process: pin the agent process version instead")
        return process, native
    if process and native and process != native:
        raise InvalidParams(f"{request.agent!r} is one program: it cannot have versions {native} and {process} at once")
    return process or native, None


def _from_pin(request: InstallRequest, entry: AgentEntry, manifest: Manifest, machine: Surroundings) -> Plan:
    package = entry.package
    assert package is not None  # noqa: S101 - the manifest's own check
    process, _ = _pins(request, entry)
    pinned = PackagePin(name=package.name, version=process or package.version)
    return _package_plan(request, entry, package, pinned, "fallback", manifest, machine)


def _from_registry(
    request: InstallRequest,
    entry: AgentEntry | None,
    listed: RegistryAgent,
    manifest: Manifest,
    machine: Surroundings,
) -> Plan:
    """The manifest's kind of package first, then a binary for this platform, then whatever package there is."""
    ways = listed.distribution
    ours = entry.package if entry else None
    process, _ = _pins(request, entry)
    binary = ways.binary.get(machine.platform)
    same = {"npm": ways.npx, "pypi": ways.uvx}[ours.kind] if ours else None
    if binary is not None and same is None and process in {None, listed.version}:
        return _archive_plan(request, listed, binary)
    target = same or ways.npx or ways.uvx
    if target is None:
        if binary is not None:
            raise InvalidParams(f"the registry has {request.agent!r} in version {listed.version} only, not {process}")
        has = ", ".join(sorted(ways.binary)) or "none"
        raise InstallImpossible(
            f"the registry has no {request.agent!r} for {machine.platform}; it has {has}", platform=machine.platform
        )
    kind: Literal["npm", "pypi"] = "npm" if target is ways.npx else "pypi"
    pinned = _split_package(target.package, kind, listed.version)
    if process:
        pinned = PackagePin(name=pinned.name, version=process)
    if ours and entry and (ours.kind, ours.name) == (kind, pinned.name):
        return _package_plan(request, entry, ours, pinned, "registry", manifest, machine)
    return _foreign_plan(request, kind, target, pinned, manifest, machine)


def _foreign_plan(
    request: InstallRequest,
    kind: Literal["npm", "pypi"],
    target: PackageTarget,
    pinned: PackagePin,
    manifest: Manifest,
    machine: Surroundings,
) -> Plan:
    """A package that the manifest does not describe: launched by its own command with the registry's arguments."""
    stranger = AgentEntry(
        id=request.agent,
        name=request.agent,
        support="supported",
        license="",
        docs="",
        package=Package(kind=kind, name=pinned.name, version=pinned.version, install_scripts=True),
        runtime=Runtime(kind="node" if kind == "npm" else "python", min_version="18" if kind == "npm" else "3.10"),
        command=("{bin}/-",),
    )
    assert stranger.package is not None  # noqa: S101
    plan = _package_plan(request, stranger, stranger.package, pinned, "registry", manifest, machine)
    return msgspec.structs.replace(plan, command=(), args=target.args, env=target.env)


def _package_plan(
    request: InstallRequest,
    entry: AgentEntry,
    package: Package,
    pinned: PackagePin,
    source: Source,
    manifest: Manifest,
    machine: Surroundings,
) -> Plan:
    native = _native_pin(request, entry.native)
    assert entry.runtime is not None  # noqa: S101 - the manifest's own check
    step: Step
    notes: tuple[str, ...] = ()
    artifacts = [PlannedArtifact("agent_process", pinned.name, pinned.version)]
    if native:
        artifacts.append(PlannedArtifact("native_agent", native.name, native.version))
    if package.kind == "npm":
        node = _private_node(entry, entry.runtime, manifest, machine)
        packages = (pinned, *([native] if native else ()), *([node] if node else ()))
        step = NpmStep(packages=packages, install_scripts=package.install_scripts, private_node=node)
        if node:
            artifacts.append(PlannedArtifact("runtime", node.name, node.version))
    else:
        step = PypiStep(package=pinned, uv=machine.uv, python=_python(entry, entry.runtime, machine))
        if step.python.startswith(_ANY_FROM):
            need = entry.runtime.min_version
            notes = (f"no Python {need} or newer was found: uv downloads one, from outside any package registry",)
    return Plan(
        agent=request.agent,
        version="+".join([pinned.version, *([native.version] if native else ())]),
        source=source,
        layout=package.kind,
        step=step,
        artifacts=tuple(artifacts),
        command=entry.command,
        env=entry.env,
        verify=entry.verify,
        verify_env=entry.verify_env,
        notes=notes,
    )


def _native_pin(request: InstallRequest, native: Native | None) -> PackagePin | None:
    if native is None or native.package is None or native.version is None:
        return None
    return PackagePin(name=native.package, version=request.agent_version or native.version)


def _archive_plan(request: InstallRequest, listed: RegistryAgent, binary: BinaryTarget) -> Plan:
    command = binary.cmd.removeprefix("./")
    if not command or command.startswith(("/", "-")) or ".." in command.split("/"):
        raise InstallError(f"the registry names a command outside its archive: {binary.cmd!r}")
    try:
        version = check_version(listed.version)
    except InvalidParams as error:
        raise InstallError(f"the registry states a version that is none: {error}") from error
    return Plan(
        agent=request.agent,
        version=version,
        source="registry",
        layout="archive",
        step=ArchiveStep(url=binary.archive, command=command, sha256=binary.sha256, size=binary.size),
        artifacts=(PlannedArtifact("agent_process", listed.id, version),),
        command=(f"{{root}}/files/{command}", *binary.args),
        env=binary.env,
    )


def _private_node(entry: AgentEntry, runtime: Runtime, manifest: Manifest, machine: Surroundings) -> PackagePin | None:
    """None when the machine's own Node.js will do; a private one when it is too old but can run npm."""
    node = machine.node
    if node is not None and machine.npm is not None:
        if node.version >= version_key(runtime.min_version):
            return None
        private = manifest.private_node.get(machine.platform)
        if private is not None and node.version >= NPM_NEEDS_NODE:
            return private
    raise _runtime_missing(entry, runtime, f"{_dotted(node.version)} is there" if node else "none is there")


def _python(entry: AgentEntry, runtime: Runtime, machine: Surroundings) -> str:
    """A Python that is new enough; with uv, the version for uv to find or fetch."""
    need = version_key(runtime.min_version)
    fitting = [tool for tool in machine.pythons if tool.version >= need]
    if fitting:
        return fitting[0].path
    if machine.uv:
        return f"{_ANY_FROM}{runtime.min_version}"
    best = max((tool.version for tool in machine.pythons), default=())
    raise _runtime_missing(entry, runtime, f"{_dotted(best)} is there" if best else "none is there")


def _runtime_missing(entry: AgentEntry, runtime: Runtime, found: str) -> InstallImpossible:
    name = _RUNTIME_NAMES[runtime.kind]
    return InstallImpossible(
        f"{entry.name} needs {name} {runtime.min_version} or newer, and {found}: {_RUNTIME_ADVICE[runtime.kind]}",
        runtime=runtime.kind,
        minVersion=runtime.min_version,
    )


def _split_package(package: str, kind: Literal["npm", "pypi"], default: str) -> PackagePin:
    """Take `@scope/name@1.2.3`, `name@1.2.3` or `name==1.2.3`; without a version, the one the registry states."""
    name, _, version = package.replace("==", "@").rpartition("@")
    if not name:
        name, version = package, ""
    try:
        (check_npm_name if kind == "npm" else check_pypi_name)(name)
        return PackagePin(name=name, version=check_version(version or default))
    except InvalidParams as error:
        raise InstallError(f"the registry names a package that is none, {package[:200]!r}: {error}") from error


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
