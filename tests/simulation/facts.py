"""What clients and agents know to be true, and the promises of docs/sessions.md held against it.

Whoever sees a promise broken says so here; the first one counts, and ends the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sandbox_agent.store.base import Entry
from simulation.speech import told

LOST = "_sandboxagent/history/lost"
OPENING = ("session/load", "session/resume")


@dataclass(frozen=True, slots=True)
class Broken:
    promise: str
    detail: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.detail}"


@dataclass(slots=True)
class Known:
    """A session that a client was told of. `is_sure`: told while the store said that it was well."""

    name: str
    agent: str
    birth: str
    lineage: frozenset[str]
    """Its own birth and those of the sessions that it is a fork of: their updates may be shown in it."""
    alias: str | None
    is_sure: bool
    is_deleted: bool = False
    is_doubtful: bool = False
    """Somebody has asked for its deletion and was not answered, or has loaded it anew from its agent."""
    last_opening: int = 0
    """The number of the newest request to load or resume it."""
    turn_ids: list[str] = field(default_factory=list)
    answers: dict[tuple[str, int], tuple[Any, bool]] = field(default_factory=dict)
    """What each turnId was answered with in either version, and whether that is sure."""
    seen: dict[str, bool] = field(default_factory=dict)
    """Tokens that somebody saw, or that belong to a turn whose answer somebody has; and whether each is sure."""
    history: dict[int, bytes] = field(default_factory=dict)
    """What was read of it while the store said that it was well, by sequence."""


@dataclass(slots=True)
class Taken:
    """A request that the server has taken. `where` says how its answer comes."""

    number: int
    method: str
    where: str
    known: Known | None = None
    turn_id: str | None = None
    alias: str | None = None
    agent: str = ""
    version: int = 1
    """Of ACP, that its client speaks."""
    answers: int = 0
    is_void: bool = False
    """Nobody is there any more to hear the answer."""


class Facts:
    def __init__(self, *, has_retention: bool = False) -> None:
        self.has_retention = has_retention
        """The oldest of a history may be gone, without a notice."""
        self.broken: Broken | None = None
        self.sessions: list[Known] = []
        self.taken: list[Taken] = []
        self.finished: dict[str, list[str]] = {}
        """What agents said in each turn that they have ended, as tokens, by the prompt's number."""
        self.is_damaged = False
        """Bits were flipped or the power was cut: only what every reading must be holds from here on."""
        self.is_frozen = False
        """The server was killed: what its remains seem to do is not so."""

    def fail(self, promise: str, detail: str) -> None:
        if self.broken is None and not self.is_frozen:
            self.broken = Broken(promise, detail)

    def born(self, known: Known) -> None:
        self.sessions.append(known)

    def named(self, name: Any) -> Known | None:
        """The newest session that clients know by this id."""
        return next((known for known in reversed(self.sessions) if known.name == name), None)

    def has_namesake(self, known: Known) -> bool:
        """Whether another session had its id before it was deleted, or got it afterwards."""
        return any(other.name == known.name and other is not known for other in self.sessions)

    @property
    def usable(self) -> list[Known]:
        return [known for known in self.sessions if not known.is_deleted]

    def saw(self, name: Any, token: str, *, is_sure: bool) -> None:
        """A client was shown an update."""
        known = self.named(name)
        if known is None or known.is_deleted or self.is_frozen:
            return  # before the answer that tells of it; it may have the name of one that is no more
        birth = token.partition(".")[0]
        if birth not in known.lineage:
            if any(other.name == name and other.is_deleted and birth in other.lineage for other in self.sessions):
                return  # to one who is behind: of a session that had the id before; in the history it would be wrong
            self.fail("never misrouted", f"{token} was shown in session {name}, which is {known.birth}")
        elif birth == known.birth:
            known.seen[token] = known.seen.get(token, False) or is_sure

    def answered(self, taken: Taken, message: dict[str, Any], *, is_sure: bool) -> None:
        if self.is_frozen:
            return
        taken.answers += 1
        if taken.answers > 1:
            self.fail("answered once", f"request {taken.number} ({taken.method}) has {taken.answers} answers")
        if "internal error" in str((message.get("error") or {}).get("message")):
            self.fail("no internal errors", f"{taken.method}: {message}")
        result = message.get("result")
        if taken.method == "session/prompt" and taken.known is not None and isinstance(result, dict):
            self._prompt_answered(taken, taken.known, result, is_sure=is_sure)

    def _prompt_answered(self, taken: Taken, known: Known, result: dict[str, Any], *, is_sure: bool) -> None:
        if taken.version == 2 and not isinstance(result.get("messageId"), str):
            self.fail("each is answered in its version", f"request {taken.number} in version 2: {result}")
        elif taken.version == 1 and not isinstance(result.get("stopReason"), str):
            self.fail("each is answered in its version", f"request {taken.number} in version 1: {result}")
        value = result.get("messageId") or result.get("n") or (result.get("usage") or {}).get("n")
        if value is None:
            return  # cancelled before it ran
        for token in self.finished.get(value, ()):
            known.seen[token] = known.seen.get(token, False) or is_sure
        if taken.turn_id is not None:
            self._turn_answered(known, taken.turn_id, taken.version, value, is_sure=is_sure)

    def _turn_answered(self, known: Known, turn_id: str, version: int, value: Any, *, is_sure: bool) -> None:
        before = known.answers.get((turn_id, version))
        if before is not None and before[0] != value and before[1] and not self.is_damaged:
            self.fail("a turn has one answer", f"{turn_id} of {known.name}: {value}, before {before[0]}")
        known.answers[turn_id, version] = (value, is_sure or (before is not None and before[1]))

    def is_being_taken_up(self, known: Known, deletion: Taken) -> bool:
        """Whether somebody asks for it, or has asked after its deletion was: whose answer may come late."""
        asked = (each for each in self.taken if each.known is known and each.method in OPENING)
        return known.last_opening > deletion.number or any(not each.answers for each in asked)

    def require_answers(self) -> None:
        """At the end of a life, when everything that stood in the way is gone."""
        for taken in self.taken:
            if not taken.answers and not taken.is_void:
                self.fail("every request is answered", f"request {taken.number} ({taken.method}, {taken.where})")
        self.taken.clear()

    def crashed(self, *, damaged: bool) -> None:
        """The server is gone: nobody waits any more, and only what is sure is expected to be there again."""
        self.is_damaged |= damaged
        self.taken.clear()
        for known in self.sessions:
            known.seen = {token: True for token, is_sure in known.seen.items() if is_sure}
            known.answers = {turn: answer for turn, answer in known.answers.items() if answer[1]}

    def read(self, known: Known, entries: Sequence[Entry], *, is_whole: bool, is_sure: bool) -> None:
        """A reading of a session's history, from its beginning to its end if `is_whole`."""
        reading = _Reading(self, known, is_whole=is_whole, is_sure=is_sure)
        for entry in entries:
            reading.take(entry)
        if is_whole:
            reading.finish()


