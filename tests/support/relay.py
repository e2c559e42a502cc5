"""A relay with both ends at hand: what it sends to the agent, to clients and to the history is collected."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.effects import (
    Broadcast,
    Deliver,
    Effect,
    NameLost,
    Noted,
    Notice,
    Observed,
    Publish,
    Record,
    Replayed,
    Reply,
    Resolve,
    Send,
    Serve,
    Unparsed,
    Wake,
)
from sandbox_agent.core.ids import ConnectionId, SessionId
from sandbox_agent.core.lines import OversizedLine
from sandbox_agent.core.methods import CLAIMED
from sandbox_agent.core.notices import PREFIX, line_of
from sandbox_agent.core.permission_policy import ASK
from sandbox_agent.core.relay import Relay
from sandbox_agent.core.session import Client, Phase
from sandbox_agent.errors import SandboxAgentError, SessionEnded
from support.limits import HUB_OPTIONS

Message = dict[str, Any]
SESSION = SessionId("s")


def client(name: str, *methods: str) -> Client:
    """A client that claims what it takes to answer `methods`."""
    return Client(ConnectionId(name), frozenset(CLAIMED[method] for method in methods))


def request(key: Any, method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def note(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def answer(key: Any, result: Any = None) -> Message:
    return {"jsonrpc": "2.0", "id": key, "result": {} if result is None else result}


def refusal(key: Any, code: int = -32603, message: str = "no") -> Message:
    return {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message}}


def update(text: str, session: str = SESSION, kind: str = "agent_message_chunk") -> Message:
    content = {"type": "text", "text": text}
    return note("session/update", sessionId=session, update={"sessionUpdate": kind, "content": content})


class Wire:
    """Carries out effects the way the hub does, into lists."""

    def __init__(self, ask_ids: Iterator[int] | None = None, **budget: int) -> None:
        budgets = dataclasses.replace(HUB_OPTIONS.agent.budget, **budget)
        self.relay = Relay("mock", ask_ids or count(1), budget=budgets, policy=ASK, name_session=self._name_session)
        self.effects: list[Effect] = []
        self.sent: list[Message] = []
        self.replies: list[tuple[str, int, Message]] = []
        self.events: defaultdict[str, list[Message]] = defaultdict(list)
        self.history: defaultdict[str, list[Message]] = defaultdict(list)
        self.resolved: dict[int, Message] = {}
        self.served: list[Serve] = []
        self.woken: list[str] = []
        self.replayed: list[str] = []
        self.noted: list[str] = []
        self.unparsed: list[Unparsed] = []
        self.observed: list[Observed] = []
        self.notices: defaultdict[str, list[Message]] = defaultdict(list)
        """What of ours each connection was told; apart from `events`, which are the agent's."""
        self.feed: list[Notice] = []
        self._tickets = count(1)

    def _name_session(self, native: str) -> SessionId:
        is_taken = native in self.relay.sessions or native in self.history
        return SessionId(f"{native}~2" if is_taken else native)

    def open(self, session: str, *clients: Client, is_live: bool = True) -> None:
        self.relay.open(SessionId(session), Phase.LIVE if is_live else Phase.DORMANT)
        for one in clients:
            self.attach(one, session)

    def attach(self, one: Client, session: str = SESSION) -> None:
        self.apply(self.relay.attach(one, SessionId(session)))

    def detach(self, one: Client, session: str = SESSION) -> None:
        self.apply(self.relay.detach(one.id, SessionId(session)))

    def prompt(self, one: Client, key: Any, session: str = SESSION, text: str = "hi") -> int:
        """Give the ticket of a prompt that has been sent."""
        raw = msgspec.json.encode(
            request(key, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        )
        ticket = next(self._tickets)
        self.apply(self.relay.prompt(one, ticket, frames.parse(raw), raw))
        return ticket

    def call(self, one: Client, message: Message | bytes) -> int:
        raw = message if isinstance(message, bytes) else msgspec.json.encode(message)
        ticket = next(self._tickets)
        self.apply(self.relay.call(one, ticket, frames.parse(raw), raw))
        return ticket

    def own(self, method: str, session: str | None = None, on_behalf: tuple[Client, bytes] | None = None) -> int:
        params = {} if session is None else {"sessionId": session}
        call, effects = self.relay.call_own(
            method, params, None if session is None else SessionId(session), on_behalf=on_behalf
        )
        self.apply(effects)
        return call

    def notify(self, message: Message) -> None:
        raw = msgspec.json.encode(message)
        self.apply(self.relay.notify(frames.parse(raw), raw))

    def take_back(self, one: Client, key: Any) -> None:
        self.apply(self.relay.cancel_request(one.id, msgspec.json.encode(note("$/cancel_request", requestId=key))))

    def answer(self, one: Client, message: Message) -> None:
        raw = msgspec.json.encode(message)
        self.apply(self.relay.answer(one.id, frames.parse(raw), raw))

    def wake(self, session: str = SESSION) -> None:
        """The process takes the session up again."""
        self.relay.wake(SessionId(session), ASK, session)
        self.apply(self.relay.woken(SessionId(session)))

    def agent(self, *messages: Message | bytes | OversizedLine) -> list[Effect]:
        """What comes of a batch of lines from the agent."""
        lines = [msgspec.json.encode(m) if isinstance(m, dict) else m for m in messages]
        return self.apply(self.relay.from_agent(lines))

    def exit(self, error: SandboxAgentError) -> None:
        self.apply(self.relay.exited(error))

    def apply(self, effects: Sequence[Effect]) -> list[Effect]:
        for effect in effects:
            self.effects.append(effect)
            self._apply(effect)
        return list(effects)

    def _apply(self, effect: Effect) -> None:
        match effect:
            case Send(line):
                assert b"\n" not in line
                self.sent.append(msgspec.json.decode(line))
            case Publish(session, lines, connections):
                messages = [msgspec.json.decode(line) for line in lines]
                self.history[session] += messages
                for connection in connections:
                    self.events[connection] += messages
            case Record(session, line):
                self.history[session].append(msgspec.json.decode(line))
            case Deliver(connection, line):
                message = msgspec.json.decode(line)
                is_ours = str(message.get("method")).startswith(PREFIX)
                (self.notices if is_ours else self.events)[connection].append(message)
            case Notice(_, _, _, connections):
                self.feed.append(effect)
                for connection in connections:
                    self.notices[connection].append(msgspec.json.decode(line_of(effect)))
            case Broadcast(line):
                self.events["*"].append(msgspec.json.decode(line))
            case Reply(connection, ticket, line):
                self.replies.append((connection, ticket, msgspec.json.decode(line)))
            case _:
                self._keep(effect)

    def _keep(self, effect: Effect) -> None:
        match effect:
            case Resolve(call, line):
                assert call not in self.resolved
                self.resolved[call] = msgspec.json.decode(line)
            case Observed():
                self.observed.append(effect)
            case Replayed(session):
                self.replayed.append(session)
            case NameLost(session):
                self.apply(self.relay.end(session, SessionEnded("name lost")))
            case Wake(session):
                self.woken.append(session)
            case Serve():
                self.served.append(effect)
            case Unparsed():
                self.unparsed.append(effect)
            case Noted(message):
                self.noted.append(message)
