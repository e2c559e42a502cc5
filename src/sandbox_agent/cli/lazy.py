"""Groups that suggest a command for a misspelled or removed one, and import only what is used: `--help` stays quick."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from sandbox_agent.cli.removed import replacement

Lazy = Mapping[str, tuple[str, str]]
"""Command name to `module:attribute` and the line that help shows."""


class SuggestingGroup(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            gone = replacement([*ctx.command_path.split()[1:], *args])
            if gone is not None:
                command, instead = gone
                raise click.UsageError(f"'{command}' was removed; use 'sandbox-agent {instead}'", ctx) from None
            from difflib import get_close_matches  # noqa: PLC0415 - takes as long as a small command

            near = get_close_matches(args[0], self.list_commands(ctx))
            if not near:
                raise
            hint = f"{error.message} Did you mean {' or '.join(map(repr, near))}?"
            raise click.UsageError(hint, ctx) from None


class LazyGroup(SuggestingGroup):
    def __init__(self, *args: Any, lazy: Lazy | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            command = None if name in self.lazy else super().get_command(ctx, name)
            if command is None or not command.hidden:
                rows.append((name, self.lazy[name][1] if command is None else command.get_short_help_str(100)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
