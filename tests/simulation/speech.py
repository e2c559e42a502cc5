"""What an agent says in either version of ACP: its introduction, updates, questions, how a turn begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Message = dict[str, Any]

_OPTIONS = [
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "n", "name": "No", "kind": "reject_once"},
]
MANNERS = ("first", "later", "last", "as version 1")
"""When an agent of version 2 acknowledges a prompt: before all else, after the message, after the end, or it answers
with the end as version 1 does."""


class Speech(Protocol):
    def introduction(self, can: frozenset[str]) -> Message: ...

    def odd_answer(self) -> Message:
        """Members of wrong types in the answer to `session/new`."""

    def chunk(self, name: str, token: str) -> Message: ...

    def asks(self, key: Any, name: str, token: str) -> list[Message]: ...

    def goes_on(self, name: str) -> list[Message]:
        """After an answer."""

    def begins(self, key: Any, name: str, prompt: Message) -> list[Message]: ...

    def ends(self, key: Any, name: str, prompt: Message, reason: str, *, is_given_up: bool) -> list[Message]:
        """`is_given_up`: the session was closed and taken up again meanwhile."""

    def ends_early(self, key: Any) -> list[Message]:
        """What says in the middle of a turn that it is over, where that can be told from the end of the next one."""


class Version1:
    def introduction(self, can: frozenset[str]) -> Message:
        more: Message = {verb: {} for verb in sorted(can - {"load"})}
        capabilities = {"loadSession": "load" in can, "sessionCapabilities": more}
        return {"protocolVersion": 1, "agentCapabilities": capabilities}

    def odd_answer(self) -> Message:
        return {"modes": {"currentModeId": 5, "availableModes": "none"}, "models": 7}

    def chunk(self, name: str, token: str) -> Message:
        return update(name, "agent_message_chunk", content=_text(token))

    def asks(self, key: Any, name: str, token: str) -> list[Message]:
        call = {"toolCallId": token, "title": "work"}
        return [_permission(key, name, toolCall=call)]

    def goes_on(self, name: str) -> list[Message]:
        return []

    def begins(self, key: Any, name: str, prompt: Message) -> list[Message]:
        return []

    def ends(self, key: Any, name: str, prompt: Message, reason: str, *, is_given_up: bool) -> list[Message]:
        return [{"id": key, "result": {"stopReason": reason, "n": prompt["n"]}}]

    def ends_early(self, key: Any) -> list[Message]:
        return [{"id": key, "result": {"stopReason": "end_turn", "n": -1}}]


class Version2:
    def __init__(self, manner: str) -> None:
        self._manner = manner

    def introduction(self, can: frozenset[str]) -> Message:
        more: Message = {verb: {} for verb in sorted(can & {"fork", "delete"})}  # all of them can do the rest
        return {"protocolVersion": 2, "capabilities": {"session": more}, "info": {"name": "simulated", "version": "1"}}

    def odd_answer(self) -> Message:
        return {"configOptions": [{"id": 5, "category": "mode", "currentValue": []}, "none"]}

    def chunk(self, name: str, token: str) -> Message:
        return update(name, "agent_message_chunk", messageId=f"m-{token}", content=_text(token))

    def asks(self, key: Any, name: str, token: str) -> list[Message]:
        subject = {"type": "tool_call", "toolCall": {"toolCallId": token, "title": "work"}}
        return [
            update(name, "state_update", state="requires_action"),
            _permission(key, name, title="work", subject=subject),
        ]

    def goes_on(self, name: str) -> list[Message]:
        return [update(name, "state_update", state="running")]

    def begins(self, key: Any, name: str, prompt: Message) -> list[Message]:
        message = update(name, "user_message", messageId=_message_id(prompt), content=[_text("what was asked")])
        running = update(name, "state_update", state="running")
        match self._manner:
            case "first":
                return [_acknowledged(key, prompt), message, running]
            case "later":
                return [message, _acknowledged(key, prompt), running]
        return [message, running]

    def ends(self, key: Any, name: str, prompt: Message, reason: str, *, is_given_up: bool) -> list[Message]:
        if self._manner == "as version 1":
            return [{"id": key, "result": {"stopReason": reason, "n": prompt["n"]}}]
        late = [_acknowledged(key, prompt)] if self._manner == "last" else []
        if is_given_up:  # it would be taken for the end of whatever the session does now
            return late
        idle = update(name, "state_update", state="idle", stopReason=reason, usage={"n": prompt["n"]})
        return [idle, *late]

    def ends_early(self, key: Any) -> list[Message]:
        return []


def speech(version: int, manner: str) -> Speech:
    return Version1() if version == 1 else Version2(manner)


def update(name: str, kind: str, **members: Any) -> Message:
    params = {"sessionId": name, "update": {"sessionUpdate": kind, **members}}
    return {"method": "session/update", "params": params}


def told(messages: Sequence[Message]) -> list[str]:
    """The tokens in what an agent has said."""
    updates = [message["params"]["update"] for message in messages if message.get("method") == "session/update"]
    return [token for token in map(token_of, updates) if token is not None]


def token_of(update: dict[str, Any]) -> str | None:
    """The token of an update that an agent sent, whatever its kind."""
    content, title = update.get("content"), update.get("title")
    if update.get("sessionUpdate") == "agent_message_chunk" and isinstance(content, dict):
        return str(content["text"])
    if update.get("sessionUpdate") == "session_info_update" and title is not None:
        return str(title)
    return None


def is_state(message: Message) -> bool:
    """Whether it says what a session does, as version 2 tells it."""
    is_update = message.get("method") == "session/update"
    return is_update and message["params"]["update"]["sessionUpdate"] == "state_update"


def _acknowledged(key: Any, prompt: Message) -> Message:
    return {"id": key, "result": {"messageId": _message_id(prompt)}}


def _message_id(prompt: Message) -> str:
    return f"m-{prompt['n']}"


def _permission(key: Any, name: str, **about: Any) -> Message:
    params = {"sessionId": name, **about, "options": _OPTIONS}
    return {"id": key, "method": "session/request_permission", "params": params}


def _text(text: str) -> Message:
    return {"type": "text", "text": text}
