"""Turns, ends and errors: how our words for them read in the old schema."""

from __future__ import annotations

from sandbox_agent.core.json_values import Object, as_object, as_text, meta_value


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


_END_REASONS = {
    "closed": "completed",
    "deleted": "terminated",
    "cancelled": "terminated",
    "shutdown": "terminated",
}


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
