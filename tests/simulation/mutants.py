"""Bugs that the server once had, put back one at a time: the simulator is worth its time only if it finds them.

`python -m simulation --mutants` says of each which seed found it. A mutant is a piece of source replaced in memory,
so that it cannot rot unseen: where the piece is no more, that is an error.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class Mutant:
    """In the method `place` (module:Class.method), `right` becomes `wrong`."""

    name: str
    place: str
    right: str
    wrong: str

    @property
    def is_of_the_store(self) -> bool:
        return self.place.startswith("sandbox_agent.store.")


MUTANTS = (
    Mutant(
        "an error of the database is taken for 'no entries'",
        "sandbox_agent.store.sqlite.database:Database.look_up",
        "            raise unusable(self.path, error) from error",
        "            return 0",
    ),
    Mutant(
        "the journal is cleared before the commit",
        "sandbox_agent.store.sqlite.writer:Writer._commit",
        "        self._check_file()\n",
        "        self._check_file()\n"
        "        if operations:\n            self._journal.release(operations[-1].number)\n",
    ),
    Mutant(
        "the journal is called well before what it missed is in it",
        "sandbox_agent.store.sqlite.writer:Backlog.mend_journal",
        "            if missed:",
        "            if False:",
    ),
    Mutant(
        "the close of a connection forgets who waits at it",
        "sandbox_agent.hub.clients.connection:Connection.close",
        "        for waiter in list(self._waiters.values()):",
        "        for waiter in []:",
    ),
    Mutant(
        "prompts that wait in a session that is stopped are forgotten",
        "sandbox_agent.core.turns:Turns._never_run",
        "        for call in list(session.queue) if calls is None else calls:",
        "        for call in [] if calls is None else calls:",
    ),
    Mutant(
        "an alias is reserved too late",
        "sandbox_agent.hub.sessions.inventory:Inventory.reserved",
        "        self._reserved.add(alias)",
        "        await self._store.find_sessions(alias)",
    ),
    Mutant(
        "turns are not remembered before they run",
        "sandbox_agent.hub.sessions.turn_ids:TurnIds._remember_start",
        "        self._store.put_turn(key, turn_id, None)\n",
        "",
    ),
    Mutant(
        "turns run while the store could forget them",
        "sandbox_agent.hub.sessions.turn_ids:TurnIds._remember_start",
        "        if self._needs_memory and self._store.is_degraded:",
        "        if False:",
    ),
    Mutant(
        "clients are told before it is written down",
        "sandbox_agent.hub.agents.delivery:Delivery.apply",
        "            self._store.flush()",
        "            pass",
    ),
    Mutant(
        "what a session replays when it is woken is recorded again",
        "sandbox_agent.core.hearing:Hearing._told",
        "        if session.is_muted and kind in REPLAYED:",
        "        if False:",
    ),
    Mutant(
        "a replay that comes after the close is recorded again",
        "sandbox_agent.core.session:Session.change",
        "        is_given_up = self.phase in (Phase.DORMANT, Phase.ENDED) and change is not Change.EXITED",
        "        is_given_up = False",
    ),
    Mutant(
        "a transaction that cannot be taken back stays open for ever",
        "sandbox_agent.store.sqlite.schema:transaction",
        "    if connection.in_transaction:  # one",
        "    if False:  # one",
    ),
    Mutant(
        "work that was stopped before it began answers nobody",
        "sandbox_agent.hub.tasks:Tasks.cancel",
        "            request.fail(_shutting_down())",
        "            pass",
    ),
    Mutant(
        "events behind a hole get wrong ids",
        "sandbox_agent.hub.clients.stream:Stream._fetch",
        "        if missing:",
        "        if False:",
    ),
    Mutant(
        "a hole that a crash has left is not told",
        "sandbox_agent.store.sqlite.intake:_close_holes",
        "        if append.first > last + 1:",
        "        if False:",
    ),
    Mutant(
        "what a record says is not checked before it is kept",
        "sandbox_agent.hub.sessions.establish:agent_params",
        "        msgspec.convert(params, _AgentParams)",
        "        pass",
    ),
    Mutant(
        "a waiting prompt is started while its session closes",
        "sandbox_agent.core.turns:Turns.next",
        "session.can_begin",
        "session.is_live",
    ),
    Mutant(
        "that a prompt has begun is taken for its end",
        "sandbox_agent.core.turns:Turns.answered",
        "        if call.held is not None and not frame.is_error:",
        "        if False:",
    ),
    Mutant(
        "nobody says that work is over which a close or an exit has ended",
        "sandbox_agent.core.turns:Turns.interrupt",
        '        if is_working or session.activity.get("background"):',
        "        if False:",
    ),
    Mutant(
        "version 2 is not told that a turn of version 1 is over",
        "sandbox_agent.core.interpreter:Interpreter._states",
        "                return translator.prompt_ended(**outcome)",
        "                return []",
    ),
)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Put a bug back for a while. Raises LookupError where the source is no longer what it was."""
    module_name, _, path = mutant.place.partition(":")
    module = importlib.import_module(module_name)
    owner: Any = module
    *owners, name = path.split(".")
    for each in owners:
        owner = getattr(owner, each)
    sound = owner.__dict__[name]
    wrong = _mutated(mutant, module, sound)
    places = [owner, *(each for each in _modules() if owner is module and each.__dict__.get(name) is sound)]
    for place in places:  # whoever has imported a function has it by itself
        setattr(place, name, wrong)
    try:
        yield
    finally:
        for place in places:
            setattr(place, name, sound)


def _modules() -> list[ModuleType]:
    return [module for module in sys.modules.values() if isinstance(module, ModuleType)]


def _mutated(mutant: Mutant, module: Any, sound: Any) -> Any:
    source = inspect.getsource(inspect.unwrap(sound))
    if source.count(mutant.right) != 1:
        raise LookupError(f"{mutant.name}: {mutant.place} has not once {mutant.right.strip()!r}")
    scope: dict[str, Any] = {}
    code = compile(
        "from __future__ import annotations\n" + textwrap.dedent(source.replace(mutant.right, mutant.wrong)),
        f"<{mutant.name}>",
        "exec",
    )
    exec(code, module.__dict__, scope)
    return next(value for key, value in scope.items() if key != "annotations")
