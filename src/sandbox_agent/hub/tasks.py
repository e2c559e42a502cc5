"""Work that goes on when whoever asked for it has gone. Every task of the hub is owned here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from sandbox_agent.errors import SandboxAgentError, ShuttingDown
from sandbox_agent.hub.clients.request import Request

_log = logging.getLogger(__name__)


class Tasks:
    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def answer(self, request: Request, work: Coroutine[Any, Any, None]) -> None:
        """Work on a request in a task of its own; that it failed is its answer."""
        self.start(_failing_to(request, work))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    def cancel(self) -> None:
        for task in self._running:
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, SandboxAgentError):
            _log.error("background work failed", exc_info=error)


async def _failing_to(request: Request, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except SandboxAgentError as error:
        request.fail(error)
    except asyncio.CancelledError:
        request.fail(ShuttingDown("the server is shutting down"))
        raise
    except Exception:  # noqa: BLE001 - the boundary of a task; logged with its traceback
        _log.exception("request failed method=%s connection=%s", request.method, request.connection.id)
        request.fail(SandboxAgentError(f"{request.method} failed: internal error; see the server log"))
