"""`--help` and docs/mock-agent.md, both made from the words and the quirks.

`python -m sandbox_agent.mock_agent.manual > docs/mock-agent.md` brings the page up to date.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from typing import Any, get_type_hints

import msgspec

from sandbox_agent.mock_agent.quirks import Quirks
from sandbox_agent.mock_agent.session import MAX_PROMPTS, MAX_TURN_BYTES, MAX_TURN_UPDATES, MAX_TURNS
from sandbox_agent.mock_agent.words import WORDS

_ABOUT = (
    "A real ACP agent over stdin and stdout whose behaviour is chosen by words in the prompt. It speaks version 1, "
    "and version 2 if asked for it with `--protocol 2`."
)
_WORD_RULES = (
    "The first word of a prompt chooses what happens. Several commands, separated by newlines or `;` "
    "(outside quotes), run in order. A prompt that begins with no known word is echoed whole, in up to "
    "three chunks. Words are spelled in lower case. Wrong arguments are answered with the usage, and an "
    "error that the client answers a request with is said as text; the turn goes on after both."
)
_STATE_RULES = (
    "Sessions are JSON files in `$SANDBOX_AGENT_MOCK_STATE`, or else in `sandbox-agent/mock-agent/` "
    "under `$XDG_STATE_HOME` or `~/.local/state`. They are written when a session is created, when a "
    "turn starts and when it ends, so that `session/load` and `session/resume` work after a crash. What "
    f"is kept is bounded: of each turn the last {MAX_TURN_UPDATES} updates or {MAX_TURN_BYTES // 1024} "
    f"KiB, the last {MAX_TURNS} turns for a replay, the last {MAX_PROMPTS} prompts for `recall`. Session "
    "ids are `mock-` and 32 hexadecimal digits."
)
_PERMISSION_RULES = (
    "Permissions offer the option ids `yes-once`, `yes-always`, `no-once` and `no-always`, of the kinds "
    "`allow_once`, `allow_always`, `reject_once` and `reject_always`. Every tool call asks anew. A "
    "second prompt in a session that is busy is refused with -32600."
)


def parse_flags(arguments: list[str]) -> Quirks:
    """Exits with the manual on `--help`, and with code 2 on a wrong flag."""
    parser = argparse.ArgumentParser(
        prog="python -m sandbox_agent.mock_agent",
        description=_ABOUT,
        epilog=_describe_words(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for flag, argument, says in _flags():
        says = says.replace("%", "%%")
        if argument:
            parser.add_argument(flag, type=int, metavar=argument, help=says)
        else:
            parser.add_argument(flag, action="store_true", help=says)
    return msgspec.convert(vars(parser.parse_args(arguments)), Quirks)


def render_page() -> str:
    parts = [
        "# The built-in agent `mock`",
        _ABOUT + " It is started as `python -m sandbox_agent.mock_agent`.",
        "## Words",
        _WORD_RULES,
        _table(["word", "what happens"], [[f"`{word.usage}`", word.says] for word in WORDS.values()]),
        _PERMISSION_RULES,
        "## State",
        _STATE_RULES,
        "## Flags",
        "Oddities seen in real agents, each off by default.",
        _table(
            ["flag", "effect"],
            [[f"`{flag} {argument}`".replace(" `", "`"), says] for flag, argument, says in _flags()],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _flags() -> list[tuple[str, str, str]]:
    """Flag, name of its argument, effect."""
    hints = get_type_hints(Quirks, include_extras=True)
    found = []
    for name, hint in hints.items():
        meta: Any = hint.__metadata__[0]
        found.append((f"--{name.replace('_', '-')}", meta.title or "", meta.description))
    return found


def _describe_words() -> str:
    def fill(text: str, indent: str) -> str:
        return textwrap.fill(text, width=100, initial_indent=indent, subsequent_indent=indent)

    lines = ["words:", fill(_WORD_RULES, "  "), ""]
    for word in WORDS.values():
        lines += [f"  {word.usage}", fill(word.says, " " * 8)]
    return "\n".join([*lines, "", fill(_PERMISSION_RULES, "  "), "", "state:", fill(_STATE_RULES, "  ")])


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(render_page())
