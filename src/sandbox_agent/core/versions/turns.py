"""How a turn ends: version 1 answers the prompt, version 2 acknowledges it and tells of the end as `state_update`."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.versions.pairs import keep
from sandbox_agent.core.versions.version import Object, Version

STOP_REASONS = frozenset("end_turn max_tokens max_turn_requests refusal cancelled".split())
"""All that version 1 knows."""
_FAILED = {"code": -32603, "message": "the agent's turn ended with an error"}


def idle_answer(update: Any) -> Object | None:
    """What a `state_update` to idle answers a version 1 prompt with: `{"result": …}` or `{"error": …}`, as in JSON-RPC.

    None for everything else. A missing stopReason means that the turn ended as usual; one that version 1 does not
    know is kept beside `end_turn`."""
    update = as_object(update)
    if update.get("sessionUpdate") != "state_update" or update.get("state") != "idle":
        return None
    reason = update.get("stopReason")
    if reason == "error":
        error = as_object(update.get("error"))
        return {"error": error if _is_error(error) else dict(_FAILED)}
    result: Object = {"stopReason": reason if isinstance(reason, str) and reason in STOP_REASONS else "end_turn"}
    if isinstance(update.get("usage"), dict):
        result["usage"] = update["usage"]
    said = {"stopReason": reason} if isinstance(reason, str) else dict(result)
    return {"result": keep(result, {**result, **said}, result, Version.V2)}


def idle_update(*, result: Any = None, error: Any = None) -> Object:
    """The `state_update` with which version 2 tells that a prompt was answered like this in version 1."""
    update: Object = {"sessionUpdate": "state_update", "state": "idle"}
    if error is not None:
        return {**update, "stopReason": "error", "error": error if _is_error(error) else dict(_FAILED)}
    result = as_object(result)
    reason = result.get("stopReason")
    update["stopReason"] = reason if isinstance(reason, str) else "end_turn"
    extras = {name: result[name] for name in ("usage", "_meta") if isinstance(result.get(name), dict)}
    return {**update, **extras}


class HeldPrompt:
    """One prompt that was sent to a version 2 agent, until its end is told.

    Feed it the acknowledgement and every update of the session that follows the prompt; either gives the answer
    (`{"result": …}` or `{"error": …}`, spelled for version 1) once there is one. An idle that ends
    earlier work ends nothing here; nor does a mere snapshot, without a reason and before any sign of work, nor one
    that is repeated because background work has changed: an agent that lists such work says when it runs."""

    def __init__(self, *, is_working: bool = False) -> None:
        """`is_working`: the agent was at work when the prompt was sent, and need not say again that it runs."""
        self.message_id: str | None = None
        self._is_acknowledged = False
        self._is_inserted = False
        self._is_working = self._has_earlier_work = is_working
        self._answer: Object | None = None

    def acknowledged(self, result: Any) -> Object | None:
        """The agent's own answer to `session/prompt`. Gives an answer if the end was told before it."""
        self._is_acknowledged = True
        result = as_object(result)
        message_id = result.get("messageId")
        if isinstance(message_id, str):
            self.message_id = message_id
        elif isinstance(result.get("stopReason"), str):
            return {"result": result}  # it ends its turns as version 1 does
        return self._answer

    def update(self, update: Any) -> Object | None:
        """`params.update` of a `session/update`."""
        if not isinstance(update, dict):
            return None
        kind = update.get("sessionUpdate")
        if kind in ("user_message", "user_message_chunk"):
            self._is_inserted = True
        elif kind == "state_update":
            self._at_state(update)
        return self._answer if self._is_acknowledged else None

    def _at_state(self, update: Object) -> None:
        answer = idle_answer(update)
        if answer is None:
            self._is_working, self._answer = True, None
            return
        is_taken_up = self._is_acknowledged or self._is_inserted
        is_end = self._is_working and (is_taken_up or not self._has_earlier_work)
        if not isinstance(update.get("background"), list):
            has_reason = isinstance(update.get("stopReason"), str)
            is_end = is_end or self._is_inserted or (self._is_acknowledged and has_reason)
        self._is_working = self._has_earlier_work = False
        if is_end:
            self._answer = answer


def _is_error(error: Any) -> bool:
    return isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
