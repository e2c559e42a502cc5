"""What an agent asks of people: permissions and questions, what may be answered, and who answers."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from acp import RequestError, schema
from pydantic import ValidationError

from sandbox_agent.core.methods import ELICITATION, PERMISSION, QUESTION

if TYPE_CHECKING:
    from sandbox_agent.client.inbox import Inbox

PermissionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
Outcome = dict[str, Any]
"""An answer, ready to be sent: make it with the methods of the request."""

_CANCELLED: Outcome = {"outcome": {"outcome": "cancelled"}}
_DECLINED: Outcome = {"action": "decline"}
_log = logging.getLogger(__name__)


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
        return _CANCELLED


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
R = TypeVar("R", PermissionRequest, QuestionRequest)
PermissionHandler = Callable[[PermissionRequest], Awaitable[Answer] | Answer]
QuestionHandler = Callable[[QuestionRequest], Awaitable[Answer] | Answer]


class Answering:
    """Handlers of a session win over those of the connection.

    Without any: what is asked in a turn of ours is declined, so that the turn does not hang; what is asked in
    somebody else's turn is theirs to answer."""

    def __init__(
        self, permission: PermissionHandler | None, question: QuestionHandler | None, inboxes: Mapping[str, Inbox]
    ) -> None:
        self._permission = permission
        self._question = question
        self._inboxes = inboxes

    async def answer(self, method: str, params: dict[str, Any]) -> Outcome:
        """Raises RequestError for what we do not do."""
        inbox = self._inboxes.get(str(params.get("sessionId")))
        try:
            while (answer := await self._decide(method, params, inbox)) is None:
                await _left_to_others(inbox)
        except ValidationError as error:
            raise RequestError.invalid_params({"details": str(error)}) from None
        return answer

    async def _decide(self, method: str, params: dict[str, Any], inbox: Inbox | None) -> Answer:
        is_ours = inbox is not None and inbox.is_our_turn
        if method == PERMISSION:
            own = inbox.on_permission if inbox is not None else None
            permission = _read_permission(params)
            return await _settled(own or self._permission, permission, "on_permission", is_ours=is_ours)
        if method == QUESTION:
            own_question = inbox.on_question if inbox is not None else None
            question = _read_question(params)
            return await _settled(own_question or self._question, question, "on_question", is_ours=is_ours)
        if method == ELICITATION:
            return _DECLINED if is_ours or inbox is None else None
        raise RequestError.method_not_found(method)


async def _left_to_others(inbox: Inbox | None) -> None:
    """Return when another handler may answer. It is cancelled when the server takes the question back."""
    if inbox is None:
        await asyncio.get_running_loop().create_future()
    else:
        inbox.handler_set.clear()
        await inbox.handler_set.wait()


async def _settled(
    handler: Callable[[R], Awaitable[Answer] | Answer] | None, request: R, name: str, *, is_ours: bool
) -> Answer:
    if handler is not None:
        answer = handler(request)
        return await answer if inspect.isawaitable(answer) else answer
    if not is_ours:
        return None
    _log.warning("rejected, since there is no %s handler session=%s", name, request.session_id)
    return request.reject()


def _read_permission(params: dict[str, Any]) -> PermissionRequest:
    request = schema.RequestPermissionRequest.model_validate(params)
    return PermissionRequest(request.session_id, request.tool_call, request.options, params)


def _read_question(params: dict[str, Any]) -> QuestionRequest:
    given = params.get("options")
    options = [(str(o.get("id")), str(o.get("label", o.get("id")))) for o in given or [] if isinstance(o, dict)]
    prompt = str(params.get("prompt", ""))
    return QuestionRequest(str(params.get("sessionId")), prompt, options, bool(params.get("multiSelect")), params)
