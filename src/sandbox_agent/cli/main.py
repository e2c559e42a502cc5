"""`sandbox-agent`: every command in one place, each importing what it needs when it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from sandbox_agent.cli.lazy import LazyGroup
from sandbox_agent.errors import SandboxAgentError
from sandbox_agent.slim_imports import without
from sandbox_agent.version import __version__

HELP = {"help_option_names": ["-h", "--help"]}


_COMMANDS = {
    "agents": ("sandbox_agent.cli.agents:agents", "List, show, install and check agents."),
    "api": ("sandbox_agent.cli.api:api", "Call the HTTP API from a script."),
    "completion": ("sandbox_agent.cli.completion:completion", "Print a shell completion script."),
    "credentials": ("sandbox_agent.cli.credentials:credentials", "Find API keys and logins on this machine."),
    "daemon": ("sandbox_agent.cli.daemon:daemon", "Run a server in the background."),
    "doctor": ("sandbox_agent.cli.doctor:doctor", "Check the installation and suggest fixes."),
    "exec": (
        "sandbox_agent.cli.execute:execute",
        "Run a command on the server's machine: input, output, Ctrl-C and exit code are passed on.",
    ),
    "fs": ("sandbox_agent.cli.files:files", "Read and write files on the server's machine."),
    "install-agent": ("sandbox_agent.cli.agents:install_agent", "Install an agent, or all of them."),
    "login": ("sandbox_agent.cli.login:login", "Log an agent in."),
    "opencode": ("sandbox_agent.cli.opencode:opencode", "Open OpenCode's terminal UI with any agent."),
    "mcp": (
        "sandbox_agent.cli.directory_config:mcp",
        "Configure MCP servers for every new session in a directory and below it.",
    ),
    "skills": (
        "sandbox_agent.cli.directory_config:skills",
        "Configure skills for every new session in a directory and below it.",
    ),
    "nodes": ("sandbox_agent.cli.nodes:nodes", "List the nodes of a cluster and take them out of service."),
    "processes": ("sandbox_agent.cli.processes:processes", "List, follow, attach to and stop processes."),
    "run": ("sandbox_agent.cli.run:run", "Send a prompt to an agent and stream its answer."),
    "sessions": ("sandbox_agent.cli.sessions:sessions", "List, watch, export and end sessions."),
    "ui": ("sandbox_agent.cli.ui:ui", "Open the inspector in a browser."),
    "tokens": ("sandbox_agent.cli.tokens:tokens", "Create, list and revoke tokens for several users."),
    "store": ("sandbox_agent.cli.store:store", "Check, repair, back up, restore and copy the saved history."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS, context_settings=HELP)
@click.version_option(__version__, prog_name="sandbox-agent")
@click.option(
    "--endpoint", envvar="SANDBOX_AGENT_ENDPOINT", metavar="URL", help="Server to use, such as http://127.0.0.1:2468."
)
@click.option("--token", envvar="SANDBOX_AGENT_TOKEN", metavar="TOKEN", help="Access token of the server.")
@click.option(
    "--ca-file",
    envvar="SANDBOX_AGENT_CA_FILE",
    metavar="FILE",
    help="Trust the certificate authorities in this PEM file, besides the usual ones or those of SSL_CERT_FILE.",
)
@click.option("--json", "is_json", is_flag=True, help="Output JSON.")
@click.pass_context
def cli(ctx: click.Context, endpoint: str | None, token: str | None, ca_file: str | None, *, is_json: bool) -> None:
    """Run coding agents behind an HTTP API: one server, any ACP agent, any number of clients."""
    ctx.obj = {"endpoint": endpoint, "token": token, "ca_file": ca_file, "is_json": is_json}


@cli.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free one.  [default: 2468]")
@click.option(
    "--opencode-port", type=click.IntRange(0, 65535), help="Second port for OpenCode's web UI; 0 picks a free one."
)
@click.option("--token", help="Require this bearer token.  [env: SANDBOX_AGENT_TOKEN]")
@click.option(
    "--no-token", is_flag=True, default=None, help="Accept requests without a token, even from other machines."
)
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="TOML file with settings and agents.")
@click.option("--data-dir", help="Directory for history and installed agents.")
@click.option(
    "--store", help="Where to keep history: sqlite, sqlite:PATH, postgresql://…, memory or auto.  [default: sqlite]"
)
@click.option("--node-url", metavar="URL", help="Where other nodes of a cluster reach this one.")
@click.option("--node-id", help="Name of this node in a cluster.")
@click.option(
    "--takeover",
    type=click.Choice(["auto", "never"]),
    help="Continue sessions of nodes that are gone.  [default: auto]",
)
@click.option("--default-agent", help="Agent to use when a client of /acp names none.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Log level.  [default: info]"
)
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Log format.  [default: text]")
@click.option("--access-log", is_flag=True, default=None, help="Log every request, without its query string.")
@click.option("--fs-root", multiple=True, help="Restrict file operations to this directory (repeatable).")
@click.option("--allow-host", multiple=True, help="Accept this host name in requests (repeatable).")
@click.option(
    "--cors-allow-origin", multiple=True, help="Allow cross-origin requests from this origin, or * (repeatable)."
)
@click.option("--cors-allow-method", multiple=True, help="Allow this method in cross-origin requests (repeatable).")
@click.option("--cors-allow-header", multiple=True, help="Allow this header in cross-origin requests (repeatable).")
@click.option(
    "--cors-allow-credentials", is_flag=True, default=None, help="Allow credentials in cross-origin requests."
)
@click.option("--max-sockets", type=click.IntRange(1), help="Maximum number of open sockets.  [default: 4096]")
@click.option(
    "--max-subscribers", type=click.IntRange(1), help="Maximum number of open event streams.  [default: 4000]"
)
@click.option(
    "--ends-with",
    type=click.IntRange(1),
    metavar="PID",
    help="Stop when this process has ended, or when standard input, if it is a pipe, is closed.",
)
def server(config: Path | None, ends_with: int | None, **flags: Any) -> None:
    """Start the server. Stop it with Ctrl-C."""
    with without("typing_extensions"):
        import msgspec  # noqa: F401, PLC0415 - the rest of us imports it too, and would bring that along
    from sandbox_agent import serve  # noqa: PLC0415
    from sandbox_agent.settings import load_settings  # noqa: PLC0415

    settings = load_settings(os.environ, config, flags)
    serve.run(settings, announce=lambda address: click.echo(f"listening on {address}"), owner=ends_with)


@cli.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default="any free port", help="Port to listen on."
)
@click.option("--keep", is_flag=True, help="Keep the server running afterwards, until Ctrl-C.")
def demo(port: int, *, keep: bool) -> None:
    """Start a server, send the built-in agent one prompt and stream its answer."""
    from sandbox_agent.cli.demo import run_demo  # noqa: PLC0415

    sys.exit(run_demo(port=port, keep=keep))


@cli.command()
@click.option("--endpoint", help="Server to use. By default a private one is started.")
@click.option("--agent", required=True, help="Agent to use.")
@click.option("--token", envvar="SANDBOX_AGENT_TOKEN", help="Access token of the server.  [env: SANDBOX_AGENT_TOKEN]")
@click.option(
    "--ca-file",
    envvar="SANDBOX_AGENT_CA_FILE",
    metavar="FILE",
    help="Trust the certificate authorities in this PEM file.  [env: SANDBOX_AGENT_CA_FILE]",
)
def stdio(endpoint: str | None, agent: str, token: str | None, ca_file: str | None) -> None:
    """Act as an ACP agent on stdin and stdout, for editors. The agent itself runs on the server."""
    from sandbox_agent.cli.stdio import run_stdio  # noqa: PLC0415

    run_stdio(endpoint=endpoint, agent=agent, token=token, ca_file=ca_file)


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
