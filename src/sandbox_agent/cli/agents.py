"""`sandbox-agent agents` and `install-agent`: of the server that --endpoint names, else of the daemon, else here."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sandbox_agent.cli.completion import complete_agents
from sandbox_agent.cli.lazy import SuggestingGroup
from sandbox_agent.cli.target import Target, run_async, target_options
from sandbox_agent.errors import InstallError, SandboxAgentError

if TYPE_CHECKING:
    from sandbox_agent.agents import Catalog, Progress

Facts = dict[str, Any]


@click.group(cls=SuggestingGroup)
def agents() -> None:
    """List, show, install and check agents: of the server given with --endpoint, of the daemon, or of this machine."""


@agents.command("list")
@target_options
def list_(target: Target) -> None:
    """List agents that are installed or can be installed."""
    found: list[Facts] = run_async(_list(target))
    if target.is_json:
        _print_json(found)
        return
    from rich.text import Text  # noqa: PLC0415

    from sandbox_agent.cli.tables import print_table  # noqa: PLC0415

    rows = [
        (
            agent["id"],
            Text("installed", style="green") if agent["installed"] else Text(_absent(agent), style="dim"),
            agent.get("version") or "",
            agent.get("source") or "",
            "yes" if agent.get("credentialsAvailable") else "",
            _protocol(agent) or "",
            agent.get("name") or "",
        )
        for agent in found
    ]
    print_table(("AGENT", "STATUS", "VERSION", "SOURCE", "LOGIN", "PROTOCOL", "NAME"), rows, empty="no agents")


@agents.command()
@click.argument("agent", shell_complete=complete_agents)
@target_options
def show(target: Target, agent: str) -> None:
    """Show details of an agent and how to install it."""
    facts: Facts = run_async(_show(target, agent))
    if target.is_json:
        _print_json(facts)
        return
    from sandbox_agent.cli.tables import print_facts  # noqa: PLC0415

    print_facts(
        [
            ("agent", facts["id"]),
            ("name", facts.get("name")),
            ("status", "installed" if facts["installed"] else _absent(facts)),
            ("version", facts.get("version")),
            ("source", facts.get("source")),
            ("path", facts.get("path")),
            ("protocol", _protocol(facts)),
            ("credentials found", "yes" if facts.get("credentialsAvailable") else "no"),
        ]
    )
    if facts.get("instructions"):
        click.echo(f"\n{facts['instructions']}")


@agents.command()
@click.argument("agent", shell_complete=complete_agents)
@click.option("--reinstall", is_flag=True, help="Reinstall even if installed.")
@click.option("--agent-version", help="Version of the agent.")
@click.option("--agent-process-version", help="Version of the agent's ACP adapter.")
@target_options
def install(target: Target, agent: str, **options: Any) -> None:
    """Install an agent, unless it is installed."""
    _report(target, [run_async(_install(target, agent, options))])


@agents.command()
@click.argument("agent", required=False, shell_complete=complete_agents)
@click.option("--command", "command", metavar="COMMAND", help="Check this program instead of an installed agent.")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="TOML file with settings and agents.")
@click.option(
    "--timeout", type=click.FloatRange(1), default=120.0, show_default=True, help="Seconds to wait for each answer."
)
@click.option("--json", "is_json", is_flag=True, help="Output JSON.")
def check(agent: str | None, command: str | None, config: Path | None, timeout: float, *, is_json: bool) -> None:
    """Check how an agent behaves when several clients share it.

    Talks to an installed agent, which needs its usual login or API key: whether it keeps sessions apart, asks for
    permission, obeys rejections and cancels, takes sessions up again after a crash, and leaves nothing running. Exit
    code 1 if a check fails.
    """
    from sandbox_agent.cli.check import run_check  # noqa: PLC0415

    sys.exit(run_check(agent, command, config, timeout=timeout, is_json=is_json))


@click.command("install-agent")
@click.argument("agent", metavar="AGENT|all", shell_complete=complete_agents)
@click.option("--reinstall", is_flag=True, help="Reinstall even if installed.")
@click.option("--agent-version", help="Version of the agent.")
@click.option("--agent-process-version", help="Version of the agent's ACP adapter.")
@target_options
def install_agent(target: Target, agent: str, **options: Any) -> None:
    """Install an agent, or all of them."""
    if agent != "all":
        _report(target, [run_async(_install(target, agent, options))])
        return
    done: list[Facts] = []
    failed: list[str] = []
    for facts in run_async(_list(target)):
        if facts.get("support") not in {None, "supported"} or facts.get("source") in {"builtin", "custom"}:
            continue
        try:
            done.append(run_async(_install(target, facts["id"], options)))
        except SandboxAgentError as error:
            failed.append(facts["id"])
            click.echo(f"{facts['id']}: {error.detail}", err=True)
    _report(target, done)
    if failed:
        raise InstallError(f"could not install: {', '.join(failed)}")


def _protocol(facts: Facts) -> str | None:
    """The version of ACP that it speaks; None where no server has started it yet."""
    version = (facts.get("serverStatus") or {}).get("protocolVersion")
    return None if version is None else f"ACP {version}"


async def _list(target: Target) -> list[Facts]:
    if target.is_elsewhere:
        async with target.open() as sandbox:
            return await sandbox.agents.list()
    catalog = _catalog()
    return [_facts(await asyncio.to_thread(catalog.describe, agent)) for agent in catalog.ids()]


async def _show(target: Target, agent: str) -> Facts:
    if target.is_elsewhere:
        async with target.open() as sandbox:
            return await sandbox.agents.get(agent)
    return _facts(await asyncio.to_thread(_catalog().describe, agent))  # type: ignore[arg-type]


async def _install(target: Target, agent: str, options: dict[str, Any]) -> Facts:
    from sandbox_agent.cli.progress import install_progress  # noqa: PLC0415

    with install_progress(agent, is_shown=not target.is_json) as advance:
        if target.is_elsewhere:
            async with target.open() as sandbox:
                from sandbox_agent.agents import Progress as Step  # noqa: PLC0415

                told = await sandbox.agents.install(agent, progress=lambda step: advance(Step(**step)), **options)
                return {"agent": agent, **told}
        from sandbox_agent.agents import InstallWish  # noqa: PLC0415
        from sandbox_agent.core.ids import AgentId  # noqa: PLC0415

        progress: Callable[[Progress], None] = advance
        wish = InstallWish(**options)
        return _facts(await _catalog().install(AgentId(agent), wish, progress=progress))


def _catalog() -> Catalog:
    from sandbox_agent.agents import Catalog  # noqa: PLC0415
    from sandbox_agent.settings import load_settings  # noqa: PLC0415

    settings = load_settings(os.environ, None, {})
    return Catalog(
        settings.agents, data_dir=settings.data_path, registry_url=settings.acp_registry_url, env=settings.environ
    )


def _facts(value: Any) -> Facts:
    import msgspec  # noqa: PLC0415

    facts: Facts = msgspec.to_builtins(value)
    return facts


def _report(target: Target, done: list[Facts]) -> None:
    if target.is_json:
        _print_json(done if len(done) != 1 else done[0])
        return
    from sandbox_agent.cli.tables import size_text  # noqa: PLC0415

    for result in done:
        is_old = result.get("alreadyInstalled", result.get("already_installed"))
        origin = " ".join(str(part) for part in (result.get("version"), result.get("source")) if part)
        click.echo(f"{result['agent']}: {'already installed' if is_old else 'installed'} {origin}".rstrip())
        for artifact in result.get("artifacts", []):
            size = size_text(artifact["sizeBytes"]) if artifact.get("sizeBytes") else ""
            parts = (artifact.get("name"), artifact.get("version"), size, artifact.get("path"))
            click.echo("  " + "  ".join(str(part) for part in parts if part))


def _absent(agent: Facts) -> str:
    return {"manual": "manual", "unsupported": "unsupported"}.get(str(agent.get("support")), "not installed")


def _print_json(value: Any) -> None:
    from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

    print_json(value)
