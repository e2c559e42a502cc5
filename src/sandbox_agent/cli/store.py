"""`sandbox-agent store`: the history on this machine's disk."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from sandbox_agent.cli.target import Target, target_options


@click.group()
def store() -> None:
    """Check and repair the saved history."""


@store.command()
@click.option("--repair", is_flag=True, help="Restore what can be read, mark the rest as lost. Stop the server first.")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The server's TOML file.")
@click.option("--data-dir", help="The server's data directory.")
@click.option("--store", "name", help="The server's store, as sqlite:PATH.")
@target_options
def check(target: Target, config: Path | None, data_dir: str | None, name: str | None, *, repair: bool) -> None:
    """Look for damage in the history database and its journal. Exit code 1 if there is any left."""
    import msgspec  # noqa: PLC0415

    from sandbox_agent.settings import load_settings  # noqa: PLC0415
    from sandbox_agent.store.engines import database_path  # noqa: PLC0415
    from sandbox_agent.store.sqlite.check import check_database, repair_database  # noqa: PLC0415

    settings = load_settings(os.environ, config, {"data_dir": data_dir, "store": name})
    path = database_path(settings.store, settings.data_path)
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
