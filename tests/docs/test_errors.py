"""docs/errors.md has every error that a client can get, with the codes that it really has."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.errors import ClientGone, ConfigError, SandboxAgentError, UnknownSession
from support.pages import DOCS, require_part, table
from support.samples import samples

_NEVER_SENT = (ClientGone, ConfigError)


def errors(base: type[SandboxAgentError] = SandboxAgentError) -> Iterator[type[SandboxAgentError]]:
    yield base
    for derived in base.__subclasses__():
        if derived.__module__ == SandboxAgentError.__module__ and derived not in _NEVER_SENT:
            yield from errors(derived)


def test_the_table_of_codes_is_the_tree_of_errors() -> None:
    rows = [
        (
            f"`{error.__new__(error).kind}`",
            error.title,
            str(error.status),
            str(error.code),
            "yes" if error.retryable else "",
            f"`{error.legacy_type}`",
        )
        for error in errors()
    ]
    head = ("Kind", "Meaning", "HTTP status", "JSON-RPC code", "Retry may help", "`errorType`")
    require_part("errors.md", "errors", table(head, rows))


def test_every_code_is_explained() -> None:
    explained = re.findall(r"^\| (-32\d+) \|", (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert {str(error.code) for error in errors()} <= set(explained)
    assert len(explained) == len(set(explained))


def test_the_example_is_an_error_as_it_is_sent() -> None:
    [example] = [one for one in samples("json") if one.page == "errors"]
    sent = frames.member(frames.failure(b"1", UnknownSession("x"), agent="mock", session="x"), "error")
    assert msgspec.json.decode(example.text) == msgspec.json.decode(sent or b"")
