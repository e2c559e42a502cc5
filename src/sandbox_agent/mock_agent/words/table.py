"""The table of words: each is registered beside the function that does it; it makes the manual."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import msgspec

from sandbox_agent.mock_agent.turn import Misuse, Turn

Run = Callable[[Turn, str], Awaitable[None]]

WORDS: dict[str, Word] = {}

_QUOTED = r"""(?<!\S)"[^"\n]*"|(?<!\S)'[^'\n]*'"""
_COMMAND = re.compile(rf"""(?:[^;\n"']+|{_QUOTED}|["'])+""")


class Word(msgspec.Struct, frozen=True):
    name: str
    arguments: str
    says: str
    run: Run

    @property
    def usage(self) -> str:
        return f"{self.name} {self.arguments}".strip()


class Command(msgspec.Struct, frozen=True):
    """A word and what follows it; without a word, text to be echoed."""

    word: Word | None
    rest: str


def word(usage: str, says: str) -> Callable[[Run], Run]:
    name, _, arguments = usage.partition(" ")

    def register(run: Run) -> Run:
        WORDS[name] = Word(name, arguments, says, run)
        return run

    return register


def parse_prompt(text: str) -> list[Command]:
    """The commands in a prompt; a prompt that does not begin with a word is one plain text."""
    commands = [_parse_command(part) for part in _COMMAND.findall(text) if part.strip()]
    if not commands or commands[0].word is None:
        return [Command(None, text)]
    return commands


def number(given: str, *, default: int | None, low: int, high: int) -> int:
    """Raises Misuse where `given` is no whole number in the range, or is missing without a default."""
    if not given and default is not None:
        return default
    try:
        value = int(given)
    except ValueError:
        raise Misuse(f"{given!r} is not a number") from None
    if not low <= value <= high:
        raise Misuse(f"{value} is not between {low} and {high}")
    return value


def _parse_command(part: str) -> Command:
    part = part.strip()
    name, *rest = part.split(maxsplit=1)
    known = WORDS.get(name)
    return Command(known, "".join(rest) if known else part)
