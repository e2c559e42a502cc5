"""The documents are true: the reference is what the commands say, links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sandbox_agent.cli.exits import MEANINGS, MISUSE
from sandbox_agent.cli.main import cli
from sandbox_agent.cli.reference import render
from sandbox_agent.cli.removed import REMOVED_COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_reference_is_what_the_commands_say() -> None:
    assert (DOCS / "cli.md").read_text() == render(), "run: python -m sandbox_agent.cli.reference > docs/cli.md"


def test_every_exit_code_is_documented() -> None:
    page = (DOCS / "cli.md").read_text()
    assert all(f"| {code} | " in page for code in MEANINGS)


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
            broken.append(link)
    assert broken == []


def _commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    yield context.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _commands(child, click.Context(child, info_name=name, parent=context))


def test_every_command_and_every_option_says_what_it_is_for() -> None:
    silent = []
    for path, command in _commands(cli, click.Context(cli, info_name="sandbox-agent")):
        silent += [path] * (not command.help)
        silent += [f"{path} {p.opts[0]}" for p in command.params if isinstance(p, click.Option) and not p.help]
    assert silent == []


OUR_WORDS = re.compile(r"\b(doors?|papers|envelopes?|mend|beyond loopback|go(es)? on|at most so many)\b", re.IGNORECASE)
"""Words and turns of phrase that only the people who wrote this project use."""


def test_help_uses_words_that_users_know() -> None:
    texts = [
        text
        for _, command in _commands(cli, click.Context(cli, info_name="sandbox-agent"))
        for text in (command.help, *(p.help for p in command.params if isinstance(p, click.Option)))
        if text is not None
    ]
    assert [text for text in texts if OUR_WORDS.search(text)] == []


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md"], ids=lambda page: page.name)
def test_pages_use_words_that_users_know(page: Path) -> None:
    if page.name == "architecture.md":  # for those who work on the code
        return
    assert re.findall(r"\b(doors?|papers|mend|beyond loopback)\b", page.read_text(), re.IGNORECASE) == []


def test_every_removed_command_is_named_and_says_what_replaces_it() -> None:
    page = (DOCS / "cli.md").read_text()
    known = {
        path.removeprefix("sandbox-agent ") for path, _ in _commands(cli, click.Context(cli, info_name="sandbox-agent"))
    }
    for gone, instead in REMOVED_COMMANDS.items():
        assert f"| `sandbox-agent {gone}` | `sandbox-agent {instead}` |" in page
        ran = CliRunner().invoke(cli, [*gone.split(), "argument", "--option"], prog_name="sandbox-agent")
        assert (ran.exit_code, instead in ran.output) == (MISUSE, True), ran.output
        assert gone not in known
        assert any(instead == name or instead.startswith(f"{name} ") for name in known), instead
