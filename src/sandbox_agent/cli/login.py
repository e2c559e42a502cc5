"""`sandbox-agent login`: the agent's own login, in this terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from sandbox_agent.cli.completion import complete_agents
from sandbox_agent.errors import AgentNotInstalled, AgentUnsupported


@click.command()
@click.argument("agent", shell_complete=complete_agents)
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The server's TOML file.")
@click.option("--data-dir", help="The server's data directory.")
def login(agent: str, config: Path | None, data_dir: str | None) -> None:
    """Log an agent in on this machine, with the agent's own login. Run it as the user that runs the server.

    The exit code is that of the agent's program."""
    from sandbox_agent.agents import Catalog  # noqa: PLC0415
    from sandbox_agent.core.ids import AgentId  # noqa: PLC0415
    from sandbox_agent.settings import load_settings  # noqa: PLC0415

    settings = load_settings(os.environ, config, {"data_dir": data_dir})
    catalog = Catalog(settings.agents, data_dir=settings.data_path, env=settings.environ)
    spec = catalog.launch(AgentId(agent))
    if spec is None:
        raise AgentNotInstalled(f"agent {agent!r} is not installed: run `sandbox-agent install-agent {agent}` first")
    if not spec.login:
        keys = [name for name in spec.env_passthrough if name.endswith(("_API_KEY", "_TOKEN"))]
        todo = f"set {' or '.join(keys)} in the environment of the server" if keys else "see its documentation"
        raise AgentUnsupported(f"agent {agent!r} has no login command: {todo}")
    sys.exit(subprocess.run(spec.login, env={**os.environ, **spec.env}, check=False).returncode)
