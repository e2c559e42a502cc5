"""`sandbox-agent tokens`: who may use the server on this machine, and what each may do."""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from sandbox_agent.cli.target import Target, target_options

F = TypeVar("F", bound=Callable[..., Any])
_SPAN = re.compile(r"(\d{1,6})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@click.group()
def tokens() -> None:
    """Create, list and revoke tokens for several users.

    They are kept, as hashes, in the server's data directory. A running server sees changes at once."""


def _file_options(command: F) -> F:
    """--config and --data-dir, which say where the server keeps its tokens. Passes `file`."""

    @click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The server's TOML file.")
    @click.option("--data-dir", help="The server's data directory.")
    @functools.wraps(command)
    def wrapped(*args: Any, config: Path | None, data_dir: str | None, **kwargs: Any) -> Any:
        from sandbox_agent.http.access.tokens import TokenFile  # noqa: PLC0415
        from sandbox_agent.settings import load_settings  # noqa: PLC0415

        settings = load_settings(os.environ, config, {"data_dir": data_dir})
        return command(*args, file=TokenFile(settings.data_path), **kwargs)

    return wrapped  # type: ignore[return-value]


class _Expiry(click.ParamType[float | None]):
    name = "expiry"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """Seconds since the epoch; None for `never`."""
        if value is None or isinstance(value, float):
            return value
        if value == "never":
            return None
        if found := _SPAN.fullmatch(value):
            return time.time() + int(found[1]) * _SECONDS[found[2]]
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is neither a time span such as 12h or 30d, nor a date such as 2027-01-31", param, ctx)
        when = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
        if when <= time.time():
            self.fail(f"{value!r} is in the past", param, ctx)
        return when


@tokens.command()
@click.argument("name")
@click.option(
    "--right",
    type=click.Choice(["read", "prompt", "admin"]),
    default="prompt",
    show_default=True,
    help="What the token allows: to read conversations, also to work with agents and files, or everything.",
)
@click.option(
    "--expires",
    type=_Expiry(),
    default="never",
    show_default=True,
    metavar="WHEN",
    help="A time span such as 12h or 30d, a date (UTC) such as 2027-01-31, or never.",
)
@_file_options
@target_options
def add(target: Target, file: Any, name: str, right: str, expires: float | None) -> None:
    """Create a token for NAME and print it. It is not shown again."""
    from sandbox_agent.core.users import Right  # noqa: PLC0415

    is_first = not file.path.exists()
    token = file.add(name, Right[right.upper()], expires=expires)
    if target.is_json:
        _print_json({"name": name, "right": right, "expiresAt": _when(expires), "token": token})
    else:
        click.echo(token)
    if is_first:
        click.echo("note: a server that is running without any token must be restarted to require one", err=True)


@tokens.command("list")
@_file_options
@target_options
def list_tokens(target: Target, file: Any) -> None:
    """List tokens: name, right, when they were created and when they expire."""
    found = file.read()
    if target.is_json:
        _print_json(
            [
                {
                    "name": token.name,
                    "right": token.right,
                    "createdAt": _when(token.created),
                    "expiresAt": _when(token.expires),
                    "isExpired": _is_expired(token.expires),
                }
                for token in found
            ]
        )
        return
    from sandbox_agent.cli.tables import print_table  # noqa: PLC0415

    print_table(
        ("NAME", "RIGHT", "CREATED", "EXPIRES"),
        [(token.name, token.right, _when(token.created) or "", _shown(token.expires)) for token in found],
        empty="no tokens; create one with `sandbox-agent tokens add NAME`",
    )


@tokens.command()
@click.argument("name")
@_file_options
@target_options
def revoke(target: Target, file: Any, name: str) -> None:
    """Delete the token of NAME. Its open streams end at once."""
    file.revoke(name)
    if target.is_json:
        _print_json({"revoked": name})
    else:
        click.echo(f"revoked {name}")


def _when(time_: float | None) -> str | None:
    from sandbox_agent.core.json_values import iso_time  # noqa: PLC0415

    return None if time_ is None else iso_time(time_)


def _is_expired(expires: float | None) -> bool:
    return expires is not None and expires <= time.time()


def _shown(expires: float | None) -> str:
    return "never" if expires is None else f"{_when(expires)}{' (expired)' if _is_expired(expires) else ''}"


def _print_json(value: Any) -> None:
    from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

    print_json(value)
