"""One running prompt: what words act through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.mock_agent.client import Client
from sandbox_agent.mock_agent.quirks import Quirks
from sandbox_agent.mock_agent.session import Session, TurnRecord
from sandbox_agent.mock_agent.version2 import spoken_permission, state
from sandbox_agent.mock_agent.wire import Refusal, encode

_WITHDRAW_AFTER = 0.2


class Misuse(Exception):
    """A word was given wrong arguments: the turn says so and goes on."""


class TurnCancelled(Exception):
    """The client ended the turn by answering a request with `cancelled`, or while it was held up."""


class Turn:
    def __init__(self, session: Session, record: TurnRecord, request_id: msgspec.Raw, client: Client, quirks: Quirks):
        self.session = session
        self.record = record
        self.request_id = request_id
        self.client = client
        self.quirks = quirks
        self.blocks: list[dict[str, Any]] = []
        self.after_answer: list[Callable[[], None]] = []
        self.number = session.turn_count
        self._calls = 0
        self._is_asking = False
        self._is_cancelled = False

    def update(self, update: dict[str, Any]) -> None:
        """Send one update, and keep it for a later replay."""
        raw = encode(update)
        self.record.add([raw])
        self.client.update(self.session.session_id, msgspec.Raw(raw))

    def tell(self, update: dict[str, Any]) -> None:
        """Send one update that a replay leaves out."""
        self.client.update(self.session.session_id, update)

    def say(self, text: str) -> None:
        self.say_block({"type": "text", "text": text})

    def say_block(self, block: dict[str, Any]) -> None:
        self.update(self.message(block))

    def message(self, block: dict[str, Any]) -> dict[str, Any]:
        return {
            "sessionUpdate": "agent_message_chunk",
            "content": block,
            "messageId": f"agent-{self.number}",
        }

    def think(self, text: str) -> None:
        block = {"type": "text", "text": text}
        self.update({"sessionUpdate": "agent_thought_chunk", "content": block, "messageId": f"thought-{self.number}"})

    def new_call_id(self) -> str:
        self._calls += 1
        return f"call-{self.number}-{self._calls}"

    def resolve(self, path: str) -> str:
        return str(Path(self.session.cwd, path))

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The client's result. Raises Refusal."""
        _, answer = self.client.ask(method, {"sessionId": self.session.session_id, **params})
        with self._blocked():
            return await answer

    async def ask_permission(self, params: dict[str, Any]) -> Any:
        """The client's answer, or None if the permission was withdrawn. Raises Refusal, TurnCancelled."""
        if self.quirks.never_ask:
            return {"outcome": {"outcome": "selected", "optionId": "yes-once"}}
        told = spoken_permission(params) if self.client.version == 2 else params
        request_id, answer = self.client.ask(
            "session/request_permission", {"sessionId": self.session.session_id, **told}
        )
        self._is_asking = True
        try:
            with self._blocked():
                result = await asyncio.wait_for(answer, _WITHDRAW_AFTER if self.quirks.withdraw else None)
        except TimeoutError:
            self.client.withdraw(request_id)
            result = None
        except Refusal:
            if self._is_cancelled:
                raise TurnCancelled from None
            raise
        finally:
            self._is_asking = False
        if self._is_cancelled:
            raise TurnCancelled
        return result

    @contextmanager
    def _blocked(self) -> Iterator[None]:
        """Version 2 is told that the turn waits for somebody, and that it goes on; not if it ends there."""
        if self.client.version == 1:
            yield
            return
        self.tell(state("requires_action"))
        try:
            yield
        except (Refusal, TimeoutError):
            self.tell(state("running"))
            raise
        self.tell(state("running"))

    def cancel(self, task: asyncio.Task[None]) -> None:
        if self.quirks.ignore_cancel:
            return
        self._is_cancelled = True
        if not (self._is_asking and self.quirks.wait_permission_on_cancel):
            task.cancel()
