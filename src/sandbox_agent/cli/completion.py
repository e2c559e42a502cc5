"""`sandbox-agent completion`: a shell's completion script, and what it completes besides commands and options."""

from __future__ import annotations

import asyncio
import os

import click
from click.shell_completion import CompletionItem, get_completion_class

from sandbox_agent.cli.target import Target
from sandbox_agent.errors import SandboxAgentError

_PROGRAM = "sandbox-agent"
_PATIENCE = 2.0
"""Seconds that somebody who pressed Tab waits for a server at most."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell completion script.

    bash: `sandbox-agent completion bash >> ~/.bashrc`; zsh: `sandbox-agent completion zsh >> ~/.zshrc`; fish:
    `sandbox-agent completion fish > ~/.config/fish/completions/sandbox-agent.fish`."""
    from sandbox_agent.cli.main import cli  # noqa: PLC0415

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    complete = found(cli, {}, _PROGRAM, "_SANDBOX_AGENT_COMPLETE")
    click.echo(complete.source_template % complete.source_vars())


def complete_agents(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """The agents that this machine knows."""
    from sandbox_agent.agents import Catalog  # noqa: PLC0415
    from sandbox_agent.settings import load_settings  # noqa: PLC0415

    try:
        settings = load_settings(os.environ, None, {})
        catalog = Catalog(settings.agents, data_dir=settings.data_path, env=settings.environ)
    except SandboxAgentError:
        return []
    return [CompletionItem(agent) for agent in catalog.ids() if agent.startswith(typed)]


def complete_sessions(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Sessions of a server that runs, by alias or id; none is started for this."""
    given = {**ctx.find_root().params, **{name: value for name, value in ctx.params.items() if value is not None}}
    try:
        return asyncio.run(_sessions(Target(given.get("endpoint"), given.get("token")), typed))
    except (SandboxAgentError, TimeoutError):
        return []


async def _sessions(target: Target, typed: str) -> list[CompletionItem]:
    async with asyncio.timeout(_PATIENCE), target.open() as sandbox:
        found = await sandbox.list_sessions(limit=100)
    named = [(session.alias or session.session_id, session.title or session.agent) for session in found]
    return [CompletionItem(name, help=title) for name, title in named if name.startswith(typed)]
