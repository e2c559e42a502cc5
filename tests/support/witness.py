"""What clients saw of a session, held against its history. Pure: the run under faults collects, this judges.

Every update counts, whatever it says, and each stay of a follower at a node is judged by itself: an entry that was left
out there is found although the follower was told of it later, at another node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec


class Fault(NamedTuple):
    kind: str
    note: str


@dataclass
class Stay:
    """One attachment of a follower: where it began, and the sequence and message of all it was told, as they came."""

    after: int
    told: list[tuple[int, dict[str, Any]]] = field(default_factory=list)


@dataclass
class Record:
    """`turns` has the kind of the answer to each prompt by its turn id, None without one; `ok` has run."""

    session: str
    history: list[dict[str, Any]]
    turns: dict[str, str | None]
    followers: list[list[Stay]]


def judge(record: Record) -> list[Fault]:
    """Everything that is wrong. A follower has to have been given time to reach the end of the history before."""
    found = [*_of_history(record.history), *_of_turns(record)]
    for stays in record.followers:
        found += _of_follower(record.history, stays)
    return [Fault(kind, f"{record.session}: {note}") for kind, note in found]


def said(message: dict[str, Any]) -> str | None:
    """What an agent says or thinks in an update."""
    update = (message.get("params") or {}).get("update") or {}
    is_said = update.get("sessionUpdate") in ("agent_message_chunk", "agent_thought_chunk")
    return str(update["content"].get("text", "")).strip() if is_said else None


def newest_update(history: list[dict[str, Any]]) -> int:
    """The sequence that every follower has to reach."""
    return max(_updates(history), default=0)


def _of_history(history: list[dict[str, Any]]) -> Iterator[Fault]:
    sequences = [entry["sequence"] for entry in history]
    if sequences != list(range(1, len(sequences) + 1)):
        at = next(at for at, sequence in enumerate(sequences) if sequence != at + 1)
        yield Fault("holes", f"entry {at + 1} of the history has sequence {sequences[at]}")


def _of_turns(record: Record) -> Iterator[Fault]:
    runs = Counter(text for entry in record.history if (text := said(entry["envelope"])) in record.turns)
    for turn, answer in record.turns.items():
        if runs[turn] > 1:
            yield Fault("run twice", f"{turn} {runs[turn]} times")
        if answer is None:
            yield Fault("unanswered", turn)
        elif answer == "ok" and not runs[turn]:
            yield Fault("lost", f"{turn} was answered, and is not in the history")


def _of_follower(history: list[dict[str, Any]], stays: list[Stay]) -> Iterator[Fault]:
    updates = _updates(history)
    known = {entry["sequence"] for entry in history}
    everything = [sequence for stay in stays for sequence, _ in stay.told]
    for sequence, number in Counter(everything).items():
        if number > 1:
            yield Fault("doubled", f"entry {sequence} was told {number} times")
    for stay in stays:
        told = [sequence for sequence, _ in stay.told]
        for before, sequence in zip([stay.after, *told], told, strict=False):
            if sequence < before:
                yield Fault("out of order", f"entry {sequence} came after {before}")
        reached = max(told, default=stay.after)
        for sequence in sorted(updates.keys() - set(told)):
            if stay.after < sequence <= reached:
                yield Fault("lost", f"entry {sequence} was left out of {stay.after + 1} to {reached}")
        for sequence, message in stay.told:
            if sequence not in known or (sequence in updates and _told(message) != updates[sequence]):
                yield Fault("not in history", f"entry {sequence} was told, and the history has another or none")
    for sequence in sorted(updates.keys() - set(everything)):
        yield Fault("lost", f"entry {sequence} was never told")


def _updates(history: list[dict[str, Any]]) -> dict[int, bytes]:
    """What followers are told as it stands in the history; prompts and answers are not, or as something else."""
    return {
        entry["sequence"]: _told(entry["envelope"])
        for entry in history
        if entry["envelope"].get("method") == "session/update"
    }


def _told(message: dict[str, Any]) -> bytes:
    return msgspec.json.encode((message.get("params") or {}).get("update"), order="deterministic")
