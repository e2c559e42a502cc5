"""Work that goes on when whoever asked for it has gone. Every task of the hub is owned here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from sandbox_agent.errors import SandboxAgentError, SessionElsewhere, ShuttingDown
from sandbox_agent.hub.clients.request import Request

_log = logging.getLogger(__name__)


class Tasks:
    def __init__(self) -> None:
        self._running: dict[asyncio.Task[None], None] = {}
        """In the order of their start, which is the order in which they are cancelled."""
        self._unbegun: dict[asyncio.Task[None], tuple[Request, Coroutine[Any, Any, None]]] = {}
        """A task that is cancelled before its first step takes none: nobody but us could answer its request."""
        self.elsewhere: Callable[[Request, SessionElsewhere], bool] = lambda request, error: False
        """Whether a request whose session another node has is answered there."""

    def answer(self, request: Request, work: Coroutine[Any, Any, None]) -> None:
        """Work on a request in a task of its own; that it failed is its answer."""
        task = self.start(self._failing_to(request, work))
        self._unbegun[task] = request, work

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._running[task] = None
        task.add_done_callback(self._done)
        return task

    def cancel(self) -> None:
        for request, work in self._unbegun.values():
            work.close()
            request.fail(_shutting_down())
        self._unbegun.clear()
        for task in self._running:
            task.cancel()

    async def ended(self, *, within: float) -> None:
        """Return when what was cancelled has cleaned up after itself and answered its requests, or after so long."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=within)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, SandboxAgentError):
            _log.error("background work failed", exc_info=error)

    async def _failing_to(self, request: Request, work: Coroutine[Any, Any, None]) -> None:
        self._unbegun.pop(asyncio.current_task(), None)  # type: ignore[arg-type]  # it runs in one
        try:
            await work
        except SandboxAgentError as error:
            if not isinstance(error, SessionElsewhere) or not self.elsewhere(request, error):
                request.fail(error)
        except asyncio.CancelledError:
            request.fail(_shutting_down())
            raise
        except Exception:  # noqa: BLE001 - the boundary of a task; logged with its traceback
            _log.exception("request failed method=%s connection=%s", request.method, request.connection.id)
            request.fail(SandboxAgentError(f"{request.method} failed: internal error; see the server log"))


def _shutting_down() -> ShuttingDown:
    return ShuttingDown("the server is shutting down")
