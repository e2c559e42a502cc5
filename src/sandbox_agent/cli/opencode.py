"""`sandbox-agent opencode`: OpenCode's terminal UI on a server of ours."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit

import click

from sandbox_agent.cli.completion import complete_agents
from sandbox_agent.cli.target import Target, run_async, target_options
from sandbox_agent.errors import SandboxAgentError

_PROGRAM = "opencode"
_HERE = frozenset({"127.0.0.1", "localhost", "::1"})


@click.command()
@click.option("--agent", shell_complete=complete_agents, help="Agent of new sessions.  [default: the server's]")
@click.option("--dir", "directory", metavar="DIR", help="Working directory.  [default: current]")
@click.option("--session", metavar="ID", help="Session to open, by its OpenCode id.")
@click.option("--continue", "is_continued", is_flag=True, help="Open the last session.")
@target_options
def opencode(
    target: Target, agent: str | None, directory: str | None, session: str | None, *, is_continued: bool
) -> None:
    """Open OpenCode's terminal UI with any agent.

    Uses the server given with --endpoint, the daemon, or starts a server that ends with the terminal UI. OpenCode is
    installed if it is missing."""
    options = [*(("--session", session) if session else ()), *(("--continue",) if is_continued else ())]
    here = str(Path(directory or ".").absolute())
    sys.exit(run_async(_open(target, agent, options, here, directory)))


async def _open(target: Target, agent: str | None, options: list[str], here: str, elsewhere: str | None) -> int:
    """`here` is the directory for a server on this machine, `elsewhere` for one on another."""
    program = shutil.which(_PROGRAM) or await _installed(target)
    async with target.open(may_start=True) as sandbox:
        if agent is not None:
            await sandbox.agents.get(agent)  # a name that is wrong is told here, and not in the middle of the UI
        path = "/opencode" if agent is None else f"/opencode/agents/{quote(agent, safe='')}"
        command = [program, "attach", sandbox.url.rstrip("/") + path, *options]
        directory = here if urlsplit(sandbox.url).hostname in _HERE else elsewhere
        command += [] if directory is None else ["--dir", directory]
        token = {} if sandbox.token is None else {"OPENCODE_SERVER_PASSWORD": sandbox.token}
        return await _run(command, {**os.environ, **token})


async def _run(command: list[str], env: dict[str, str]) -> int:
    """Give the terminal to the program until it ends. Ctrl-C is for it alone."""
    before = signal.signal(signal.SIGINT, lambda *_: None)  # a handler, since what is ignored is ignored by it too
    try:
        child = await asyncio.create_subprocess_exec(*command, env=env)
        return await child.wait()
    except OSError as error:
        raise SandboxAgentError(f"{command[0]} cannot be started: {error.strerror}") from None
    finally:
        signal.signal(signal.SIGINT, before)


async def _installed(target: Target) -> str:
    """The program of the agent `opencode` on this machine, installed now if need be. Raises InstallError."""
    from sandbox_agent.agents import Catalog  # noqa: PLC0415
    from sandbox_agent.cli.progress import install_progress  # noqa: PLC0415
    from sandbox_agent.core.ids import AgentId  # noqa: PLC0415
    from sandbox_agent.settings import load_settings  # noqa: PLC0415

    settings = load_settings(os.environ, None, {})
    catalog = Catalog({}, data_dir=settings.data_path, registry_url=settings.acp_registry_url, env=settings.environ)
    with install_progress(_PROGRAM, is_shown=not target.is_json) as advance:
        launch = await catalog.ensure(AgentId(_PROGRAM), progress=advance)
    return launch.command[0]
