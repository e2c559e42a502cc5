"""What one client has under way, without IO: enough to go on over another connection when the server was restarted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META, Frame
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import CANCEL_REQUEST, STREAM_GAP, may_repeat
from sandbox_agent.errors import MalformedMessage

_SETTLED = "_sandboxagent/session/settled"
_NAMING = frozenset({"session/new", "session/fork"})
_JOINING = frozenset({"session/load", "session/resume", "session/prompt"})
_LEAVING = frozenset(
    {"session/close", "session/delete", "_sandboxagent/session/detach", "_sandboxagent/session/terminate"}
)


class _Params(msgspec.Struct):
    meta: dict[str, dict[str, Any] | None] | None = msgspec.field(name="_meta", default=None)


@dataclass(slots=True, eq=False)
class Pending:
    """A request of the client that has no answer yet."""

    key: bytes
    method: str
    session: str | None
    raw: bytes
    generation: int
    """The connection that it was last looked after on, by its number."""
    is_taken: bool = False
    """Whether the server of that connection has it."""

    @property
    def may_repeat(self) -> bool:
        return may_repeat(self.method)


@dataclass(slots=True)
class Ledger:
    """Every message passes here, in both directions, and comes out as the other side is to see it.

    A restarted server counts its questions from 1 again, so from the second connection on the client sees them under
    other ids: it must not mix them up with older ones."""

    generation: int = 0
    gaps: int = 0
    """How often the server has said that it no longer has what we missed."""
    pending: dict[bytes, Pending] = field(default_factory=dict)
    _asked: set[bytes] = field(default_factory=set)
    _sessions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def request(self, frame: Frame, raw: bytes) -> Pending:
        """Remember a request until `incoming` has its answer. A prompt gets a turnId, so that it runs once."""
        if frame.method == "session/prompt":
            raw = with_meta(raw, "turnId", uuid4().hex, is_default=True)
        pending = Pending(frame.key, frame.method or "", frame.session, raw, self.generation)
        self.pending[frame.key] = pending
        return pending

    def answer(self, frame: Frame, raw: bytes) -> bytes | None:
        """The client's answer as the server expects it; None when the one who asked is gone."""
        if frame.key not in self._asked:
            return None
        self._asked.discard(frame.key)
        value = read_json(frame.key)
        is_renamed = isinstance(value, str) and self.generation > 0
        return frames.with_id(raw, value.partition("/")[2].encode()) if is_renamed else raw

    def incoming(self, line: bytes) -> bytes | None:
        """A line of the server as the client is to see it; None for an answer that it has already."""
        try:
            frame = frames.parse(line)
        except MalformedMessage:
            return line
        if frame.is_request:
            key = self._key_for_client(frame.key)
            self._asked.add(key)
            return line if key == frame.key else frames.with_id(line, key)
        if frame.is_answer:
            pending = self.pending.pop(frame.key, None)
            if pending is not None and not frame.is_error:
                self._learn(pending, line)
            return line if pending is not None else None
        if frame.method in {CANCEL_REQUEST, _SETTLED}:
            return self._settled(line)
        self.gaps += frame.method == STREAM_GAP
        return line

    def is_waiting(self, pending: Pending) -> bool:
        return self.pending.get(pending.key) is pending

    def give_up(self, pending: Pending) -> bool:
        """Expect no answer any more; whether one was still to come."""
        is_waiting = self.is_waiting(pending)
        if is_waiting:
            del self.pending[pending.key]
        return is_waiting

    def resumptions(self) -> list[bytes]:
        """What attaches another connection to the same sessions."""
        return [
            frames.request(b'"resume"', "session/resume", {**params, "sessionId": session})
            for session, params in self._sessions.items()
        ]

    def reopened(self) -> list[bytes]:
        """The server knows nothing of what it asked before: the notices that take these questions back."""
        self.generation += 1
        withdrawn, self._asked = self._asked, set()
        return [frames.notification(CANCEL_REQUEST, {"requestId": msgspec.Raw(key)}) for key in withdrawn]

    def _settled(self, line: bytes) -> bytes:
        asked = msgspec.json.decode(frames.params_of(line), type=dict[str, msgspec.Raw]).get("requestId")
        if asked is None:
            return line
        key = self._key_for_client(bytes(asked))
        self._asked.discard(key)
        return frames.with_params(line, {"requestId": msgspec.Raw(key)}) if self.generation else line

    def _learn(self, pending: Pending, line: bytes) -> None:
        """Which sessions the connection is attached to, and what it takes to resume them."""
        session = pending.session
        if pending.method in _LEAVING:
            self._sessions.pop(session or "", None)
            return
        if pending.method in _NAMING:
            session = str((read_json(frames.member(line, "result") or b"{}") or {}).get("sessionId"))
        elif pending.method not in _JOINING:
            return
        params = read_json(frames.params_of(pending.raw)) or {}
        known = self._sessions.get(session or "", {"cwd": "/", "mcpServers": []})
        self._sessions[session or ""] = {name: params.get(name, value) for name, value in known.items()}

    def _key_for_client(self, key: bytes) -> bytes:
        return key if self.generation == 0 else frames.to_json(f"{self.generation}/{key.decode()}")


def with_meta(raw: bytes, name: str, value: str, *, is_default: bool = False) -> bytes:
    """The message with a member in our part of `params._meta`. Raises msgspec.MsgspecError for odd params."""
    meta = frames.decode(frames.params_of(raw), _Params).meta or {}
    ours = meta.get(META) or {}
    merged = {name: value, **ours} if is_default else {**ours, name: value}
    return frames.with_params(raw, {"_meta": {**meta, META: merged}})


def has_our_meta(raw: bytes) -> bool:
    """Whether the message has our part of `params._meta`."""
    return META in (frames.decode(frames.params_of(raw), _Params).meta or {})
