"""`sandbox-agent`: every command in one place, each importing what it needs when it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from sandbox_agent.cli.lazy import LazyGroup
from sandbox_agent.errors import SandboxAgentError
from sandbox_agent.version import __version__

HELP = {"help_option_names": ["-h", "--help"]}


_COMMANDS = {
    "agents": ("sandbox_agent.cli.agents:agents", "The agents that can be run."),
    "api": ("sandbox_agent.cli.api:api", "Every HTTP operation of the server, for scripts."),
    "completion": ("sandbox_agent.cli.completion:completion", "Print a shell's completion script."),
    "credentials": ("sandbox_agent.cli.credentials:credentials", "API keys and logins that agents can use."),
    "daemon": ("sandbox_agent.cli.daemon:daemon", "A server in the background."),
    "doctor": ("sandbox_agent.cli.doctor:doctor", "Check this machine and say what to do."),
    "fs": ("sandbox_agent.cli.files:files", "Files where the server runs."),
    "install-agent": ("sandbox_agent.cli.agents:install_agent", "Install an agent, or all."),
    "run": ("sandbox_agent.cli.run:run", "Give an agent a prompt and show the turn as it streams."),
    "sessions": ("sandbox_agent.cli.sessions:sessions", "Conversations, running or past."),
    "store": ("sandbox_agent.cli.store:store", "History on this machine's disk."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS, context_settings=HELP)
@click.version_option(__version__, prog_name="sandbox-agent")
@click.option("--endpoint", envvar="SANDBOX_AGENT_ENDPOINT", metavar="URL", help="Address of the server to use.")
@click.option("--token", envvar="SANDBOX_AGENT_TOKEN", metavar="TOKEN", help="The token of that server.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")
@click.pass_context
def cli(ctx: click.Context, endpoint: str | None, token: str | None, *, is_json: bool) -> None:
    """Run coding agents remotely: one server, any ACP agent, any number of HTTP clients."""
    ctx.obj = {"endpoint": endpoint, "token": token, "is_json": is_json}


@cli.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free one.  [default: 2468]")
@click.option("--token", help="Bearer token that every request must carry. Also SANDBOX_AGENT_TOKEN.")
@click.option("--no-token", is_flag=True, default=None, help="Serve without a token, also beyond loopback.")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="A TOML file with settings and agents.")
@click.option("--data-dir", help="Where history and installs live.")
@click.option("--store", help="History store: sqlite, sqlite:PATH or memory.  [default: sqlite]")
@click.option("--default-agent", help="Agent for clients of /acp that name none.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[default: info]")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="[default: text]")
@click.option("--access-log", is_flag=True, default=None, help="Log every request, without its query.")
@click.option("--fs-root", multiple=True, help="A directory that file operations stay in; may be repeated.")
@click.option("--allow-host", multiple=True, help="A further name that this server is reached by; may be repeated.")
@click.option("--cors-allow-origin", multiple=True, help="An origin whose pages may use this server, or *.")
@click.option("--cors-allow-method", multiple=True, help="A method that such pages may use.")
@click.option("--cors-allow-header", multiple=True, help="A request header that such pages may send.")
@click.option("--cors-allow-credentials", is_flag=True, default=None, help="Let such pages send credentials.")
@click.option("--max-sockets", type=click.IntRange(1), help="Sockets open at once.  [default: 4096]")
@click.option("--max-subscribers", type=click.IntRange(1), help="Streams open at once.  [default: 4000]")
def server(config: Path | None, **flags: Any) -> None:
    """Serve agents over HTTP until Ctrl-C."""
    from sandbox_agent import serve  # noqa: PLC0415
    from sandbox_agent.settings import load_settings  # noqa: PLC0415

    settings = load_settings(os.environ, config, flags)
    serve.run(settings, announce=lambda address: click.echo(f"listening on {address}"))


@cli.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="a free one", help="Port to use.")
@click.option("--keep", is_flag=True, help="Leave the server running after the turn, until Ctrl-C.")
def demo(port: int, *, keep: bool) -> None:
    """Start a server, run one turn of the built-in agent and show it as it streams."""
    from sandbox_agent.cli.demo import run_demo  # noqa: PLC0415

    sys.exit(run_demo(port=port, keep=keep))


@cli.command()
@click.option("--endpoint", help="Address of a server; without it one is started for this process alone.")
@click.option("--agent", required=True, help="The agent to use there.")
@click.option("--token", envvar="SANDBOX_AGENT_TOKEN", help="The server's token. Also SANDBOX_AGENT_TOKEN.")
def stdio(endpoint: str | None, agent: str, token: str | None) -> None:
    """Be an ACP agent on stdin and stdout for an editor, while the agent runs at a server."""
    from sandbox_agent.cli.stdio import run_stdio  # noqa: PLC0415

    run_stdio(endpoint=endpoint, agent=agent, token=token)


def main() -> None:
    """The entry point: errors of ours become a readable line, a next step and an exit code."""
    try:
        cli()
    except SandboxAgentError as error:
        from sandbox_agent.cli.exits import exit_code, next_step  # noqa: PLC0415

        click.echo(f"error: {error.detail}", err=True)
        if (step := next_step(error)) is not None:
            click.echo(f"       {step}", err=True)
        sys.exit(exit_code(error))
