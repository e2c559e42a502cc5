"""`sandbox-agent fs`: files where the server runs."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sandbox_agent.cli.completion import complete_sessions
from sandbox_agent.cli.lazy import SuggestingGroup
from sandbox_agent.cli.target import Target, run_async, target_options
from sandbox_agent.client.files import Files

T = TypeVar("T")
_SESSION = click.option(
    "--session", shell_complete=complete_sessions, help="Resolve relative paths from this session's working directory."
)


@click.group(cls=SuggestingGroup)
def files() -> None:
    """Read and write files on the server's machine.

    Relative paths are resolved from the server's working directory, or from that of --session."""


@files.command()
@click.argument("path", default=".")
@_SESSION
@target_options
def ls(target: Target, path: str, session: str | None) -> None:
    """List a directory."""
    entries = _with_files(target, session, lambda files: files.list(path))
    if target.is_json:
        _print_json(entries)
        return
    from sandbox_agent.cli.tables import print_table, size_text  # noqa: PLC0415

    ordered = sorted(entries, key=lambda entry: (not entry.is_directory, entry.name))
    rows = [
        (f"{e.name}/" if e.is_directory else e.name, "" if e.is_directory else size_text(e.size), e.modified or "")
        for e in ordered
    ]
    print_table(("NAME", "SIZE", "MODIFIED"), rows, empty="empty directory")


@files.command()
@click.argument("path")
@_SESSION
@target_options
def stat(target: Target, path: str, session: str | None) -> None:
    """Show type, size and modification time of a file or directory."""
    entry = _with_files(target, session, lambda files: files.stat(path))
    if target.is_json:
        _print_json(entry)
        return
    from sandbox_agent.cli.tables import print_facts  # noqa: PLC0415

    print_facts(
        [("path", entry.path), ("type", entry.entry_type), ("size", str(entry.size)), ("modified", entry.modified)]
    )


@files.command()
@click.argument("path")
@_SESSION
@target_options
def cat(target: Target, path: str, session: str | None) -> None:
    """Print a file."""

    async def copy(files: Files) -> None:
        async for piece in files.read_pieces(path):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()

    _with_files(target, session, copy)


@files.command()
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.argument("path")
@_SESSION
@target_options
def put(target: Target, source: Path, path: str, session: str | None) -> None:
    """Upload a file. SOURCE may be - to read from stdin."""
    content: Any = sys.stdin.buffer.read() if str(source) == "-" else source
    size = _with_files(target, session, lambda files: files.write(path, content))
    _say(target, {"path": path, "bytesWritten": size}, f"{size} bytes → {path}")


@files.command()
@click.argument("path")
@click.argument("local", type=click.Path(path_type=Path), required=False)
@_SESSION
@target_options
def get(target: Target, path: str, local: Path | None, session: str | None) -> None:
    """Download a file to LOCAL.  [default: current directory, same name]"""
    place = local or Path(Path(path).name)
    place = place / Path(path).name if place.is_dir() else place
    size = _with_files(target, session, lambda files: files.download(path, place))
    _say(target, {"path": str(place), "bytes": size}, f"{size} bytes → {place}")


@files.command()
@click.argument("path")
@click.option("--recursive", "-r", is_flag=True, help="Delete directories and their contents.")
@_SESSION
@target_options
def rm(target: Target, path: str, session: str | None, *, recursive: bool) -> None:
    """Delete a file, or a directory with --recursive."""
    _with_files(target, session, lambda files: files.delete(path, recursive=recursive))
    _say(target, {"path": path}, f"deleted {path}")


@files.command()
@click.argument("source")
@click.argument("destination")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@_SESSION
@target_options
def mv(target: Target, source: str, destination: str, session: str | None, *, overwrite: bool) -> None:
    """Move or rename a file or directory."""
    _with_files(target, session, lambda files: files.move(source, destination, overwrite=overwrite))
    _say(target, {"from": source, "to": destination}, f"{source} → {destination}")


@files.command()
@click.argument("path")
@_SESSION
@target_options
def mkdir(target: Target, path: str, session: str | None) -> None:
    """Create a directory, with parents."""
    _with_files(target, session, lambda files: files.mkdir(path))
    _say(target, {"path": path}, f"created {path}")


@files.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("path")
@_SESSION
@target_options
def upload(target: Target, directory: Path, path: str, session: str | None) -> None:
    """Upload a directory. If it fails, nothing is changed."""
    written = _with_files(target, session, lambda files: files.upload(directory, path))
    _say(target, {"paths": written}, f"{len(written)} files → {path}")


def _with_files(target: Target, session: str | None, act: Callable[[Files], Awaitable[T]]) -> T:
    async def work() -> T:
        async with target.open() as sandbox:
            return await act(sandbox.files.within(session) if session is not None else sandbox.files)

    return run_async(work())


def _say(target: Target, facts: dict[str, Any], text: str) -> None:
    if target.is_json:
        _print_json(facts)
    else:
        click.echo(text)


def _print_json(value: Any) -> None:
    import msgspec  # noqa: PLC0415

    from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

    print_json(msgspec.to_builtins(value))
