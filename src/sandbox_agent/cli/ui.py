"""`sandbox-agent ui`: the inspector in a browser, signed in."""

from __future__ import annotations

import os
import sys
import webbrowser

import click

from sandbox_agent.cli.target import Target, run_async, target_options


@click.command()
@click.option("--print", "is_printed", is_flag=True, help="Print the link instead of opening a browser.")
@target_options
def ui(target: Target, *, is_printed: bool) -> None:
    """Open the inspector in a browser, signed in with a link that works once, for 30 seconds.

    Without a display, the link is printed."""
    link = run_async(_link(target))
    if target.is_json:
        from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

        print_json({"url": link})
    elif is_printed or not _has_display() or not webbrowser.open(link):
        click.echo(link)


async def _link(target: Target) -> str:
    async with target.open() as sandbox:
        ticket = (await sandbox.api.post("/v1/tickets"))["ticket"]
        return f"{sandbox.url.rstrip('/')}/ui/?ticket={ticket}"


def _has_display() -> bool:
    is_graphical = sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return is_graphical or bool(os.environ.get("BROWSER"))
