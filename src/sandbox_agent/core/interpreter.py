"""What a relay decided, said to clients that speak another version of ACP than the agent. No IO.

A session speaks its agent's version, and its history keeps what was really said. Only sessions that have a client of
the other version (`mixed`) come here: the others pay nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from sandbox_agent.core import frames, versions
from sandbox_agent.core.effects import Deliver, Effect, Notice, Publish, Tell
from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import UPDATE
from sandbox_agent.core.session import Session
from sandbox_agent.core.versions import UpdateTranslator, Version


class Interpreter:
    """One for each agent. Clients of the other version share a translator for each session."""

    def __init__(self, sessions: Mapping[SessionId, Session], mixed: AbstractSet[SessionId]) -> None:
        self._sessions = sessions
        self._mixed = mixed
        self._version = Version.V1
        self._translators: dict[SessionId, UpdateTranslator] = {}
        self._asked: dict[SessionId, set[int]] = {}

    def speak(self, version: Version) -> None:
        """The process that starts speaks this version."""
        if version is not self._version:
            self._translators.clear()
        self._version = version
        self._asked.clear()

    def adopt(self, session: SessionId, translator: UpdateTranslator) -> None:
        """Go on with a translator that has seen the session's history, unless one is at work already."""
        if session in self._mixed and session not in self._translators:
            translator.is_replay = False
            self._translators[session] = translator

    def interpret(self, effects: Sequence[Effect]) -> list[Effect]:
        """The same effects, with what clients of the other version are told in their words."""
        told: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Publish) and effect.session in self._mixed:
                told += self._published(effect)
            elif isinstance(effect, Notice) and effect.session in self._mixed:
                told += [*self._noticed(effect), effect]
            elif isinstance(effect, Deliver) and effect.session is not None and effect.session in self._mixed:
                told.append(self._delivered(effect, effect.session))
            else:
                told.append(effect)
        for session in [session for session in self._translators if session not in self._mixed]:
            del self._translators[session]
            self._asked.pop(session, None)
        return told

    def _published(self, effect: Publish) -> list[Effect]:
        foreign = self._foreign(effect.session, effect.connections)
        if not foreign:
            return [effect]
        natives = tuple(connection for connection in effect.connections if connection not in foreign)
        lines = [said for line in effect.lines for said in self._translated(effect.session, line)]
        same = Publish(effect.session, effect.lines, natives, effect.source)
        return [same, Tell(effect.session, lines, foreign)] if lines else [same]

    def _delivered(self, effect: Deliver, session: SessionId) -> Effect:
        """A question that is told again. Updates that are delivered so are of our own making, in the right words."""
        if not self._foreign(session, (effect.connection,)) or not frames.parse(effect.line).is_request:
            return effect
        line, *_ = self._translated(session, effect.line)
        return Deliver(effect.connection, line, session)

    def _noticed(self, effect: Notice) -> list[Effect]:
        """Turns and questions are part of version 2, which is told of them by `state_update`."""
        session = self._sessions.get(effect.session)
        foreign = self._foreign(effect.session, session.connections if session is not None else ())
        updates = self._states(effect) if foreign else []
        if not updates:
            return []
        lines = [_update_line(params) for params in updates]
        return [Tell(effect.session, lines, foreign)]

    def _states(self, effect: Notice) -> list[Any]:
        translator = self._translator(effect.session)
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

    def _translated(self, session: SessionId, line: bytes) -> list[bytes]:
        message = read_json(line)
        method, params = message.get("method"), message.get("params")
        if method == UPDATE:
            return [_update_line(said) for said in self._translator(session).update(params)]
        if not isinstance(method, str) or method.startswith("_"):
            return [line]
        method, params = versions.ask(method, params, from_=self._version, to=_other(self._version))
        if "id" in message:
            return [frames.request(frames.member(line, "id") or b"null", method, params)]
        return [frames.notification(method, params)]

    def _translator(self, session: SessionId) -> UpdateTranslator:
        found = self._translators.get(session)
        if found is None:
            found = self._translators[session] = UpdateTranslator(
                session, from_=self._version, to=_other(self._version)
            )
            if session in self._sessions:
                found.session_opened(read_json(self._sessions[session].opened))
        return found

    def _foreign(self, session: SessionId, connections: tuple[ConnectionId, ...]) -> tuple[ConnectionId, ...]:
        attached = self._sessions[session].attached if session in self._sessions else {}
        return tuple(c for c in connections if c in attached and attached[c].hears(self._version) is not self._version)


def _other(version: Version) -> Version:
    return Version.V2 if version is Version.V1 else Version.V1


def _update_line(params: Any) -> bytes:
    return frames.notification(UPDATE, params)


def _plain(value: Any) -> Any:
    return read_json(bytes(value)) if isinstance(value, msgspec.Raw) else value
