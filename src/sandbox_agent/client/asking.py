"""What an agent asks of people: permissions and questions, what may be answered, and who answers."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sandbox_agent.core.frames import META
from sandbox_agent.core.methods import ELICITATION, PERMISSION, QUESTION
from sandbox_agent.errors import AgentUnsupported, InvalidParams

if TYPE_CHECKING:
    from acp import schema

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
    raw: dict[str, Any]

    @property
    def tool_call(self) -> schema.ToolCallUpdate:
        """What it wants to do. Raises InvalidParams if that is not as ACP's schema has it; `raw` has it then."""
        return self._typed().tool_call

    @property
    def options(self) -> list[schema.PermissionOption]:
        return self._typed().options

    @property
    def title(self) -> str:
        return str(self.raw["toolCall"].get("title") or self.raw["toolCall"]["toolCallId"])

    def allow(self, *, always: bool = False) -> Outcome:
        """Allow it this once; with `always` for good, where that is offered.

        Where the agent offers nothing but for good, allowing once gives up the turn: that would grant more."""
        return self._of_kind("allow_always", "allow_once") if always else self._of_kind("allow_once")

    def reject(self, *, always: bool = False) -> Outcome:
        kinds: tuple[PermissionKind, PermissionKind] = ("reject_once", "reject_always")
        return self._of_kind(*reversed(kinds)) if always else self._of_kind(*kinds)

    def select(self, option_id: str) -> Outcome:
        return {"outcome": {"outcome": "selected", "optionId": option_id}}

    def _of_kind(self, *kinds: PermissionKind) -> Outcome:
        """The first option of the first kind that is offered; the turn is given up if none is."""
        for kind in kinds:
            for option in self.raw["options"]:
                if option.get("kind") == kind:
                    return self.select(option["optionId"])
        return _CANCELLED

    def _typed(self) -> schema.RequestPermissionRequest:
        from acp import schema  # noqa: PLC0415 - it takes a second, and not everybody needs it
        from pydantic import ValidationError  # noqa: PLC0415

        try:
            return schema.RequestPermissionRequest.model_validate(self.raw)
        except ValidationError as error:
            raise InvalidParams(str(error)) from None


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """The agent asks something. Return `answer(...)` with ids of options, or `reject()`; None leaves it to others.

    Without options any text is an answer."""

    session_id: str
    prompt: str
    options: list[tuple[str, str]]
    """Ids and labels; of options that are plain strings, both are the string."""
    is_multiple: bool
    raw: dict[str, Any]
    question_id: str | None = None
    status: str = "requested"

    def answer(self, *option_ids: str) -> Outcome:
        answers = [list(option_ids)]
        told = {"answers": answers, "response": ", ".join(option_ids), "status": "answered"}
        return {"outcome": "answered", "answers": answers, "_meta": {META: told}}

    def reject(self) -> Outcome:
        return {"outcome": "rejected", "_meta": {META: {"status": "rejected"}}}


Answer = Outcome | None
R = TypeVar("R", PermissionRequest, QuestionRequest)
PermissionHandler = Callable[[PermissionRequest], Awaitable[Answer] | Answer]
QuestionHandler = Callable[[QuestionRequest], Awaitable[Answer] | Answer]


class OpenRequest:
    """What the agent asks, among the updates of its turn (`Turn.events`). The turn waits until somebody answers."""

    def __init__(self, request: PermissionRequest | QuestionRequest) -> None:
        self.request = request
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Answer] = self._loop.create_future()

    @property
    def is_open(self) -> bool:
        """Whether nobody has answered yet, and the agent still wants to know."""
        return not self._answer.done()

    def answer(self, outcome: Answer) -> None:
        """Give what one of the request's methods makes; None leaves it to others. From any thread; late is no error."""
        self._loop.call_soon_threadsafe(self._settle, outcome)

    async def answered(self) -> Answer:
        return await self._answer

    def _settle(self, outcome: Answer) -> None:
        if not self._answer.done():
            self._answer.set_result(outcome)

    def __repr__(self) -> str:
        return f"<OpenRequest {self.request!r}>"


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
        """Raises AgentUnsupported for what we do not do, InvalidParams."""
        inbox = self._inboxes.get(str(params.get("sessionId")))
        while (answer := await self._decide(method, params, inbox)) is None:
            await _left_to_others(inbox)
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
        raise AgentUnsupported(f"this client does not answer {method}")


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
    match params:
        case {"sessionId": str(session), "toolCall": {"toolCallId": str()}, "options": list(options)}:
            if all(isinstance(option, dict) and isinstance(option.get("optionId"), str) for option in options):
                return PermissionRequest(session, params)
    raise InvalidParams("a request for permission names a session, a tool call and options")


def _read_question(params: dict[str, Any]) -> QuestionRequest:
    """Agents spell it in two ways: as we do, and as the earlier API did (`question_id`, options as strings)."""
    given = params.get("options")
    question_id = params.get("question_id", params.get("questionId"))
    return QuestionRequest(
        session_id=str(params.get("sessionId")),
        prompt=str(params.get("prompt") or ""),
        options=[_read_option(option) for option in given] if isinstance(given, list) else [],
        is_multiple=params.get("multiSelect") is True,
        raw=params,
        question_id=None if question_id is None else str(question_id),
        status=str(params.get("status") or "requested"),
    )


def _read_option(option: Any) -> tuple[str, str]:
    if not isinstance(option, dict):
        return str(option), str(option)
    names = [option[name] for name in ("id", "value", "label", "name") if option.get(name) is not None]
    label = option.get("label") or option.get("name") or next(iter(names), "")
    return str(next(iter(names), "")), str(label)
