"""History entries to the old universal events, one entry at a time.

Three tables decide: `_METHODS` for requests and notifications, `_ANSWERS` for answers by the method that they
answer, `_UPDATES` for the variants of `session/update`. What is in no table makes no event, but for an error
answer.

A prompt also makes a completed user message, which the old stream had; the agent's own echo of it within the
turn is then left out. A message ends with its turn; a new one begins after a tool call, or when reasoning and
message alternate, unless the chunks carry a `messageId`.

`sequence` is 1000 x the history entry's sequence + the position among that entry's events, from 1: 42003 is
the third event of entry 42. It grows strictly, has holes, depends on history alone, and does not move when
retention drops the beginning of a history. `event_id` is `evt_` and that number, unless the envelope brought
an id along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec

from sandbox_agent.core.json_values import Object, as_list, as_object, as_text, iso_time, meta_value
from sandbox_agent.core.methods import (
    CANCEL_REQUEST,
    ITEM_COMPLETED,
    PERMISSION,
    PROMPT,
    QUESTION,
    RUNTIME_ERROR,
    SESSION_ENDED,
    SESSION_STARTED,
    UNPARSED,
    UPDATE,
)
from sandbox_agent.history.entries import Envelope, HistoryEntry, OpenRequests, read_envelope
from sandbox_agent.history.universal.event_data import (
    Permission,
    Question,
    ended_data,
    error_data,
    read_permission,
    read_question,
    turn_id_of,
)
from sandbox_agent.history.universal.items import ItemLedger
from sandbox_agent.history.universal.parts import block_part, status_part
from sandbox_agent.history.version_1 import AsVersion1

EVENTS_PER_ENTRY = 1000

EventSource = Literal["agent", "daemon"]
EVENT_TYPES = tuple(
    "session.started session.ended turn.started turn.ended item.started item.delta item.completed error "
    "permission.requested permission.resolved question.requested question.resolved agent.unparsed".split()
)


class UniversalEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`daemon` is whoever is not the agent; `synthetic` means that no envelope says it outright."""

    event_id: str
    sequence: int
    time: str
    session_id: str
    native_session_id: str | None
    source: EventSource
    synthetic: bool
    type: str
    data: dict[str, Any]
    raw: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class UniversalEvents:
    """Feed it every entry of a session's history in order; the same history gives the same events.

    `session_id` is the name the reader knows the session by, `native_session_id` the agent's; without the
    latter it is learnt from the answer to `session/new`."""

    def __init__(self, session_id: str, *, native_session_id: str | None = None, include_raw: bool = False) -> None:
        self._session_id = session_id
        self._native_id = native_session_id
        self._include_raw = include_raw
        self._is_started = False
        self._open_turns = 0
        self._requests = OpenRequests()
        self._reader = AsVersion1()
        self._items = ItemLedger(self._emit)
        self._sequence = 0
        self._made: list[tuple[str, Object, bool]] = []

    def feed(self, entry: HistoryEntry, *, after: int = 0) -> list[UniversalEvent]:
        """The entry's events with a sequence greater than `after`; the others are only taken note of."""
        envelope = read_envelope(entry.envelope)
        if envelope is None:
            return []
        self._made = []
        self._sequence = entry.sequence
        for read in self._reader.feed(entry):
            self._read(read, envelope if read is entry else read_envelope(read.envelope))
        if not self._made or entry.sequence * EVENTS_PER_ENTRY + len(self._made) <= after:
            return []
        return [event for event in self._stamp(entry, envelope) if event.sequence > after]

    def _read(self, entry: HistoryEntry, envelope: Envelope | None) -> None:
        if envelope is None:
            return
        if envelope.method is not None:
            convert = self._METHODS.get(envelope.method)
            opened = convert(self, envelope) if convert else None
            if envelope.id is not None:
                self._requests.add(entry.source, envelope, (envelope.method, opened))
        elif envelope.id is not None:
            self._answer(entry.source, envelope)

    def _emit(self, type_: str, data: Object, *, synthetic: bool = False) -> None:
        self._made.append((type_, data, synthetic))

    def _stamp(self, entry: HistoryEntry, envelope: Envelope) -> list[UniversalEvent]:
        carried = as_object(meta_value(envelope.params or as_object(envelope.result), "legacyEvent"))
        native = as_text(carried.get("nativeSessionId") or self._native_id) or None
        time = iso_time(entry.time)
        raw = msgspec.Raw(entry.envelope.strip()) if self._include_raw else msgspec.UNSET
        events = []
        for index, (type_, data, is_derived) in enumerate(self._made, start=1):
            sequence = entry.sequence * EVENTS_PER_ENTRY + index
            given_id = as_text(carried.get("eventId")) if index == 1 else ""
            is_synthetic = is_derived or carried.get("synthetic") is True
            events.append(
                UniversalEvent(
                    event_id=given_id or f"evt_{sequence}",
                    sequence=sequence,
                    time=time,
                    session_id=self._session_id,
                    native_session_id=native,
                    source="agent" if entry.source == "agent" and not is_synthetic else "daemon",
                    synthetic=is_synthetic,
                    type=type_,
                    data=data,
                    raw=raw,
                )
            )
        return events

    def _answer(self, source: str, answer: Envelope) -> None:
        request = self._requests.take(source, answer)
        if request is None:
            return
        method, opened = request
        convert = self._ANSWERS.get(method)
        if convert is not None:
            convert(self, opened, answer)
        elif source != "client":
            self._failed(answer)

    def _failed(self, answer: Envelope) -> None:
        if answer.error is not None:
            self._emit("error", error_data(answer.error))

    def _begin_session(self, metadata: Any, native_id: Any, *, synthetic: bool) -> None:
        """Once per life of the session: the answer to session/new and the server's own notice both say it."""
        if native_id and self._native_id is None:
            self._native_id = as_text(native_id)
        if not self._is_started:
            self._is_started = True
            self._emit("session.started", {"metadata": metadata}, synthetic=synthetic)

    def _session_made(self, _: Any, answer: Envelope) -> None:
        if answer.error is not None:
            self._failed(answer)
            return
        result = as_object(answer.result)
        self._begin_session(result.get("_meta"), result.get("sessionId"), synthetic=True)

    def _session_started(self, notice: Envelope) -> None:
        metadata = _without(notice.params, "sessionId")
        self._begin_session(metadata or None, notice.params.get("sessionId"), synthetic=False)

    def _session_ended(self, notice: Envelope) -> None:
        data = ended_data(notice.params)
        self._items.complete_all("completed" if data["reason"] == "completed" else "failed")
        self._is_started = False
        self._emit("session.ended", data)

    def _prompt(self, request: Envelope) -> str:
        self._open_turns += 1
        self._items.begin_turn()
        turn_id = turn_id_of(request.params) or f"turn_{self._sequence}"
        data = {"phase": "started", "turn_id": turn_id, "metadata": request.params.get("_meta")}
        self._emit("turn.started", data, synthetic=True)
        parts = [part for part in map(block_part, as_list(request.params.get("prompt"))) if part]
        self._items.whole(f"msg_{self._sequence}", kind="message", role="user", parts=parts)
        return turn_id

    def _prompt_answered(self, turn_id: str, answer: Envelope) -> None:
        self._open_turns -= 1
        result = as_object(answer.result)
        stop = result.get("stopReason")
        self._items.complete_all("failed" if answer.error is not None or stop == "cancelled" else "completed")
        self._failed(answer)
        metadata = {
            **as_object(result.get("_meta")),
            "stopReason": "error" if answer.error is not None else stop,
        }
        self._emit("turn.ended", {"phase": "ended", "turn_id": turn_id, "metadata": metadata})

    def _update(self, notice: Envelope) -> None:
        update = as_object(notice.params.get("update"))
        convert = self._UPDATES.get(as_text(update.get("sessionUpdate")))
        if convert is not None:
            convert(self, update)
        status = status_part(update) or status_part(notice.params)
        if status is not None:
            self._items.whole(f"status_{self._sequence}", kind="status", role="system", parts=[status])

    def _message_chunk(self, update: Object) -> None:
        self._items.chunk(update, self._sequence, role="assistant", is_reasoning=False)

    def _thought_chunk(self, update: Object) -> None:
        self._items.chunk(update, self._sequence, role="assistant", is_reasoning=True)

    def _user_chunk(self, update: Object) -> None:
        if self._open_turns <= 0:
            self._items.chunk(update, self._sequence, role="user", is_reasoning=False)

    def _tool_call(self, update: Object) -> None:
        self._items.tool(update, is_call=True)

    def _tool_call_update(self, update: Object) -> None:
        self._items.tool(update, is_call=False)

    def _item_completed(self, notice: Envelope) -> None:
        self._items.finalised(notice.params.get("item"))

    def _runtime_error(self, notice: Envelope) -> None:
        self._emit("error", error_data(notice.params))

    def _permission_requested(self, request: Envelope) -> Permission:
        call_id = as_object(request.params.get("toolCall")).get("toolCallId")
        permission = read_permission(request, self._items.tool_name(as_text(call_id)))
        self._emit("permission.requested", permission.requested())
        return permission

    def _permission_answered(self, permission: Permission, answer: Envelope) -> None:
        self._emit("permission.resolved", permission.resolved(answer))

    def _question_requested(self, request: Envelope) -> Question:
        question = read_question(request)
        self._emit("question.requested", question.requested())
        return question

    def _question_answered(self, question: Question, answer: Envelope) -> None:
        self._emit("question.resolved", question.resolved(answer))

    def _withdrawn(self, notice: Envelope) -> None:
        _, opened = self._requests.withdraw(notice.params.get("requestId")) or (None, None)
        if isinstance(opened, Permission):
            self._emit("permission.resolved", opened.withdrawn())
        elif isinstance(opened, Question):
            self._emit("question.resolved", opened.withdrawn())

    def _unparsed(self, notice: Envelope) -> None:
        params = notice.params
        raw_hash = params.get("raw_hash", params.get("rawHash"))
        data = {"error": as_text(params.get("error")), "location": as_text(params.get("location"))}
        self._emit("agent.unparsed", {**data, "raw_hash": None if raw_hash is None else as_text(raw_hash)})

    _METHODS: ClassVar[dict[str, Callable[[UniversalEvents, Envelope], Any]]] = {
        PROMPT: _prompt,
        UPDATE: _update,
        PERMISSION: _permission_requested,
        QUESTION: _question_requested,
        CANCEL_REQUEST: _withdrawn,
        SESSION_STARTED: _session_started,
        SESSION_ENDED: _session_ended,
        ITEM_COMPLETED: _item_completed,
        RUNTIME_ERROR: _runtime_error,
        UNPARSED: _unparsed,
    }
    _ANSWERS: ClassVar[dict[str, Callable[[UniversalEvents, Any, Envelope], None]]] = {
        "session/new": _session_made,
        "session/load": _session_made,
        "session/resume": _session_made,
        "session/fork": _session_made,
        PROMPT: _prompt_answered,
        PERMISSION: _permission_answered,
        QUESTION: _question_answered,
    }
    _UPDATES: ClassVar[dict[str, Callable[[UniversalEvents, Object], None]]] = {
        "agent_message_chunk": _message_chunk,
        "agent_thought_chunk": _thought_chunk,
        "user_message_chunk": _user_chunk,
        "tool_call": _tool_call,
        "tool_call_update": _tool_call_update,
    }


class EventPage:
    """One poll: the events with a sequence greater than `after`, oldest first, at most `limit` of them.

    Events follow from all that came before, so a fresh converter must be fed from the oldest entry on,
    whatever `after` is. `after` need not be an existing sequence; beyond the end gives an empty page."""

    def __init__(self, converter: UniversalEvents, *, after: int = 0, limit: int) -> None:
        self._converter = converter
        self._after = after
        self._limit = limit
        self.events: list[UniversalEvent] = []
        self.has_more = False

    def feed(self, entry: HistoryEntry) -> bool:
        """Take one entry; False once the page is full and known to have a successor: no need to read on."""
        fresh = self._converter.feed(entry, after=self._after)
        room = self._limit - len(self.events)
        self.events += fresh[:room]
        self.has_more = self.has_more or len(fresh) > room
        return not self.has_more


def _without(params: Object, name: str) -> Object:
    return {key: value for key, value in params.items() if key != name}
