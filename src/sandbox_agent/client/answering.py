"""Answers the agent's requests with the program's handlers."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from acp import RequestError
from pydantic import ValidationError

from sandbox_agent.client.asking import (
    Answer,
    Outcome,
    PermissionHandler,
    QuestionHandler,
    read_permission,
    read_question,
)
from sandbox_agent.core.methods import PERMISSION, QUESTION

if TYPE_CHECKING:
    from sandbox_agent.client.inbox import Inbox

_log = logging.getLogger(__name__)


class Answering:
    """Handlers of a session win over those of the connection.

    Without any: what is asked in a turn of ours is rejected, so that the turn does not hang; what is asked in
    somebody else's turn is theirs to answer."""

    def __init__(
        self, permission: PermissionHandler | None, question: QuestionHandler | None, inboxes: Mapping[str, Inbox]
    ) -> None:
        self._permission = permission
        self._question = question
        self._inboxes = inboxes

    async def answer(self, method: str, params: dict[str, Any]) -> Outcome:
        """Raises RequestError for what we do not do."""
        if method not in {PERMISSION, QUESTION}:
            raise RequestError.method_not_found(method)
        inbox = self._inboxes.get(str(params.get("sessionId")))
        try:
            if method == PERMISSION:
                answer = await self._decide_permission(params, inbox)
            else:
                answer = await self._decide_question(params, inbox)
        except ValidationError as error:
            raise RequestError.invalid_params({"details": str(error)}) from None
        if answer is not None:
            return answer
        await asyncio.get_running_loop().create_future()  # left to others: over when the server takes it back
        raise AssertionError

    async def _decide_permission(self, params: dict[str, Any], inbox: Inbox | None) -> Answer:
        request = read_permission(params)
        handler = (inbox.on_permission if inbox is not None else None) or self._permission
        if handler is not None:
            return await _settled(handler(request))
        if inbox is None or not inbox.has_turn:
            return None
        _log.warning("rejected, since there is no on_permission: %s session=%s", request.title, request.session_id)
        return request.reject()

    async def _decide_question(self, params: dict[str, Any], inbox: Inbox | None) -> Answer:
        request = read_question(params)
        handler = (inbox.on_question if inbox is not None else None) or self._question
        if handler is not None:
            return await _settled(handler(request))
        if inbox is None or not inbox.has_turn:
            return None
        _log.warning("rejected a question, since there is no on_question session=%s", request.session_id)
        return request.reject()


async def _settled(answer: Any) -> Answer:
    settled: Answer = await answer if inspect.isawaitable(answer) else answer
    return settled
