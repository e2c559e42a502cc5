"""`sandbox-agent exec`: a command where the server runs, as if it ran here."""

from __future__ import annotations

import sys

import click

from sandbox_agent.cli.attaching import attach, size_here, stream
from sandbox_agent.cli.completion import complete_sessions
from sandbox_agent.cli.target import Target, run_async, target_options


@click.command(name="exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True)
@click.option("-t", "--tty", "is_tty", is_flag=True, help="Give the command a terminal. Ctrl-P Ctrl-Q detaches.")
@click.option("-d", "--detach", "is_detached", is_flag=True, help="Start it in the background and print its id.")
@click.option("-w", "--cwd", help="Working directory on the server's machine.")
@click.option("-e", "--env", multiple=True, metavar="NAME=VALUE", help="Set an environment variable (repeatable).")
@click.option("--session", shell_complete=complete_sessions, help="Run in the working directory of this session.")
@target_options
def execute(
    target: Target,
    command: tuple[str, ...],
    cwd: str | None,
    env: tuple[str, ...],
    session: str | None,
    *,
    is_tty: bool,
    is_detached: bool,
) -> None:
    """Run a command on the server's machine: input, output, Ctrl-C and exit code are passed on.

    Put -- before the command: sandbox-agent exec -- make test"""
    variables = dict(_variable(each) for each in env)
    if is_tty and not is_detached and not sys.stdin.isatty():
        raise click.UsageError("-t needs a terminal; leave it out, or add --detach")
    sys.exit(run_async(_execute(target, command, cwd, variables, session, is_tty=is_tty, is_detached=is_detached)))


async def _execute(
    target: Target,
    command: tuple[str, ...],
    cwd: str | None,
    env: dict[str, str],
    session: str | None,
    *,
    is_tty: bool,
    is_detached: bool,
) -> int:
    async with target.open() as sandbox:
        process = await sandbox.processes.start(
            command[0],
            *command[1:],
            cwd=cwd,
            env=env,
            tty=is_tty,
            interactive=not is_tty,
            size=size_here() if is_tty else None,
            hold=not is_tty and not is_detached,
            session_id=session,
        )
        if is_detached:
            click.echo(process.id)
            return 0
        return await (attach(process) if is_tty else stream(process))


def _variable(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{given!r} is not NAME=VALUE", param_hint="--env")
    return name, value