class _Reading:
    def __init__(self, facts: Facts, known: Known, *, is_whole: bool, is_sure: bool) -> None:
        self._facts = facts
        self._known = known
        self._is_whole = is_whole
        self._is_sure = is_sure
        self._reached = 0
        self._lost = 0
        self._newest = 0
        self._tokens: set[str] = set()

    def take(self, entry: Entry) -> None:
        message = msgspec.json.decode(entry.envelope)
        first = entry.sequence
        if message.get("method") == LOST:
            first = message["params"]["fromSequence"]
            self._lost += entry.sequence - first + 1
            if message["params"]["toSequence"] != entry.sequence:
                self._fail("holes are told as they are", f"{message} stands at {entry.sequence}")
        elif self._known.history.get(entry.sequence, entry.envelope) != entry.envelope:
            self._fail("history does not change", f"something else is at {entry.sequence}")
        elif self._is_sure:
            self._known.history[entry.sequence] = entry.envelope
        is_aged = self._facts.has_retention and not self._reached
        if self._is_whole and first != self._reached + 1 and not is_aged and not self._facts.is_damaged:
            self._fail("every hole is told", f"nothing of {self._reached + 1} to {first - 1}")
        if entry.sequence <= self._reached:
            self._fail("sequences rise", f"{entry.sequence} after {self._reached}")
        self._reached = entry.sequence
        for token in told([message]):
            self._take_token(token)

    def finish(self) -> None:
        known = self._known
        if self._facts.has_retention:  # of what is kept, nothing is missing
            oldest = min(map(_number, self._tokens), default=None)
            known.seen = {each: sure for each, sure in known.seen.items() if oldest and _number(each) >= oldest}
        missing = [token for token in known.seen if token not in self._tokens]
        if len(missing) > self._lost and not self._facts.is_damaged:
            self._fail("what was seen is kept", f"{missing[:5]} of {len(known.seen)} are missing")
        known.history = {at: line for at, line in known.history.items() if at <= self._reached}

    def _take_token(self, token: str) -> None:
        self._tokens.add(token)
        birth, _, number = token.partition(".")
        if birth != self._known.birth:
            self._fail("never misrouted", f"{token} is in the history of {self._known.birth}")
        elif int(number) <= self._newest:
            self._fail("history is in order, once", f"{token} after {birth}.{self._newest}")
        else:
            self._newest = int(number)

    def _fail(self, promise: str, detail: str) -> None:
        self._facts.fail(promise, f"{self._known.name}: {detail}")


def _number(token: str) -> int:
    return int(token.partition(".")[2])
