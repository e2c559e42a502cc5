"""The fold: entries of a session's history in, OpenCode's events out.

It holds the turn that is open and little else, so that a long session costs no more than a short one. Ids come from the
order and the times of the entries: the same history gives the same ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from sandbox_agent.core import config_options
from sandbox_agent.core.json_values import Object, as_list, as_object, as_text, meta_value
from sandbox_agent.core.methods import (
    CANCEL_REQUEST,
    ELICITATION,
    PERMISSION,
    PROMPT,
    QUESTION,
    SESSION_CANCEL,
    SESSION_ENDED,
    TERMINAL_OUTPUT,
    UPDATE,
)
from sandbox_agent.history.entries import Envelope, HistoryEntry, OpenRequests, read_envelope
from sandbox_agent.history.opencode.asks import Permission, Question
from sandbox_agent.history.opencode.blocks import part_of
from sandbox_agent.history.opencode.changes import FileChanges
from sandbox_agent.history.opencode.ids import Ids
from sandbox_agent.history.opencode.infos import SessionView, assistant_message, slash_command, user_message
from sandbox_agent.history.opencode.limits import INPUT_CHARS, PATCH_CHARS, cut
from sandbox_agent.history.opencode.telling import Telling, Told, milliseconds
from sandbox_agent.history.opencode.tools import ToolPart
from sandbox_agent.history.opencode.turn import AssistantTurn
from sandbox_agent.history.version_1 import AsVersion1

Asked = TypeVar("Asked", Permission, Question)

DEFAULT_MODEL = "default"
"""The model that an agent uses where nobody chose one."""
DEFAULT_MODE = "build"
"""OpenCode's name for the usual way to work: the agent's mode as it is."""
_TODOS = 500
_COMMANDS = 500
_FINISHES = {"end_turn": "stop", "max_tokens": "length", "max_turn_requests": "length", "refusal": "content-filter"}
_ABORTED: Object = {"name": "MessageAbortedError", "data": {"message": "The turn was aborted."}}
_INTERRUPTED: Object = {"name": "MessageAbortedError", "data": {"message": "The turn was interrupted."}}


class SessionFold:
    def __init__(self, view: SessionView) -> None:
        self.asks: dict[str, Permission | Question] = {}
        """What waits for an answer, by its OpenCode id."""
        self.todos: list[Object] = []
        self.commands: list[Object] = []
        self.changes = FileChanges()
        self.sequence = 0
        """The last entry that was fed."""
        self._view = view
        self._ids = Ids(view.seed)
        self._telling = Telling(view.session_id)
        self._reader = AsVersion1()
        self._requests = OpenRequests()
        self._turn: AssistantTurn | None = None
        self._tools: dict[str, ToolPart] = {}
        """Those of the turn before too: some tools are told of when their turn is over."""
        self._offered: config_options.Offered = {}
        self._user_id = ""
        self._user: Object = {}
        self._is_user_speaking = False
        self._before = self._time = 0.0
        """When the entry before was written, and when this one was."""

    @property
    def is_open(self) -> bool:
        """A prompt has not been answered, as far as the history says."""
        return self._turn is not None and self._turn.has_prompt

    def feed(self, entry: HistoryEntry) -> list[Told]:
        for read in self._reader.feed(entry):
            envelope = read_envelope(read.envelope)
            self._before, self._time = self._time, max(self._time, read.time)
            if envelope is not None:
                self._read(read, envelope)
        self.sequence = entry.sequence
        return self._telling.take()

    def interrupted(self) -> list[Told]:
        """What is to be told when it is known that the open turn will not go on: the server was killed in it."""
        self._before = self._time
        self._interrupt()
        return self._telling.take()

    def _read(self, entry: HistoryEntry, envelope: Envelope) -> None:
        if envelope.method is not None:
            read = self._METHODS.get(envelope.method)
            opened = read(self, entry, envelope) if read is not None else None
            if envelope.id is not None:
                self._requests.add(entry.source, envelope, (envelope.method, opened))
        elif envelope.id is not None:
            request = self._requests.take(entry.source, envelope)
            if request is not None:
                self._answered(request[0], request[1], envelope)

    def _answered(self, method: str, opened: Any, answer: Envelope) -> None:
        if method == PROMPT:
            self._prompt_answered(opened, answer)
        elif isinstance(opened, Permission | Question):
            self._settle(opened, answer)
        elif method.startswith("session/"):
            self._offered = {**self._offered, **config_options.from_answer(answer.result)}

    def _prompt(self, entry: HistoryEntry, request: Envelope) -> AssistantTurn:
        """A prompt is the user's message; the assistant's begins with it, empty."""
        self._interrupt()
        said = as_object(meta_value(request.params, "opencode"))
        chosen = as_object(said.get("model"))
        model = as_text(chosen.get("modelID")) or self._model
        mode = as_text(said.get("agent")) or self._mode
        self._begin_user(self._ids.adopt(said.get("messageID"), entry.time), model, mode)
        for block in as_list(request.params.get("prompt")):
            self._tell_user_part(part_of(block))
        self._telling.tell("session.status", status={"type": "busy"})
        self._is_user_speaking = False
        return self._begin_turn(model, mode, has_prompt=True)

    def _prompt_answered(self, turn: AssistantTurn, answer: Envelope) -> None:
        if turn is not self._turn:
            return
        result = as_object(answer.result)
        reason = as_text(result.get("stopReason"))
        turn.usage.answered(as_object(result.get("usage")))
        error: Object | None = None
        if answer.error is not None:
            message = cut(as_text(answer.error.get("message")), INPUT_CHARS) or "the agent failed"
            error = {"name": "UnknownError", "data": {"message": message}}
        elif reason == "cancelled" or turn.is_cancelled:
            error = _ABORTED
        self._close_turn(error, finish=_FINISHES.get(reason, "stop" if error is None else "error"))

    def _update(self, entry: HistoryEntry, notice: Envelope) -> None:
        update = as_object(notice.params.get("update"))
        kind = as_text(update.get("sessionUpdate"))
        if kind == "user_message_chunk":
            self._user_chunk(update)
        elif kind in ("agent_message_chunk", "agent_thought_chunk"):
            self._spoken().say("text" if kind == "agent_message_chunk" else "reasoning", update, self._time)
        elif kind in ("tool_call", "tool_call_update"):
            self._tool(update)
        elif kind == "plan":
            self._plan(as_list(update.get("entries")))
        elif kind == "usage_update" and self._turn is not None:
            self._turn.usage.update(update)
        elif kind == "available_commands_update":
            self.commands = [slash_command(as_object(c)) for c in as_list(update.get("availableCommands"))[:_COMMANDS]]
        elif kind in ("current_mode_update", "config_option_update"):
            self._offered = config_options.after_update(self._offered, kind, update)

    def _user_chunk(self, update: Object) -> None:
        """What the user said in a session that was loaded from the agent; in a turn of ours it is an echo."""
        if self.is_open:
            return
        if not self._is_user_speaking:
            self._close_turn(None)
            self._begin_user(None, self._model, self._mode)
            self._is_user_speaking = True
        self._tell_user_part(part_of(update.get("content")))

    def _tool(self, update: Object) -> ToolPart:
        call_id = as_text(update.get("toolCallId")) or "call"
        is_new = update.get("sessionUpdate") == "tool_call"  # some agents give the same names in every turn
        late = None if is_new else self._tools.get(call_id)
        if late is not None and (self._turn is None or call_id not in self._turn.tools):
            late.merge(update, milliseconds(self._time))
            self._telling.part(late.part(), milliseconds(self._time))
            return late
        before = self._turn.tools.get(call_id) if self._turn is not None else None
        was_over = before is not None and before.is_over
        tool = self._spoken().tool(update, call_id, self._time)
        if tool.is_over and not was_over and update.get("status") == "completed":
            for edit in tool.edits:
                self.changes.add(edit)
                self._telling.of_no_session("file.edited", file=edit.path)
        return tool

    def _plan(self, entries: list[Any]) -> None:
        self.todos = [
            {
                "content": cut(as_text(entry.get("content")), INPUT_CHARS),
                "status": as_text(entry.get("status")) or "pending",
                "priority": as_text(entry.get("priority")) or "medium",
            }
            for entry in map(as_object, entries[:_TODOS])
        ]
        self._telling.tell("todo.updated", todos=self.todos)

    def _permission(self, entry: HistoryEntry, request: Envelope) -> Permission:
        tool = self._tool(as_object(request.params.get("toolCall")))
        tool.asked_for()
        self._telling.part(tool.part(), milliseconds(self._time))
        return self._ask(Permission(self._ids.next("per", self._time), request.id, request.params, tool))

    def _question(self, entry: HistoryEntry, request: Envelope) -> Question:
        is_form = request.method == ELICITATION
        return self._ask(Question(self._ids.next("que", self._time), request.id, request.params, is_form=is_form))

    def _ask(self, asked: Asked) -> Asked:
        asked.tell_asked(self._telling)
        self.asks[asked.id] = asked
        return asked

    def _settle(self, asked: Permission | Question, answer: Envelope | None) -> None:
        if self.asks.pop(asked.id, None) is not None:
            asked.tell_settled(self._telling, answer)

    def _withdrawn(self, entry: HistoryEntry, notice: Envelope) -> None:
        request = self._requests.withdraw(notice.params.get("requestId"))
        if request is not None and isinstance(request[1], Permission | Question):
            self._settle(request[1], None)

    def _cancelled(self, entry: HistoryEntry, notice: Envelope) -> None:
        if self._turn is not None:
            self._turn.is_cancelled = True

    def _printed(self, entry: HistoryEntry, notice: Envelope) -> None:
        output = notice.params.get("output")
        if self._turn is not None and isinstance(output, str):
            self._turn.printed(as_text(notice.params.get("terminalId")), output, self._time)

    def _ended(self, entry: HistoryEntry, notice: Envelope) -> None:
        self._close_turn(_INTERRUPTED)

    def _spoken(self) -> AssistantTurn:
        """The message that the agent speaks in. Without a prompt it is complete at any time, and may grow."""
        self._is_user_speaking = False
        if self._turn is None:
            turn = self._begin_turn(self._model, self._mode, has_prompt=False)
            turn.info["time"]["completed"] = milliseconds(self._time)
            self._telling.message(turn.info)
        return self._turn  # type: ignore[return-value]  # made above

    def _begin_user(self, own_id: str | None, model: str, mode: str) -> None:
        self._user_id = own_id or self._ids.next("msg", self._time)
        self._user = user_message(self._view, self._user_id, self._time, model, mode)
        self._telling.message(self._user)

    def _tell_user_part(self, content: Object) -> None:
        part_id = self._ids.next("prt", self._time)
        named = {"id": part_id, "sessionID": self._view.session_id, "messageID": self._user_id}
        self._telling.part({**named, **content}, milliseconds(self._time))

    def _begin_turn(self, model: str, mode: str, *, has_prompt: bool) -> AssistantTurn:
        message_id = self._ids.next("msg", self._time)
        info = assistant_message(self._view, message_id, self._user_id or message_id, self._time, model, mode)
        self._turn = AssistantTurn(self._telling, self._ids, info, has_prompt=has_prompt)
        self._turn.begin(self._time)
        return self._turn

    def _interrupt(self) -> None:
        """A turn that nobody ended was over with its last word, whenever that is noticed."""
        now, self._time = self._time, self._before
        self._close_turn(_INTERRUPTED)
        self._time = now

    def _close_turn(self, error: Object | None, finish: str = "") -> None:
        """Nothing, if no turn is open. An error is one of a prompt: what was not prompted has none."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        problem = error if turn.has_prompt else None
        for asked in list(self.asks.values()):
            self._settle(asked, None)
        reason = as_object((problem or {}).get("data")).get("message") or "the turn ended before this did"
        turn.end(
            self._time, finish=finish or ("stop" if problem is None else "error"), error=problem, unfinished=reason
        )
        self._tools = turn.tools
        if not turn.has_prompt:
            return
        if problem is not None:
            self._telling.tell("session.error", error=problem)
        self._tell_changes(turn)
        self._telling.tell("session.status", status={"type": "idle"})
        self._telling.tell("session.idle")

    def _tell_changes(self, turn: AssistantTurn) -> None:
        """What the turn has changed stands in the message of the user who prompted it."""
        changed = FileChanges(PATCH_CHARS)
        for edit in [edit for tool in turn.tools.values() if tool.is_done for edit in tool.edits]:
            changed.add(edit)
        self._telling.message({**self._user, "summary": {"diffs": changed.listed()}})
        if changed.listed():
            self._telling.tell("session.diff", diff=self.changes.listed())

    @property
    def _model(self) -> str:
        return config_options.current(self._offered, "model") or DEFAULT_MODEL

    @property
    def _mode(self) -> str:
        return config_options.current(self._offered, "mode") or DEFAULT_MODE

    _METHODS: ClassVar[dict[str, Callable[[SessionFold, HistoryEntry, Envelope], Any]]] = {
        PROMPT: _prompt,
        UPDATE: _update,
        PERMISSION: _permission,
        QUESTION: _question,
        ELICITATION: _question,
        CANCEL_REQUEST: _withdrawn,
        SESSION_CANCEL: _cancelled,
        SESSION_ENDED: _ended,
        TERMINAL_OUTPUT: _printed,
    }
