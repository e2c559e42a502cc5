"""What an agent asks of people: permissions and questions, and what may be answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from acp import schema

PermissionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
Outcome = dict[str, Any]
"""An answer, ready to be sent: make it with the methods of the request."""

CANCELLED: Outcome = {"outcome": {"outcome": "cancelled"}}


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """The agent wants to do something. Return `allow()`, `reject()`, `select(...)`; None leaves it to others."""

    session_id: str
    tool_call: schema.ToolCallUpdate
    options: list[schema.PermissionOption]
    raw: dict[str, Any]

    @property
    def title(self) -> str:
        return self.tool_call.title or self.tool_call.tool_call_id

    def allow(self, *, always: bool = False) -> Outcome:
        return self._of_kind("allow_always", "allow_once") if always else self._of_kind("allow_once", "allow_always")

    def reject(self, *, always: bool = False) -> Outcome:
        kinds: tuple[PermissionKind, PermissionKind] = ("reject_once", "reject_always")
        return self._of_kind(*reversed(kinds)) if always else self._of_kind(*kinds)

    def select(self, option_id: str) -> Outcome:
        return {"outcome": {"outcome": "selected", "optionId": option_id}}

    def _of_kind(self, *kinds: PermissionKind) -> Outcome:
        """The first option of the first kind that is offered; the turn is given up if none is."""
        for kind in kinds:
            for option in self.options:
                if option.kind == kind:
                    return self.select(option.option_id)
        return CANCELLED


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """The agent asks something. Return `answer(...)` with ids of options, or `reject()`; None leaves it to others."""

    session_id: str
    prompt: str
    options: list[tuple[str, str]]
    """Ids and labels."""
    is_multiple: bool
    raw: dict[str, Any]

    def answer(self, *option_ids: str) -> Outcome:
        return {"outcome": "answered", "answers": [list(option_ids)]}

    def reject(self) -> Outcome:
        return {"outcome": "rejected"}


Answer = Outcome | None
PermissionHandler = Callable[[PermissionRequest], Awaitable[Answer] | Answer]
QuestionHandler = Callable[[QuestionRequest], Awaitable[Answer] | Answer]


def read_permission(params: dict[str, Any]) -> PermissionRequest:
    request = schema.RequestPermissionRequest.model_validate(params)
    return PermissionRequest(request.session_id, request.tool_call, request.options, params)


def read_question(params: dict[str, Any]) -> QuestionRequest:
    given = params.get("options")
    options = [(str(o.get("id")), str(o.get("label", o.get("id")))) for o in given or [] if isinstance(o, dict)]
    prompt = str(params.get("prompt", ""))
    return QuestionRequest(str(params.get("sessionId")), prompt, options, bool(params.get("multiSelect")), params)
