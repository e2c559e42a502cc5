"""A program that lives in this process: its pipes are lists, its exit is a call."""

from __future__ import annotations

import asyncio
import io
import signal
from collections import deque
from collections.abc import Callable
from typing import IO, Any, Protocol, cast

from sandbox_agent.process.child import Child, ExitStatus, Output
from simulation.loop import JITTER, VirtualLoop


class Program(Protocol):
    """What runs in a child: `child.say` is its stdout, `child.exit` its end."""

    def started(self, child: SimulatedChild) -> None: ...

    is_cut_off: bool
    """Whoever started it is gone: what is in its pipe is read, and nothing more comes."""

    def heard(self, lines: list[bytes]) -> None: ...
    def closed(self) -> None: ...
    def signalled(self, number: int) -> None: ...


class SimulatedChild(Child):
    def __init__(self, loop: VirtualLoop, pid: int, program: Program) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = io.BytesIO(), io.BytesIO(), io.BytesIO()
        self.status = None
        self.loop = loop
        self._program = program
        self._outputs: list[Output] = []
        self._exit_seen = asyncio.Event()
        self._is_exiting = False
        self._input: _Stdin | None = None
        self._said: deque[bytes] = deque()
        """On its way through the pipe."""

    async def connect_stdin(self, protocol: asyncio.BaseProtocol) -> asyncio.WriteTransport:
        self._input = _Stdin(self.loop, protocol, self._program)
        self._program.started(self)
        return self._input

    async def pump(
        self, pipe: IO[bytes] | None, on_chunk: Callable[[bytes], None], on_end: Callable[[], None] = lambda: None
    ) -> Output:
        output = _Stdout(cast("IO[bytes]", pipe), on_chunk, on_end)
        self._outputs.append(output)
        return output

    def say(self, *lines: bytes) -> None:
        """In one piece; it comes a little later."""
        if not self._is_exiting:
            self._said.append(b"\n".join([*lines, b""]))
            self.loop.call_later(self.loop.chance.choice(JITTER[:4]), self._arrive)

    def read(self, *, is_reading: bool) -> None:
        if self._input is not None:
            self._input.read(is_reading=is_reading)

    def exit(self, code: int) -> None:
        """After what it has said."""
        if not self._is_exiting:
            self._is_exiting = True
            self.loop.call_later(JITTER[-1], self._exited, code)

    def signal_group(self, number: signal.Signals) -> None:
        if self.status is None:
            self._program.signalled(number)

    async def end(self, *, within: float = 5.0) -> None:
        for output in self._outputs:
            output.close()

    def _arrive(self) -> None:
        stdout = next((output for output in self._outputs if output.pipe is self.stdout), None)
        if stdout is None:  # nobody reads yet
            self.loop.call_later(JITTER[-1], self._arrive)
        elif self._said:
            cast("_Stdout", stdout).arrive(self._said.popleft())

    def _exited(self, code: int) -> None:
        self.status = ExitStatus(code)
        if self._input is not None:
            self._input.broken()
        while self._said and self._outputs:
            self._arrive()
        for output in self._outputs:
            cast("_Stdout", output).hang_up()
        self._exit_seen.set()


class _Stdout(Output):
    def __init__(self, pipe: IO[bytes], on_chunk: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        super().__init__(pipe, on_chunk, on_end)
        self._chunks: deque[bytes] = deque()
        self._is_hung_up = False

    def arrive(self, chunk: bytes) -> None:
        if self.ended.is_set():
            return
        self._chunks.append(chunk)
        self._hand_on()

    def hang_up(self) -> None:
        self._is_hung_up = True
        self._hand_on()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._hand_on()

    def read_rest(self) -> None:
        if not self.ended.is_set():
            while self._chunks:
                self._on_chunk(self._chunks.popleft())
            self._end()

    def close(self) -> None:
        self._chunks.clear()

    def _hand_on(self) -> None:
        while self._chunks and not self._is_paused:
            self._on_chunk(self._chunks.popleft())
        if self._is_hung_up and not self._chunks:
            self._end()


class _Stdin(asyncio.WriteTransport):
    """What the program does not read stays here, and presses back."""

    def __init__(self, loop: VirtualLoop, protocol: Any, program: Program) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._program = program
        self._held: list[bytes] = []
        self._sent: deque[bytes] = deque()
        """On its way through the pipe."""
        self._size = 0
        self._high = 1 << 16
        self._is_reading = True
        self._is_pausing = False
        self._is_closing = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = min(high or 0, 4096)  # a small pipe: what a large one does it does sooner

    def get_write_buffer_size(self) -> int:
        return self._size

    def is_closing(self) -> bool:
        return self._is_closing

    def write(self, data: Any) -> None:
        if self._is_closing or self._program.is_cut_off:
            return
        if self._is_reading and not self._held:
            self._pass(bytes(data), self._loop.chance.choice(JITTER[:4]))
            return
        self._held.append(bytes(data))
        self._size += len(data)
        if self._size > self._high and not self._is_pausing:
            self._is_pausing = True
            self._protocol.pause_writing()

    def read(self, *, is_reading: bool) -> None:
        self._is_reading = is_reading
        if not is_reading:
            return
        held, self._held, self._size = self._held, [], 0
        for data in held:
            self._pass(data, 0.0)
        if self._is_pausing:
            self._is_pausing = False
            self._protocol.resume_writing()
        if self._is_closing:
            self._loop.call_later(JITTER[-1], self._program.closed)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            if self._is_reading:
                self._loop.call_later(JITTER[-1], self._program.closed)

    def abort(self) -> None:
        self.broken()

    def broken(self) -> None:
        self._is_closing = True
        self._held.clear()
        self._size = 0
        self._protocol.connection_lost(None)

    def _pass(self, data: bytes, seconds: float) -> None:
        self._sent.append(data)
        self._loop.call_later(seconds, self._heard)

    def _heard(self) -> None:
        self._program.heard(self._sent.popleft().split(b"\n")[:-1])
