"""What people read about installing an agent: written from the manifest, so that it cannot go stale."""

from __future__ import annotations

from collections.abc import Iterator

from sandbox_agent.agents.manifest import AgentEntry, Manifest
from sandbox_agent.agents.registry import RegistryAgent

BEGIN = "<!-- begin: written from agents.toml -->"
END = "<!-- end: written from agents.toml -->"
_RUNTIMES = {"node": "Node.js", "python": "Python"}


def install_command(agent: str) -> str:
    return f"sandbox-agent install-agent {agent}"


def write_instructions(entry: AgentEntry, listed: RegistryAgent | None = None) -> str:
    """A few lines of plain text for one agent: what the registry says of it where it is `listed`, else the manifest."""
    return "\n".join(_lines(entry, listed))


def registry_instructions(listed: RegistryAgent) -> str:
    """The same for an agent that only the registry knows."""
    lines = [f"install: {install_command(listed.id)}", *_from_registry(listed)]
    return "\n".join([*lines, *([f"docs: {listed.repository}"] if listed.repository else [])])


def render_page(manifest: Manifest) -> str:
    """The generated part of `docs/agents.md`, between its two markers."""
    rows = [
        f"| `{entry.id}` | [{entry.name}]({entry.docs}) | {entry.support} | {_package(entry)} "
        f"| {_needs(entry) or '—'} | {entry.license} |"
        for entry in manifest.agents.values()
    ]
    table = "\n".join(["| agent | name | support | package | needs | licence |", "|---|---|---|---|---|---|", *rows])
    sections = [f"### {entry.id}\n\n" + "\n".join(_bullets(entry)) for entry in manifest.agents.values()]
    return "\n\n".join([BEGIN, table, *sections, END])


def replace_generated(page: str, manifest: Manifest) -> str:
    """`page` with its generated part written anew."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{render_page(manifest)}{tail}"


def _bullets(entry: AgentEntry) -> Iterator[str]:
    for line in _lines(entry):
        label, colon, value = line.partition(": ")
        code = label in {"install", "by hand", "starts", "log in"}
        yield f"- {label}: `{value}`" if colon and code else f"- {line}"


def _lines(entry: AgentEntry, listed: RegistryAgent | None = None) -> Iterator[str]:
    if entry.builtin:
        yield f"{entry.name} is part of sandbox-agent: there is nothing to install."
    elif entry.support == "supported" and entry.package:
        yield f"install: {install_command(entry.id)}"
        if listed is not None:
            yield from _from_registry(listed)
        else:
            yield f"by hand: {_by_hand(entry)}"
    else:
        yield f"{entry.reason}"
        if entry.manual:
            yield entry.manual
    if entry.runtime:
        yield f"needs: {_needs(entry)}"
    if entry.command:
        yield "starts: " + " ".join(part.removeprefix("{bin}/") for part in entry.command if part != "{python}")
    if entry.login:
        yield "log in: " + " ".join(part.removeprefix("{bin}/") for part in entry.login)
    if entry.env_passthrough:
        yield f"environment: {', '.join(entry.env_passthrough)}"
    if entry.registry:
        yield f"registry: {', '.join(entry.registry)}"
    if entry.package:
        yield f"platforms: {', '.join(entry.platforms)}"
    yield f"docs: {entry.docs}"


def _from_registry(listed: RegistryAgent) -> Iterator[str]:
    ways = listed.distribution
    yield f"version: {listed.version} (ACP registry: {listed.id})"
    if ways.npx is not None:
        yield "by hand: " + " ".join(["npx", ways.npx.package, *ways.npx.args])
    if ways.uvx is not None:
        yield "by hand: " + " ".join(["uvx", ways.uvx.package, *ways.uvx.args])
    for platform, binary in sorted(ways.binary.items()):
        yield f"archive for {platform}: {binary.archive}, starts {' '.join([binary.cmd, *binary.args])}"


def _by_hand(entry: AgentEntry) -> str:
    package, native = entry.package, entry.native
    if package is None:
        return ""
    if package.kind == "pypi":
        return f"uv tool install {package.name}=={package.version}"
    extra = f" {native.package}@{native.version}" if native and native.package else ""
    return f"npm install -g {package.name}@{package.version}{extra}"


def _package(entry: AgentEntry) -> str:
    if entry.builtin:
        return "built in"
    return f"{entry.package.kind} `{entry.package.name}` {entry.package.version}" if entry.package else "—"


def _needs(entry: AgentEntry) -> str:
    return f"{_RUNTIMES[entry.runtime.kind]} {entry.runtime.min_version} or newer" if entry.runtime else ""
