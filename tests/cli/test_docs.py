"""The documents are true: examples run, the reference is what the commands say, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sandbox_agent.cli.exits import MEANINGS
from sandbox_agent.cli.main import cli
from sandbox_agent.cli.reference import render
from support.command import Shell, serving

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.timeout(180)  # an example may start several servers, one after the other
EXAMPLES = [
    pytest.param(page, language, body, id=f"{page.stem}-{number}-{language}")
    for page in sorted(DOCS.glob("*.md"))
    if page.stem in {"quickstart", "python-sdk", "sessions", "permissions", "troubleshooting"}
    for number, (language, body) in enumerate(re.findall(r"```(python|bash)\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize(("page", "language", "body"), EXAMPLES)
def test_example(page: Path, language: str, body: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    if "SANDBOX_AGENT_ENDPOINT" in body:
        with serving(tmp_path / "served") as served:
            _run(served, language, body, tmp_path)
    else:
        _run(shell, language, body, tmp_path)


def _run(shell: Shell, language: str, body: str, cwd: Path) -> None:
    body = body.replace("daemon start", "daemon start --port 0")  # the default port may be in use
    program = [sys.executable, "-W", "error", "-c", body] if language == "python" else ["bash", "-eu", "-c", body]
    done = subprocess.run(program, env=shell.env, cwd=cwd, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, f"{body}\n{done.stdout}\n{done.stderr}"
    assert done.stdout or "print" not in body


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 15


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
