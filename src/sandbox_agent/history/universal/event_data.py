"""What the events of turns, ends, errors, permissions and questions say, in the words of the earlier API."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.core.json_values import Object, as_list, as_object, as_text, meta_value
from sandbox_agent.history.entries import Envelope

STATUS_BY_OPTION_KIND = {
    "allow_once": "accept",
    "allow_always": "accept_for_session",
    "reject_once": "reject",
    "reject_always": "reject",
}
_END_REASONS = {
    "closed": "completed",
    "deleted": "terminated",
    "cancelled": "terminated",
    "shutdown": "terminated",
}


def turn_id_of(params: Object) -> str:
    turn = meta_value(params, "turnId") or meta_value(params, "turn")
    if isinstance(turn, dict):
        turn = turn.get("turnId") or turn.get("id")
    return as_text(turn)


def ended_data(params: Object) -> Object:
    """The old enums know three reasons and two culprits; what else we say goes into the message."""
    given = as_text(params.get("reason"))
    reason = given if given in ("completed", "terminated") else _END_REASONS.get(given, "error")
    by = params.get("terminated_by", params.get("terminatedBy"))
    message = params.get("message")
    data: Object = {"reason": reason, "terminated_by": "agent" if by == "agent" else "daemon"}
    if message is not None or given not in ("completed", "terminated", "error"):
        data["message"] = as_text(message) or given
    exit_code = params.get("exit_code", params.get("exitCode"))
    if exit_code is not None:
        data["exit_code"] = exit_code
    stderr = as_object(params.get("stderr"))
    if stderr:
        total = stderr.get("total_lines", stderr.get("totalLines"))
        data["stderr"] = {
            "head": stderr.get("head"),
            "tail": stderr.get("tail"),
            "truncated": bool(stderr.get("truncated")),
            "total_lines": total,
        }
    return data


def error_data(error: Object) -> Object:
    """`code` is the old string type where the error carries one, else the number as text."""
    details = error.get("data", error.get("details"))
    code = meta_value(as_object(details), "errorType")
    code = error.get("code") if code is None else code
    return {
        "message": as_text(error.get("message")),
        "code": None if code is None else as_text(code),
        "details": details,
    }


class Permission(msgspec.Struct, frozen=True):
    permission_id: str
    action: str
    params: Object

    def requested(self) -> Object:
        metadata = {name: value for name, value in self.params.items() if name != "sessionId"}
        return self._data("requested", metadata)

    def resolved(self, answer: Envelope) -> Object:
        """Anything but a selected allow option, also an error or a cancelled outcome, is a reject."""
        result = as_object(answer.result)
        outcome = as_object(result.get("outcome"))
        metadata: Object = {"outcome": as_text(outcome.get("outcome")) or "error"}
        if answer.error is not None:
            metadata["error"] = answer.error
        option_id = outcome.get("optionId")
        option = next(
            (o for o in map(as_object, as_list(self.params.get("options"))) if o.get("optionId") == option_id),
            {},
        )
        kind = as_text(option.get("kind"))
        if option_id is not None:
            metadata |= {"optionId": option_id, "optionKind": kind or None}
        if "_meta" in result:
            metadata["_meta"] = result["_meta"]
        return self._data(STATUS_BY_OPTION_KIND.get(kind, "reject"), metadata)

    def withdrawn(self) -> Object:
        return self._data("reject", {"outcome": "withdrawn"})

    def _data(self, status: str, metadata: Object) -> Object:
        return {
            "permission_id": self.permission_id,
            "action": self.action,
            "status": status,
            "metadata": metadata,
        }


class Question(msgspec.Struct, frozen=True):
    question_id: str
    prompt: str
    options: list[str]

    def requested(self) -> Object:
        return self._data("requested", None, [])

    def resolved(self, answer: Envelope) -> Object:
        result = as_object(answer.result)
        outcome = result.get("outcome")
        verdict = outcome.get("outcome") if isinstance(outcome, dict) else outcome
        answers = _answers(result, outcome)
        if verdict in ("rejected", "cancelled") or answer.error is not None or not (answers or verdict):
            return self._data("rejected", None, [])
        chosen = ", ".join(choice for row in answers for choice in row)
        return self._data("answered", chosen or None, answers)

    def withdrawn(self) -> Object:
        return self._data("rejected", None, [])

    def _data(self, status: str, response: str | None, answers: list[list[str]]) -> Object:
        data: Object = {
            "question_id": self.question_id,
            "prompt": self.prompt,
            "options": self.options,
            "response": response,
            "status": status,
        }
        return {**data, "answers": answers} if answers else data


def read_permission(request: Envelope, known_action: str | None) -> Permission:
    """`known_action` is what an earlier tool_call was about: some agents send only its id."""
    call = as_object(request.params.get("toolCall"))
    action = call.get("title") or known_action or call.get("kind") or call.get("toolCallId") or "unknown"
    permission_id = meta_value(request.params, "permissionId")
    permission_id = request.id if permission_id is None else permission_id
    return Permission(as_text(permission_id), as_text(action), request.params)


def read_question(request: Envelope) -> Question:
    params = request.params
    question_id = params.get("question_id", params.get("questionId", request.id))
    options = [_label(option) for option in as_list(params.get("options"))]
    return Question(as_text(question_id), as_text(params.get("prompt")), options)


def _label(option: Any) -> str:
    if isinstance(option, dict):
        return as_text(option.get("label") or option.get("name") or option.get("value"))
    return as_text(option)


def _answers(result: Object, outcome: Any) -> list[list[str]]:
    """One row per question, each with the options chosen; a plain string or list counts as one row."""
    answers = meta_value(result, "answers") or result.get("answers") or as_object(outcome).get("answers")
    answers = answers or result.get("response")
    if isinstance(answers, str):
        return [[answers]]
    rows = as_list(answers)
    if rows and not any(isinstance(row, list) for row in rows):
        return [[as_text(choice) for choice in rows]]
    return [[as_text(choice) for choice in (row if isinstance(row, list) else [row])] for row in rows]
