"""`sandbox-agent store`: the history on this machine's disk."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sandbox_agent.cli.target import Target, target_options

if TYPE_CHECKING:
    from sandbox_agent.store.sqlite.backup import Backup

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def store() -> None:
    """Check, repair, back up, restore and copy the saved history."""


def _database_options(command: F) -> F:
    """--config, --data-dir and --store, which say where the server's database is. Passes `path`."""

    @click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The server's TOML file.")
    @click.option("--data-dir", help="The server's data directory.")
    @click.option("--store", "name", help="The server's store, as sqlite:PATH.")
    @functools.wraps(command)
    def wrapped(*args: Any, config: Path | None, data_dir: str | None, name: str | None, **kwargs: Any) -> Any:
        from sandbox_agent.settings import load_settings  # noqa: PLC0415
        from sandbox_agent.store.engines import database_path  # noqa: PLC0415

        settings = load_settings(os.environ, config, {"data_dir": data_dir, "store": name})
        return command(*args, path=database_path(settings.store, settings.data_path), **kwargs)

    return wrapped  # type: ignore[return-value]


@store.command()
@click.argument("file", type=click.Path(path_type=Path))
@_database_options
@target_options
def backup(target: Target, file: Path, path: Path) -> None:
    """Copy the whole history to FILE. The server may be running."""
    from sandbox_agent.cli.progress import byte_progress  # noqa: PLC0415
    from sandbox_agent.store.sqlite.backup import back_up  # noqa: PLC0415

    with byte_progress("copying", is_shown=not target.is_json) as advance:
        made = back_up(path, file, progress=advance)
    _tell(target, made, f"{made.path}: {made.sessions} sessions, {made.size} bytes")


@store.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace the history that is there. It is kept under another name.")
@_database_options
@target_options
def restore(target: Target, file: Path, path: Path, *, force: bool) -> None:
    """Put the backup FILE in the place of the history. Stop the server first."""
    from sandbox_agent.store.sqlite.backup import restore as put_back  # noqa: PLC0415

    restored = put_back(file, path, is_forced=force)
    _tell(target, restored, f"{restored.path}: {restored.sessions} sessions restored")


def _tell(target: Target, made: Backup, line: str) -> None:
    import msgspec  # noqa: PLC0415

    if target.is_json:
        from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

        print_json(msgspec.to_builtins(made))
        return
    click.echo(line)
    for name in made.kept:
        click.echo(f"kept: {name}")


@store.command()
@click.option("--repair", is_flag=True, help="Restore what can be read, mark the rest as lost. Stop the server first.")
@_database_options
@target_options
def check(target: Target, path: Path, *, repair: bool) -> None:
    """Look for damage in the history database and its journal. Exit code 1 if there is any left."""
    import msgspec  # noqa: PLC0415

    from sandbox_agent.store.sqlite.check import check_database, repair_database  # noqa: PLC0415

    report = (repair_database if repair else check_database)(path)
    if target.is_json:
        from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

        print_json(msgspec.to_builtins(report))
    else:
        counted = f"{report.sessions} sessions, {report.batches} batches of history, {report.turns} turns"
        click.echo(f"{report.path}: {counted}, {report.journaled} operations in the journal")
        for problem in report.problems:
            click.echo(f"{'repaired' if problem.is_repaired else 'damaged'}: {problem.place}: {problem.detail}")
        for kept in report.set_aside:
            click.echo(f"set aside: {kept}")
        if not report.problems:
            click.echo("no damage found")
        elif not repair:
            click.echo("run `sandbox-agent store check --repair` to restore what can be read")
    sys.exit(1 if any(not problem.is_repaired for problem in report.problems) else 0)


@store.command()
@click.argument("source")
@click.argument("destination")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The server's TOML file.")
@click.option("--data-dir", help="The server's data directory.")
@target_options
def copy(target: Target, source: str, destination: str, config: Path | None, data_dir: str | None) -> None:
    """Copy all sessions from the store SOURCE to the store DESTINATION: sqlite, sqlite:PATH or postgresql://….

    Stop the servers first. Every session is read back and compared. A copy that was interrupted continues when it is
    started again."""
    import asyncio  # noqa: PLC0415

    import msgspec  # noqa: PLC0415

    from sandbox_agent.cli.progress import byte_progress  # noqa: PLC0415
    from sandbox_agent.settings import load_settings  # noqa: PLC0415
    from sandbox_agent.store.engines import copy_store  # noqa: PLC0415

    folder = load_settings(os.environ, config, {"data_dir": data_dir}).data_path
    with byte_progress("copying", is_shown=not target.is_json) as advance:
        copied = asyncio.run(copy_store(source, destination, folder, progress=advance))
    if target.is_json:
        from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

        print_json(msgspec.to_builtins(copied))
        return
    counted = f"{copied.sessions} sessions, {copied.entries} events, {copied.turns} turns, {copied.bytes} bytes"
    click.echo(f"copied and verified: {counted}; {copied.skipped} sessions were there already")
