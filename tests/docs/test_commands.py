"""Every `sandbox-agent …` in README and guides names a command that there is, with options that it has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sandbox_agent.cli.main import cli
from support.samples import PAGES, samples

_INLINE = re.compile(r"`(sandbox-agent [^`\n]+)`")
_ENDS = re.compile(r"\s#\s|[|>;&)]|\\$|<")
"""Where the command is over, for this purpose."""


def _shown(page: Path) -> Iterator[str]:
    blocks = [one.text for one in samples("sh", "bash") if one.page == page.stem]
    lines = [line for text in blocks for line in text.replace("\\\n", " ").splitlines()]
    for line in [*lines, *_INLINE.findall(page.read_text())]:
        for found in re.finditer(r"(?<![\w/.-])(?<!generic )sandbox-agent (?=[a-z-])", line):
            yield _ENDS.split(line[found.end() :])[0].strip()


SHOWN = sorted({(page.stem, words) for page in PAGES if page.stem != "cli" for words in _shown(page)})


@pytest.mark.parametrize(("page", "words"), SHOWN)
def test_the_command_exists_and_knows_its_options(page: str, words: str) -> None:
    command: click.Command = cli
    known = {name: option for option in cli.params for name in option.opts} | {"--help": None, "--version": None}
    left = iter(shlex.split(words))
    for word in left:
        if word == "--":
            return
        if word.startswith("-"):
            name, has_value, _ = word.partition("=")
            assert name in known, f"{page}: `{command.name}` has no option {name}: {words}"
            option = known[name]
            if not has_value and isinstance(option, click.Option) and not option.is_flag:
                next(left, None)
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            assert found is not None, f"{page}: no command {word!r}: {words}"
            command = found
            known |= {name: option for option in command.params for name in (*option.opts, *option.secondary_opts)}


def test_there_are_many() -> None:
    assert len(SHOWN) > 60
