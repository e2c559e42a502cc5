from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from sandbox_agent import errors
from sandbox_agent.errors import AgentExited, SandboxAgentError, SessionBusy, UnknownAgent, UnknownConnection

_LEVEL = 4


def drawn() -> dict[str, str | None]:
    """Each class in the picture on top of the module, with the one that it hangs on."""
    assert errors.__doc__ is not None
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in errors.__doc__.splitlines():
        if found := re.match(r"    ((?:[│ ]   )*)(├── |└── )?([A-Z][A-Za-z]+)", line):
            depth = len(found[1]) // _LEVEL + bool(found[2])
            parents[found[3]] = path[depth - 1] if depth else None
            path[depth:] = [found[3]]
    return parents


def classes(base: type[SandboxAgentError] = SandboxAgentError) -> Iterator[type[SandboxAgentError]]:
    if base.__module__ == errors.__name__:
        yield base
    for derived in base.__subclasses__():
        yield from classes(derived)


def test_the_tree_that_is_drawn_is_the_tree_of_classes() -> None:
    real = {c.__name__: c.__base__.__name__ if c is not SandboxAgentError and c.__base__ else None for c in classes()}
    assert drawn() == real
    assert len(real) > 25


@pytest.mark.parametrize("cls", list(classes()), ids=lambda cls: str(cls.__name__))
@pytest.mark.promise("P-limit-6")
def test_every_class_knows_how_it_looks_at_the_edge(cls: type[SandboxAgentError]) -> None:
    assert 400 <= cls.status <= 599
    assert -32999 <= cls.code <= -32000
    assert "title" in vars(cls)
    assert isinstance(cls.retryable, bool)


def test_titles_tell_the_classes_apart() -> None:
    titles = [cls.title for cls in classes()]
    assert len(set(titles)) == len(titles)


def test_the_kind_is_the_name_in_snake_case() -> None:
    assert SessionBusy("x").kind == "session_busy"
    assert AgentExited("x").kind == "agent_exited"
    assert UnknownConnection("c").kind == "unknown_connection"


def test_an_error_says_what_was_wrong_and_keeps_what_programs_need() -> None:
    error = AgentExited("agent 'x' exited with code 3", exitCode=3)
    assert (str(error), error.detail, error.data) == ("agent 'x' exited with code 3",) * 2 + ({"exitCode": 3},)
    unknown = UnknownAgent("claud", ["claude", "mock"])
    assert "'claud'" in str(unknown)
    assert "claude, mock" in str(unknown)
    assert unknown.data == {"known": ["claude", "mock"]}


@pytest.mark.parametrize(
    ("cls", "code"),
    [
        (errors.MalformedMessage, -32600),
        (errors.InvalidParams, -32602),
        (errors.AgentUnsupported, -32601),
        (errors.SessionBusy, -32001),
        (errors.RequestCancelled, -32800),
    ],
)
def test_codes_that_clients_rely_on(cls: type[SandboxAgentError], code: int) -> None:
    assert cls.code == code
