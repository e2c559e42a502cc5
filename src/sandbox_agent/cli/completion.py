"""`sandbox-agent completion`: a shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_PROGRAM = "sandbox-agent"


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
