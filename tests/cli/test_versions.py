"""Agents of ACP version 2 at the command line: which version they speak, and their sessions whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.command import Shell, serving
from support.server import mock_agents

pytestmark = pytest.mark.timeout(180)  # several processes, one after the other

PROMPT = "edit a.txt; plan; terminal echo printed; kinds"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with serving(tmp_path_factory.mktemp("versions"), config=mock_agents(second="--protocol 2")) as shell:
        yield shell


@pytest.fixture(scope="module")
def ran(shell: Shell) -> list[dict[str, Any]]:
    """The lines of a whole turn."""
    return shell.lines("run", "--agent", "second", PROMPT, "--approve", "allow", "--json")


def test_a_turn_runs_to_its_end_in_the_words_that_programs_know(ran: list[dict[str, Any]]) -> None:
    kinds = [line["update"]["sessionUpdate"] for line in ran if line["type"] == "update"]
    assert {"tool_call", "tool_call_update", "plan", "agent_message_chunk"} <= set(kinds)
    assert "state_update" not in kinds
    assert ran[-1]["stopReason"] == "end_turn"


def test_a_person_sees_steps_and_text(shell: Shell) -> None:
    shown = shell.text("run", "--agent", "second", "tool ls", "--approve", "allow")
    assert "Run ls  completed" in shown
    assert shown.endswith("stopped: end_turn\n")


def test_lists_and_details_tell_the_version(shell: Shell, ran: list[dict[str, Any]]) -> None:
    assert ran
    (line,) = (line for line in shell.text("agents", "list").splitlines() if line.startswith("second"))
    assert "ACP 2" in line
    assert "ACP 2" in shell.text("agents", "show", "second")
    assert shell.json("agents", "show", "second", "--json")["serverStatus"]["protocolVersion"] == 2


def test_the_transcript_and_the_export_are_whole(shell: Shell, ran: list[dict[str, Any]]) -> None:
    session = ran[0]["sessionId"]
    assert session in shell.text("sessions", "show", session)
    text = shell.text("sessions", "export", session)
    assert text.count(PROMPT) == 1
    for said in ("hello, world", "printed", "Edited", "Look around", "done"):
        assert said in text, said
    exported = shell.lines("sessions", "export", session, "--format", "jsonl")
    assert {"state_update", "user_message", "terminal_output_chunk"} <= _kinds(exported)


def test_events_are_what_was_said_and_the_legacy_view_reads_them(shell: Shell, ran: list[dict[str, Any]]) -> None:
    session = ran[0]["sessionId"]
    said = [event["envelope"] for event in shell.lines("sessions", "events", session)]
    assert "state_update" in str(said)
    legacy = shell.lines("sessions", "events", session, "--legacy")
    kinds = {event["type"] for event in legacy}
    assert {"item.completed", "permission.requested", "permission.resolved", "turn.ended"} <= kinds
    assert legacy[-1]["type"] == "turn.ended"
    items = [event["data"]["item"] for event in legacy if event["type"] == "item.completed"]
    assert [item for item in items if item.get("role") == "user"]
    assert "hello, world" in str(items)
    assert "printed" in str(items)


def _kinds(lines: list[Any]) -> set[str]:
    found = [(line.get("envelope") or line).get("params", {}).get("update", {}) for line in lines]
    return {update.get("sessionUpdate", "") for update in found if isinstance(update, dict)}
