"""An event loop without real time and without threads: it jumps from one timer to the next."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar, cast

from sandbox_agent.store.sqlite.background import Background, Rest, Steps, Worker

T = TypeVar("T")
JITTER = (0.0, 0.0, 0.0002, 0.003, 0.06)
"""Seconds that work in another thread, or a pipe, takes before it goes on."""


_IDLE_REST = 1.0
"""Seconds after which the store's writer looks around unasked."""
_LONGEST_REST = 8.0
_OVER = object()


class Stalled(AssertionError):
    """Everybody waits, and nothing will ever happen."""


class VirtualLoop(asyncio.BaseEventLoop):
    """What is ready runs in the order in which it became ready, as in every loop; what takes time takes none."""

    def __init__(self, chance: Random, *, start: float) -> None:
        super().__init__()
        self.chance = chance
        self._now = start
        self._selector = self  # `_run_once` asks it to wait for files: there are none, so it waits for the clock
        self.trouble: list[str] = []
        """What nobody caught, in the words of the loop's handler."""
        self.set_exception_handler(self._note_trouble)

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stalled("nothing is ready, and nothing is to come")
        self._now += timeout
        return []

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """In this thread, a little later."""
        done: asyncio.Future[T] = self.create_future()
        self.call_later(self.chance.choice(JITTER), _finish, done, func, args)
        return done

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def _note_trouble(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.trouble.append(f"{context.get('message')}: {context.get('exception')!r}")


def _finish(done: asyncio.Future[T], func: Callable[..., T], args: tuple[Any, ...]) -> None:
    if done.cancelled():
        return
    try:
        done.set_result(func(*args))
    except Exception as error:  # noqa: BLE001 - as an executor does
        done.set_exception(error)


class SteppedBackground(Background):
    """The store's background on a virtual loop: one step at a time, others may come between any two."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._workers: list[SteppedWorker] = []

    def event(self) -> threading.Event:
        return _SteppedEvent(self)

    def worker(self, name: str, steps: Steps) -> Worker:
        made = SteppedWorker(self._loop, steps)
        self._workers.append(made)
        return cast("Worker", made)

    def wake(self, event: threading.Event) -> None:
        for worker in self._workers:
            worker.wake(event)

    def hurry(self, event: threading.Event, seconds: float) -> None:
        """Somebody blocks the loop until `event`: the workers go on meanwhile."""
        for worker in self._workers:
            worker.run_until(event, seconds)

    def kill(self) -> None:
        for worker in self._workers:
            worker.kill()


class SteppedWorker:
    def __init__(self, loop: VirtualLoop, steps: Steps) -> None:
        self._loop = loop
        self._steps = steps
        self._waits_for: threading.Event | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False
        self._idle = 1.0
        """How much longer than it wants to it rests: ever longer while nobody wakes it, as nothing comes of it."""

    def start(self) -> None:
        self._step_in(0.0)

    def finish(self, timeout: float) -> bool:
        self.run_until(None, timeout)
        return self._is_over

    def run_until(self, event: threading.Event | None, seconds: float) -> None:
        while not self._is_over and seconds > 0 and (event is None or not event.is_set()):
            rest = self._next()
            if isinstance(rest, Rest) and not rest.until.is_set():
                seconds -= max(rest.seconds, 0.001)
        if not self._is_over:
            self._step_in(0.0)

    def wake(self, event: threading.Event) -> None:
        if self._waits_for is event:
            self._idle = 1.0
            self._step_in(self._loop.chance.choice(JITTER))

    def kill(self) -> None:
        self._is_over = True
        self._cancel()

    def _step_in(self, seconds: float) -> None:
        self._cancel()
        self._timer = self._loop.call_later(seconds, self._step)

    def _step(self) -> None:
        if self._is_over:
            return
        rest = self._next()
        if rest is _OVER:
            return
        if rest is None or rest.until.is_set():
            self._step_in(self._loop.chance.choice(JITTER))
        else:
            self._idle = min(self._idle * 2, _LONGEST_REST) if rest.seconds == _IDLE_REST else 1.0
            self._step_in(rest.seconds * self._idle)
            self._waits_for = rest.until

    def _next(self) -> Any:
        self._cancel()
        rest = next(self._steps, _OVER)
        self._is_over = rest is _OVER
        return rest

    def _cancel(self) -> None:
        self._waits_for = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _SteppedEvent(threading.Event):
    def __init__(self, background: SteppedBackground) -> None:
        super().__init__()
        self._background = background

    def set(self) -> None:
        super().set()
        self._background.wake(self)

    def wait(self, timeout: float | None = None) -> bool:
        self._background.hurry(self, timeout or 0.0)
        return self.is_set()
