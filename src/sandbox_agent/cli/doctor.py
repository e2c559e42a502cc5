"""`sandbox-agent doctor`: what is well on this machine, what is not, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from sandbox_agent.cli.daemon_state import read_state
from sandbox_agent.cli.project import NAME, find_project
from sandbox_agent.cli.target import Target, is_serving, run_async, target_options
from sandbox_agent.client.sandbox import DEFAULT_URL
from sandbox_agent.core import frames
from sandbox_agent.core.json_values import as_object, read_json
from sandbox_agent.core.versions import LATEST
from sandbox_agent.errors import SandboxAgentError
from sandbox_agent.settings import Settings, load_settings
from sandbox_agent.version import __version__

Verdict = Literal["ok", "warn", "fail"]
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
_LITTLE_SPACE = 512 << 20


class Finding(msgspec.Struct, frozen=True):
    check: str
    verdict: Verdict
    detail: str
    todo: str = ""


@click.command()
@target_options
def doctor(target: Target) -> None:
    """Check the installation and suggest fixes. Exit code 1 if a check fails."""
    try:
        settings = load_settings(os.environ, None, {})
    except SandboxAgentError as error:
        findings = [Finding("settings", "fail", error.detail, "fix the environment variable")]
    else:
        findings = list(_findings(target, settings))
    if target.is_json:
        from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

        print_json(msgspec.to_builtins(findings))
    else:
        _show(findings)
    sys.exit(1 if any(finding.verdict == "fail" for finding in findings) else 0)


def _findings(target: Target, settings: Settings) -> Iterator[Finding]:
    yield Finding("version", "ok", f"sandbox-agent {__version__}, Python {platform.python_version()}")
    yield _data_dir(settings.data_path)
    yield check_project()
    yield _node()
    yield run_async(_server(target))
    yield _daemon()
    yield from _agents(settings)
    yield _built_in_agent()
    yield from run_async(_mcp_servers(settings))


def _data_dir(path: Path) -> Finding:
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".doctor-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
        free = shutil.disk_usage(path).free
    except OSError as error:
        return Finding(
            "data directory", "fail", f"{path}: {error.strerror}", "set SANDBOX_AGENT_DATA_DIR to a writable directory"
        )
    if free < _LITTLE_SPACE:
        return Finding("data directory", "warn", f"{path}: only {free >> 20} MiB free", "free some disk space")
    return Finding("data directory", "ok", f"{path}, {free >> 30} GiB free")


def check_project() -> Finding:
    """Which file of a project `run` would use here."""
    try:
        found = find_project(Path.cwd())
    except SandboxAgentError as error:
        return Finding("project", "fail", error.detail, "correct the file")
    if found is None:
        return Finding("project", "ok", f"no {NAME} here or above")
    said = ", ".join(f"{name} = {value}" for name, value in found.run.given.items())
    return Finding("project", "ok", f"{found.path}: {said or 'nothing'}")


def _node() -> Finding:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        missing = "node" if node is None else "npm"
        return Finding("node", "warn", f"{missing} is not on PATH", "most agents need Node.js 20 or newer, with npm")
    said = _said([node, "--version"])
    return Finding("node", "ok", f"{said or '?'} at {node}")


async def _server(target: Target) -> Finding:
    url = target.endpoint or DEFAULT_URL
    if await is_serving(url):
        return Finding("server", "ok", f"running at {url}")
    if target.endpoint is not None:
        problem = f"no sandbox-agent server answers at {url}"
        return Finding("server", "fail", problem, "check the address, or start the server")
    if _is_taken(2468):
        return Finding(
            "server",
            "warn",
            "port 2468 is in use by another program",
            "use another port: `sandbox-agent server --port N`",
        )
    return Finding("server", "ok", f"not running; {url} is free", "start one with `sandbox-agent daemon start`")


def _daemon() -> Finding:
    state = read_state()
    if state is None:
        return Finding("daemon", "ok", "not started")
    if not state.is_alive():
        return Finding(
            "daemon",
            "warn",
            f"process {state.pid} has exited",
            f"see {state.log}; start it again with `sandbox-agent daemon start`",
        )
    if state.version != __version__:
        return Finding(
            "daemon",
            "warn",
            f"running version {state.version}, not {__version__}",
            "restart it with `sandbox-agent daemon start --upgrade`",
        )
    return Finding("daemon", "ok", f"running at {state.url}, pid {state.pid}")


def _agents(settings: Settings) -> Iterator[Finding]:
    from sandbox_agent.agents import Catalog  # noqa: PLC0415

    try:
        catalog = Catalog(settings.agents, data_dir=settings.data_path, env=settings.environ)
        listings = [catalog.describe(agent) for agent in catalog.ids()]
    except SandboxAgentError as error:
        yield Finding("agents", "fail", error.detail, "fix the config file")
        return
    installed = [listing for listing in listings if listing.installed]
    names = ", ".join(listing.id for listing in installed)
    others = len(listings) - len(installed)
    yield Finding("agents", "ok", f"installed: {names}; {others} more available", "see `sandbox-agent agents list`")
    for listing in installed:
        if listing.source not in {"builtin", "custom"} and not listing.credentials_available:
            todo = f"see `sandbox-agent agents show {listing.id}`"
            yield Finding(f"login {listing.id}", "warn", "no API key or login found", todo)


def _built_in_agent() -> Finding:
    """Asked as the server asks every agent: for the latest version of ACP."""
    from sandbox_agent.hub.agents.handshake import initialize_params, read_initialized  # noqa: PLC0415

    hello = frames.request(b"0", "initialize", initialize_params(LATEST)) + b"\n"
    said = _said([sys.executable, "-m", "sandbox_agent.mock_agent"], hello, patience=60.0)
    answer = read_json(said.encode()) if said else None
    initialized = read_initialized(as_object(answer).get("result"))
    if initialized is not None:
        return Finding("built-in agent", "ok", f"works, ACP version {int(initialized.version)}")
    return Finding("built-in agent", "fail", "does not respond", "reinstall sandbox-agent")


async def _mcp_servers(settings: Settings) -> list[Finding]:
    """Of the MCP servers that a session in the current directory would get, which start."""
    from sandbox_agent.files import FileService  # noqa: PLC0415
    from sandbox_agent.hub.directories.entries import DirectoryEntries  # noqa: PLC0415
    from sandbox_agent.hub.directories.probe import probe  # noqa: PLC0415
    from sandbox_agent.hub.directories.servers import resolved  # noqa: PLC0415
    from sandbox_agent.serve import file_limits  # noqa: PLC0415

    files = FileService((), Path.cwd(), file_limits(settings), data_dir=None)
    findings: list[Finding] = []
    try:
        entries = await DirectoryEntries(files, settings.data_path / "directory-config").found("mcp", str(files.cwd))
        for entry in entries:
            if entry.config.get("enabled") is False:
                continue
            try:
                said = await probe(resolved(entry, settings.environ), settings.environ, files.cwd)
                findings.append(Finding(f"mcp {entry.name}", "ok", said))
            except SandboxAgentError as error:
                todo = f"see `sandbox-agent mcp list`; it is configured in {entry.directory}"
                findings.append(Finding(f"mcp {entry.name}", "fail", error.detail, todo))
    finally:
        await files.close()
    return findings


def _said(command: list[str], given: bytes = b"", *, patience: float = 20.0) -> str | None:
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=patience, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace").strip()


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _show(findings: list[Finding]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console: Any = Console(highlight=False)
    width = max(len(finding.check) for finding in findings)
    line: Callable[..., Text] = Text.assemble
    for finding in findings:
        mark = (f"{finding.verdict:<5}", _STYLES[finding.verdict])
        console.print(line(mark, (f"{finding.check:<{width}}  ", "bold"), finding.detail))
        if finding.todo:
            console.print(Text(f"{'':<{width + 7}}→ {finding.todo}", style="dim"))
