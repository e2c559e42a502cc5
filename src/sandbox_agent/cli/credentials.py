"""`sandbox-agent credentials`: the keys and logins that agents would use on this machine."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from sandbox_agent.agents.credentials import AGENTS_WITH_CREDENTIALS, Credential, find_credentials, variable_for
from sandbox_agent.cli.lazy import SuggestingGroup
from sandbox_agent.cli.target import Target, target_options

_AGENT = click.option("--agent", type=click.Choice(AGENTS_WITH_CREDENTIALS), help="Filter by agent.")
_PROVIDER = click.option("--provider", help="Filter by provider, such as anthropic or openai.")
_REVEAL = click.option("--reveal", is_flag=True, help="Show secrets in full.")


@click.group(cls=SuggestingGroup)
def credentials() -> None:
    """Find API keys and logins on this machine: in the environment and in the agents' own files."""


@credentials.command()
@_AGENT
@_PROVIDER
@_REVEAL
@target_options
def extract(target: Target, agent: str | None, provider: str | None, *, reveal: bool) -> None:
    """List credentials. Secrets are masked unless --reveal is given."""
    found = _find(agent, provider, reveal=reveal)
    if target.is_json:
        import msgspec  # noqa: PLC0415

        from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

        print_json(msgspec.to_builtins(found))
        return
    from sandbox_agent.cli.tables import print_table  # noqa: PLC0415

    rows = [(c.agent, c.provider, c.kind, c.value, c.source) for c in found]
    print_table(("AGENT", "PROVIDER", "KIND", "VALUE", "SOURCE"), rows, empty="no credentials found", keep=3)


@credentials.command("extract-env")
@_AGENT
@_PROVIDER
@_REVEAL
@click.option("--export", "is_export", is_flag=True, help="Prefix each line with `export`, for eval in a shell.")
def extract_env(agent: str | None, provider: str | None, *, reveal: bool, is_export: bool) -> None:
    """Print credentials as NAME=value lines. Secrets are masked unless --reveal is given."""
    lines = {variable_for(c): c.value for c in reversed(_find(agent, provider, reveal=reveal))}
    for name, value in sorted(lines.items()):
        click.echo(f"{'export ' if is_export else ''}{name}={shlex.quote(value)}")


def _find(agent: str | None, provider: str | None, *, reveal: bool) -> list[Credential]:
    home = Path(os.environ.get("HOME") or Path.home())
    return find_credentials(os.environ, home, agent=agent, provider=provider, reveal=reveal)
