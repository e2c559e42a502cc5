"""`sandbox-agent agents check`: how an agent behaves when several clients share it."""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from sandbox_agent.agents import Catalog
from sandbox_agent.cli.jsonl import print_json
from sandbox_agent.cli.target import run_async
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import Isolation, LaunchSpec
from sandbox_agent.errors import AgentNotInstalled
from sandbox_agent.files import FileService
from sandbox_agent.hub.agents.host import Host
from sandbox_agent.hub.conformance.checks import Conformance, Finding, Subject
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.processes.processes import Processes
from sandbox_agent.process import child_environment
from sandbox_agent.serve import file_limits, process_options
from sandbox_agent.settings import Settings, load_settings

_STYLES = {"ok": "green", "note": "yellow", "fail": "red", "skipped": "bright_black"}


def run_check(agent: str | None, command: str | None, config: Path | None, *, timeout: float, is_json: bool) -> int:
    """The exit code: 1 if a check failed."""
    if (agent is None) == (command is None):
        raise click.UsageError("give an agent, or a program with --command")
    settings = load_settings(os.environ, config, {})
    findings = run_async(_check(settings, agent, command, timeout=timeout, tells=not is_json))
    if is_json:
        print_json({"agent": agent or command, "findings": msgspec.to_builtins(findings)})
    return 1 if any(finding.verdict == "fail" for finding in findings) else 0


async def _check(
    settings: Settings, agent: str | None, command: str | None, *, timeout: float, tells: bool
) -> list[Finding]:
    launch, isolation = _launch(settings, agent, command)
    env = child_environment(settings.environ, extra=launch.env, passthrough=launch.env_passthrough)
    with tempfile.TemporaryDirectory(prefix="sandbox-agent-check-") as work:
        files = FileService((), Path(work), file_limits(settings), data_dir=None)
        options = replace(process_options(settings), folder=Path(work) / ".processes")
        host = Host(settings.environ, files, Processes(settings.environ, files, Feed(kept_bytes=0), options))
        try:
            launch = msgspec.structs.replace(launch, cwd=launch.cwd or Path(work))  # some leave files where they start
            subject = Subject(launch, env, host, Path(work), timeout, isolation)
            return await Conformance(subject)(_tell if tells else lambda finding: None)
        finally:
            await host.close()


def _launch(settings: Settings, agent: str | None, command: str | None) -> tuple[LaunchSpec, Isolation]:
    """Raises UnknownAgent, AgentNotInstalled."""
    if command is not None or agent is None:
        return LaunchSpec(agent=AgentId("agent"), command=tuple(shlex.split(command or ""))), "process"
    catalog = Catalog(
        settings.agents, data_dir=settings.data_path, registry_url=settings.acp_registry_url, env=settings.environ
    )
    name = AgentId(agent)
    if not catalog.describe(name).installed:
        raise AgentNotInstalled(f"{agent} is not installed", agent=agent)
    launch = catalog.present(name)
    if launch is None:
        raise AgentNotInstalled(f"{agent} was removed", agent=agent)
    return launch, catalog.isolation(name)


def _tell(finding: Finding) -> None:
    verdict = click.style(f"{finding.verdict:8}", fg=_STYLES[finding.verdict])
    click.echo(f"{verdict} {finding.check:22} {finding.detail}")
