"""The input of a program, a pipe or a terminal: written in order, at the pace at which the program reads."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque

_PIECE = 1 << 16


class ProgramInput:
    """Writes to `fd`, which it closes. Holds nothing by itself: each writer waits with what it has brought."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._queue: deque[asyncio.Future[None]] = deque()
        self._is_busy = False
        self._room: asyncio.Future[None] | None = None
        self.is_closed = False

    async def write(self, content: bytes, *, within: float | None = None) -> int:
        """How many bytes were taken: all, or fewer when it was closed meanwhile or the time was up."""
        loop = asyncio.get_running_loop()
        until = None if within is None else loop.time() + within
        left = memoryview(content)
        if not await self._turn(until):
            return 0
        try:
            while left and not self.is_closed:
                try:
                    left = left[os.write(self._fd, left[:_PIECE]) :]
                except BlockingIOError:
                    if not await self._writable(until):
                        break
                except OSError:
                    self.close()
                else:
                    await asyncio.sleep(0)  # others have their turn of the loop between two pieces
        finally:
            self._next()
        return len(content) - len(left)

    def close(self) -> None:
        """The program reads an end of file. Writers that wait give up."""
        if not self.is_closed:
            self.is_closed = True
            if self._room is not None:
                asyncio.get_running_loop().remove_writer(self._fd)
                self._wake()
            os.close(self._fd)

    async def _turn(self, until: float | None) -> bool:
        """Whether it is ours now: whoever came first writes first."""
        if not self._is_busy:
            self._is_busy = True
            return True
        mine = asyncio.get_running_loop().create_future()
        self._queue.append(mine)
        try:
            async with asyncio.timeout_at(until):
                await mine
        except BaseException as error:
            if mine.done() and not mine.cancelled():
                self._next()
            with contextlib.suppress(ValueError):
                self._queue.remove(mine)
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    def _next(self) -> None:
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
        self._is_busy = False

    async def _writable(self, until: float | None) -> bool:
        """Whether there was room in time, or it was closed."""
        loop = asyncio.get_running_loop()
        self._room = loop.create_future()
        loop.add_writer(self._fd, self._wake)
        try:
            async with asyncio.timeout_at(until):
                await self._room
        except TimeoutError:
            return False
        finally:
            self._room = None
            if not self.is_closed:
                loop.remove_writer(self._fd)
        return True

    def _wake(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
