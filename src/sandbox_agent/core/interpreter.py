"""What a relay decided, said to clients that speak another version of ACP than the agent. No IO.

A session speaks its agent's version, and its history keeps what was really said. Only sessions that have a client of
the other version (`mixed`) come here: the others pay nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.asks import is_question
from sandbox_agent.core.effects import Deliver, Effect, Notice, Publish, Record, Retell, Tell
from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.retelling import Retelling, update_line
from sandbox_agent.core.session import Session
from sandbox_agent.core.versions import Version


class Interpreter:
    """One for each agent. Clients of the other version share a retelling for each session."""

    def __init__(self, sessions: Mapping[SessionId, Session], mixed: AbstractSet[SessionId]) -> None:
        self._sessions = sessions
        self._mixed = mixed
        self._version = Version.V1
        self._retellings: dict[SessionId, Retelling] = {}
        self._asked: dict[SessionId, set[int]] = {}

    def speak(self, version: Version) -> None:
        """The process that starts speaks this version."""
        if version is not self._version:
            self._retellings.clear()
        self._version = version
        self._asked.clear()

    def adopt(self, session: SessionId, client: ConnectionId, retelling: Retelling) -> None:
        """Go on with what has seen the session's history, unless others than this client hear one already."""
        now = self._sessions[session]
        foreign = self._foreign(session, now.connections)
        if client not in foreign or (len(foreign) > 1 and session in self._retellings):
            return
        self._retellings[session] = retelling
        self._asked[session] = {ask.id for ask in now.asks.values() if is_question(ask)}
        retelling.translator.is_replay = False
        if now.running is not None:
            retelling.translator.prompt_started("", [])
        for _ in self._asked[session]:
            retelling.translator.ask_opened()

    def interpret(self, effect: Effect, sequence: int) -> list[Effect]:
        """The effect, with what clients of the other version are told in their words; nothing, if it tells nobody.

        `sequence` is the place in the history of what it records, from the first line on; 0 if it has none."""
        session: SessionId | None = getattr(effect, "session", None)
        if session is None or session not in self._mixed:
            self._forget(session)
            return [] if isinstance(effect, Record) else [effect]
        match effect:
            case Record(_, line, source):
                if session in self._retellings:
                    self._retellings[session].note(source, line)
                return []
            case Publish():
                return self._published(effect, sequence)
            case Notice():
                return [*self._noticed(effect), effect]
            case Deliver():
                return [self._delivered(effect, session)]
        return [effect]

    def _published(self, effect: Publish, sequence: int) -> list[Effect]:
        foreign = self._foreign(effect.session, effect.connections)
        if not foreign:
            return [effect]
        natives = tuple(connection for connection in effect.connections if connection not in foreign)
        same = Publish(effect.session, effect.lines, natives, effect.source)
        retelling = self._retelling(effect.session)
        places = range(sequence, sequence + len(effect.lines)) if sequence else [0] * len(effect.lines)
        said = [(at, retelling.tell(at, line)) for at, line in zip(places, effect.lines, strict=True)]
        entries = [(at, lines) for at, lines in said if lines]
        return [same, Retell(effect.session, entries, foreign)] if entries else [same]

    def _delivered(self, effect: Deliver, session: SessionId) -> Effect:
        """A question that is told again. Updates that are delivered so are of our own making, in the right words."""
        if not self._foreign(session, (effect.connection,)) or not frames.parse(effect.line).is_request:
            return effect
        line, *_ = self._retelling(session).tell(0, effect.line)
        return Deliver(effect.connection, line, session)

    def _noticed(self, effect: Notice) -> list[Effect]:
        """Turns and questions are part of version 2, which is told of them by `state_update`."""
        session = self._sessions.get(effect.session)
        foreign = self._foreign(effect.session, session.connections if session is not None else ())
        updates = self._states(effect) if foreign else []
        if not updates:
            return []
        lines = [update_line(params) for params in updates]
        return [Tell(effect.session, lines, foreign)]

    def _states(self, effect: Notice) -> list[Any]:
        translator = self._retelling(effect.session).translator
        asked = self._asked.setdefault(effect.session, set())
        match effect.name:
            case "turn_started":
                return translator.prompt_started(effect.message_id, [_plain(block) for block in effect.prompt])
            case "turn_ended" if effect.params["hasRun"]:
                outcome = {name: _plain(effect.params.get(name)) for name in ("result", "error")}
                return translator.prompt_ended(**outcome)
            case "asked":
                asked.add(effect.params["requestId"])
                return translator.ask_opened()
            case "settled" if effect.params["requestId"] in asked:  # a policy settles what was never asked
                asked.discard(effect.params["requestId"])
                return translator.ask_closed()
        return []

    def _retelling(self, session: SessionId) -> Retelling:
        found = self._retellings.get(session)
        if found is None:
            found = self._retellings[session] = Retelling(session, from_=self._version)
            if session in self._sessions:
                found.opened(read_json(self._sessions[session].opened))
        return found

    def _forget(self, session: SessionId | None) -> None:
        if session in self._retellings:
            del self._retellings[session]
            self._asked.pop(session, None)

    def _foreign(self, session: SessionId, connections: tuple[ConnectionId, ...]) -> tuple[ConnectionId, ...]:
        attached = self._sessions[session].attached if session in self._sessions else {}
        return tuple(c for c in connections if c in attached and attached[c].hears(self._version) is not self._version)


def _plain(value: Any) -> Any:
    return read_json(bytes(value)) if isinstance(value, msgspec.Raw) else value
