"""One prompt and what comes of it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sandbox_agent.client.asking import OpenRequest
from sandbox_agent.client.connection import AgentConnection
from sandbox_agent.client.inbox import Inbox, TurnBox
from sandbox_agent.client.updates import Envelope, read_update, said_in
from sandbox_agent.core.frames import META
from sandbox_agent.core.methods import CANCEL_REQUEST
from sandbox_agent.errors import SessionEnded

if TYPE_CHECKING:
    from acp import schema

    from sandbox_agent.client.updates import Update

_CANCEL_AGAIN = 1.0
_CANCEL_FOR = 30.0


class Turn:
    """Iterate over it for the updates; it starts then. Leaving the iteration early cancels the turn.

    `await turn` runs it to its end instead. After either, `stop_reason` and `answer` are there.
    `await turn.start()` lets it run by itself."""

    def __init__(self, connection: AgentConnection, inbox: Inbox, prompt: list[dict[str, Any]]) -> None:
        self.turn_id = f"turn-{uuid.uuid4().hex}"
        self._answer: dict[str, Any] | None = None
        self._connection = connection
        self._inbox = inbox
        self._params = {
            "sessionId": inbox.session_id,
            "prompt": prompt,
            "_meta": {META: {"turnId": self.turn_id}},
        }
        self._is_started = False
        self._box = TurnBox(self.turn_id)
        self._asking: asyncio.Task[dict[str, Any]] | None = None

    @property
    def stop_reason(self) -> str | None:
        """Why it ended, as ACP says it; None while it runs."""
        return self._answer.get("stopReason") if self._answer is not None else None

    @property
    def answer(self) -> schema.PromptResponse | None:
        """What the agent answered to the prompt; None while it runs."""
        return self._typed_answer if self._answer is not None else None

    @cached_property
    def _typed_answer(self) -> schema.PromptResponse:
        from acp import schema  # noqa: PLC0415 - ACP's types take long to load

        return schema.PromptResponse.model_validate(self._answer)

    async def __aiter__(self) -> AsyncIterator[Update]:
        run = self._run()
        try:
            async for item in run:
                if not isinstance(item, OpenRequest):
                    yield read_update(item)
        finally:
            await run.aclose()

    async def events(self) -> AsyncIterator[Update | OpenRequest]:
        """The updates, and among them what the agent asks: call `answer` of each `OpenRequest`, now or later.

        Handlers of the session are not asked meanwhile."""
        with self._inbox.asking_in(self._box):
            run = self._run()
            try:
                async for item in run:
                    yield item if isinstance(item, OpenRequest) else read_update(item)
            finally:
                await run.aclose()

    async def envelopes(self) -> AsyncIterator[Envelope]:
        """The same updates as the raw JSON-RPC messages."""
        run = self._run()
        try:
            async for item in run:
                if not isinstance(item, OpenRequest):
                    yield item
        finally:
            await run.aclose()

    def __await__(self) -> Generator[Any, None, schema.PromptResponse]:
        return self._finish().__await__()

    async def text(self) -> str:
        """Run it to its end; gives what the agent said."""
        return "".join([said_in(envelope) async for envelope in self.envelopes()])

    async def start(self) -> str:
        """Return its turn id when the server has taken it: it runs or waits, whatever becomes of this program.

        Its updates are in `Session.updates` and in the history; what it asks is for whoever is attached."""
        box = self._box
        box.is_left = True
        asking = self._send()
        moved = asyncio.create_task(box.moved.wait())
        try:
            await asyncio.wait({asking, moved}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            moved.cancel()
            box.mailbox.abandon()
        if asking.done():
            self._answer = await asking
        return self.turn_id

    async def _finish(self) -> schema.PromptResponse:
        async for _ in self._run():
            pass
        return self._typed_answer

    def _send(self) -> asyncio.Task[dict[str, Any]]:
        if self._is_started:
            raise RuntimeError("a turn can be run once; call prompt() again for another")
        self._is_started = True
        if self._inbox.ended is not None:
            raise SessionEnded(f"session {self._inbox.session_id!r} has ended: {self._inbox.ended.get('message')}")
        box = self._box
        asking = self._asking = asyncio.create_task(self._ask(box, self._inbox.begin(box)))
        asking.add_done_callback(lambda _: self._inbox.finish(box))
        asking.add_done_callback(_retrieve)
        return asking

    async def _run(self) -> AsyncGenerator[Envelope | OpenRequest, None]:
        box, asking = self._box, self._send()
        try:
            while (item := await box.mailbox.take()) is not None:
                yield item
            self._answer = await asking
        finally:
            box.mailbox.abandon()
            if not box.is_sent:
                asking.cancel()
            elif not asking.done():
                self._connection.spawn(_cancel(self._connection, self._inbox, box, asking))

    async def _ask(self, box: TurnBox, before: TurnBox | None) -> dict[str, Any]:
        goes_by_itself = self._inbox.tells_turns and before is not None and (box.is_left or before.is_left)
        if before is not None and not goes_by_itself:
            await before.answered.wait()
        box.is_sent = True
        return await self._connection.call("session/prompt", self._params)


async def _cancel(
    connection: AgentConnection, inbox: Inbox, box: TurnBox, asking: asyncio.Task[dict[str, Any]]
) -> None:
    """End the turn if it runs, take the prompt back if it waits; both once, when the server says which it is.

    To a server that does not say, a cancel may be sent before the turn has begun: then it is sent again."""
    closing = asyncio.create_task(connection.closing.wait())
    try:
        async with asyncio.timeout(_CANCEL_FOR):
            while not asking.done() and not closing.done():
                moved = asyncio.create_task(box.moved.wait())
                box.moved.clear()
                if box.waits_as is not None:
                    await connection.notify(CANCEL_REQUEST, {"requestId": box.waits_as})
                elif box.is_told or not inbox.tells_turns:  # else what runs may be somebody else's
                    await connection.notify("session/cancel", {"sessionId": inbox.session_id})
                again = None if inbox.tells_turns else _CANCEL_AGAIN
                await asyncio.wait({asking, closing, moved}, timeout=again, return_when=asyncio.FIRST_COMPLETED)
                moved.cancel()
    except TimeoutError:
        pass
    finally:
        closing.cancel()
        asking.cancel()


def _retrieve(asking: asyncio.Task[dict[str, Any]]) -> None:
    """Whoever iterates raises it; if nobody does any more, that is no reason to complain."""
    if not asking.cancelled():
        asking.exception()


def prompt_blocks(content: str | list[Any]) -> list[dict[str, Any]]:
    """A prompt as ACP content blocks: text, or blocks as `acp.schema` objects or plain dicts."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [
        block if isinstance(block, dict) else block.model_dump(mode="json", by_alias=True, exclude_none=True)
        for block in content
    ]
