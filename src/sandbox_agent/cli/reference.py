"""The command reference, written from the commands themselves: `python -m sandbox_agent.cli.reference`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from sandbox_agent.cli.exits import MEANINGS
from sandbox_agent.cli.main import cli
from sandbox_agent.cli.removed import REMOVED_COMMANDS

_HEAD = """# Command line

<!-- written by `python -m sandbox_agent.cli.reference`; a test keeps it so -->

Commands that talk to a server take `--endpoint URL`, `--token TOKEN` and `--json`, before or after the command's name.
The first two can also be set with `SANDBOX_AGENT_ENDPOINT` and `SANDBOX_AGENT_TOKEN`.

Without an endpoint, commands use the server started by `sandbox-agent daemon start`, or the one at
`http://127.0.0.1:2468`. If neither is running, `run` and `sessions` start a server of their own and stop it at the end.
`agents` and `install-agent` work on this machine unless `--endpoint` is given; `credentials` and `doctor` always do.
"""
_COMMON = {"endpoint", "token", "is_json", "help"}


def render() -> str:
    context = click.Context(cli, info_name="sandbox-agent")
    parts = [_HEAD, "## Exit codes\n", "| Code | Meaning |\n| --- | --- |"]
    parts += [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    parts.append("")
    parts += _describe(cli, context)
    parts += ["## Removed commands\n", "Commands of the previous versions that no longer exist.\n"]
    parts += ["| Removed | Use instead |\n| --- | --- |"]
    parts += [f"| `sandbox-agent {gone}` | `sandbox-agent {instead}` |" for gone, instead in REMOVED_COMMANDS.items()]
    return "\n".join(parts).rstrip() + "\n"


def _describe(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _describe(child, click.Context(child, info_name=name, parent=context))
        return
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    yield f"## `{context.command_path}`\n"
    yield f"```\n{' '.join([context.command_path, *pieces])}\n```\n"
    yield _unwrapped(command.help or "") + "\n"
    rows = [row for row in (_row(param, context) for param in command.params) if row is not None]
    if rows:
        yield "| Option | Description |\n| --- | --- |"
        yield from rows
        yield ""


def _row(param: click.Parameter, context: click.Context) -> str | None:
    record = param.get_help_record(context) if isinstance(param, click.Option) else None
    if record is None or param.name in _COMMON:
        return None
    return f"| `{record[0]}` | {_unwrapped(record[1])} |".replace("  ", " ")


def _unwrapped(text: str) -> str:
    paragraphs = text.split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


if __name__ == "__main__":
    sys.stdout.write(render())
