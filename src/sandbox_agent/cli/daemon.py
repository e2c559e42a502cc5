"""`sandbox-agent daemon`: a server in the background, with its pid, address and token on record."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from sandbox_agent.cli.daemon_state import DaemonState, forget_state, read_state, state_path, write_state
from sandbox_agent.cli.target import Target, run_async, target_options
from sandbox_agent.client.launch import launch_server
from sandbox_agent.errors import ConfigError, SandboxAgentError
from sandbox_agent.version import __version__

_STOP = 10.0
_DATA_DIR = click.option("--data-dir", help="Directory for history, installed agents and the daemon's state.")


@click.group()
def daemon() -> None:
    """Run a server in the background. Other commands use it automatically."""


@daemon.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free one.  [default: 2468]")
@click.option("--config", type=click.Path(dir_okay=False), help="TOML file with settings and agents.")
@click.option("--no-token", is_flag=True, help="Accept requests without a token. By default a random one is generated.")
@click.option("--upgrade", is_flag=True, help="Restart the daemon if it runs another version.")
@_DATA_DIR
@target_options
def start(target: Target, data_dir: str | None, *, upgrade: bool, no_token: bool, **flags: Any) -> None:
    """Start the daemon, unless it is running. It works in the folder of its config file, else in your home."""
    running = read_state(data_dir)
    if running is not None and running.is_alive():
        _refuse_other_address(running, flags)
        if not upgrade or running.version == __version__:
            note = "" if running.version == __version__ else f" (version {running.version}; --upgrade restarts it)"
            _report(target, running, f"already running at {running.url}{note}")
            return
        _end(running)
    state = _launch(data_dir, None if no_token else target.token or secrets.token_urlsafe(24), flags)
    _report(target, state, f"running at {state.url}, pid {state.pid}, log {state.log}")


@daemon.command()
@_DATA_DIR
@target_options
def stop(target: Target, data_dir: str | None) -> None:
    """Stop the daemon. Succeeds if it is not running."""
    state = read_state(data_dir)
    is_running = state is not None and state.is_alive()
    if state is not None and is_running:
        _end(state)
    forget_state(data_dir)
    _print(target, {"stopped": is_running}, "stopped" if is_running else "not running")


@daemon.command()
@_DATA_DIR
@target_options
def status(target: Target, data_dir: str | None) -> None:
    """Show whether the daemon is running, and where. Exit code 3 if it is not."""
    state = read_state(data_dir)
    if state is None or not state.is_alive():
        _print(target, {"running": False}, "not running")
        sys.exit(3)
    try:
        health: dict[str, Any] = run_async(_health(state))
    except SandboxAgentError as error:
        _print(target, {"running": True, "problem": error.detail}, f"pid {state.pid} runs, but: {error.detail}")
        sys.exit(1)
    facts: dict[str, Any] = {"running": True, "pid": state.pid, "url": state.url}
    facts |= {"version": state.version, "log": state.log, "health": health}
    _print(target, facts, f"running at {state.url}, pid {state.pid}, version {state.version}, log {state.log}")


def _refuse_other_address(running: DaemonState, flags: dict[str, Any]) -> None:
    """Raises ConfigError where another host or port is wanted than the daemon that runs has."""
    there = urlsplit(running.url)
    wanted = {"--port": flags.get("port"), "--host": flags.get("host")}
    has = {"--port": there.port, "--host": there.hostname}
    for flag, value in wanted.items():
        if value not in (None, 0, "localhost", has[flag]):
            raise ConfigError(
                f"the daemon is already running at {running.url}: stop it with `sandbox-agent daemon stop` "
                f"to start it with {flag} {value}, or give another --data-dir for a second one"
            )


async def _health(state: DaemonState) -> dict[str, Any]:
    async with Target(state.url, state.token).open() as sandbox:
        return await sandbox.health()


def _launch(data_dir: str | None, token: str | None, options: dict[str, Any]) -> DaemonState:
    home = state_path(data_dir).parent
    home.mkdir(parents=True, exist_ok=True)
    log = home / "daemon.log"
    flags = ["--data-dir", str(home), *(("--no-token",) if token is None else ())]
    config = options["config"] = Path(options["config"]).resolve() if options.get("config") else None
    for name, value in options.items():
        flags += [f"--{name}", str(value)] if value is not None else []
    log.unlink(missing_ok=True)
    with log.open("ab") as output:
        log.chmod(0o600)
        try:
            place = config.parent if config is not None else _home()
            server = run_async(launch_server(flags=tuple(flags), token=token, log=output, cwd=str(place)))
        except ConfigError:
            said = log.read_text(errors="replace").strip()
            raise ConfigError(f"the server did not start: {said or f'see {log}'}") from None
    state = DaemonState(server.pid, server.url, __version__, server.token, str(log))
    write_state(state, data_dir)
    return state


def _home() -> Path:
    """Where a daemon without a config file works: the paths in such a file are relative to its folder."""
    home = Path.home()
    return home if home.is_dir() else Path("/")


def _end(state: DaemonState) -> None:
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP
    while state.is_alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    if state.is_alive():
        os.kill(state.pid, signal.SIGKILL)


def _report(target: Target, state: DaemonState, text: str) -> None:
    _print(target, {"pid": state.pid, "url": state.url, "version": state.version, "log": state.log}, text)


def _print(target: Target, facts: dict[str, Any], text: str) -> None:
    from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

    if target.is_json:
        print_json(facts)
    else:
        click.echo(text)
