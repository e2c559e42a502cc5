"""A process on the server as if it ran in this terminal: its streams or its screen, keys, sizes, signals, exit code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future

import click

from sandbox_agent.client.processes import Process
from sandbox_agent.errors import Conflict, NotFound

DETACH_KEYS = b"\x10\x11"
"""Ctrl-P Ctrl-Q, as with docker."""
_PIECE = 32 << 10
_LOST = 1


def size_here() -> tuple[int, int]:
    size = shutil.get_terminal_size()
    return size.columns, size.lines


def exit_code_of(exit_code: int | None, signal_name: str | None) -> int:
    """As a shell says it."""
    if exit_code is not None:
        return exit_code
    with contextlib.suppress(KeyError):
        return 128 + signal.Signals[signal_name or ""].value
    return _LOST


async def stream(process: Process, *, takes_input: bool = True) -> int:
    """Its two streams to ours, our input to it; gives its exit code. Ctrl-C goes to it, a second one kills it."""
    with _interrupting(process):
        if takes_input:
            _read_stdin(lambda piece: _give(process, piece))
        async for output in process:
            if output.missed:
                click.echo(f"[{output.missed} pieces of output are not kept any more]", err=True)
            target = sys.stderr if output.stream == "stderr" else sys.stdout
            await asyncio.to_thread(_write, target.fileno(), output.data)
    return exit_code_of(process.info.exit_code, process.info.signal)


async def attach(process: Process) -> int:
    """Its screen on ours, until it exits or one detaches; gives its exit code, or 0."""
    loop = asyncio.get_running_loop()
    detached = asyncio.Event()
    async with process.terminal() as terminal:
        keys = _Keys(terminal.send, detached)
        with _raw(), _watching_size(loop, lambda: terminal.resize(*size_here())):
            await terminal.resize(*size_here())
            loop.add_reader(sys.stdin.fileno(), keys.typed)
            showing = asyncio.ensure_future(_show(terminal))
            leaving = asyncio.ensure_future(detached.wait())
            try:
                await asyncio.wait({showing, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if showing.done():
                    showing.result()
            finally:
                loop.remove_reader(sys.stdin.fileno())
                for task in (showing, leaving):
                    task.cancel()
                await asyncio.gather(showing, leaving, return_exceptions=True)
        if terminal.exit is not None:
            return exit_code_of(terminal.exit.exit_code, terminal.exit.signal)
    click.echo(f"\ndetached; attach again with\n  sandbox-agent processes attach {process.id}", err=True)
    return 0


class _Keys:
    """What is typed, sent in order; the detach keys are taken out."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], detached: asyncio.Event) -> None:
        self._send = send
        self._detached = detached
        self._held = b""
        """The first of the detach keys, until the next key is known."""
        self._sending: asyncio.Future[None] | None = None
        self._waiting = b""

    def typed(self) -> None:
        typed = self._held + os.read(sys.stdin.fileno(), _PIECE)
        self._held = b""
        before, found, _ = typed.partition(DETACH_KEYS)
        if found:
            self._detached.set()
        elif typed.endswith(DETACH_KEYS[:1]):
            before, self._held = typed[:-1], typed[-1:]
        self._waiting += before
        if self._waiting and self._sending is None:
            self._sending = asyncio.ensure_future(self._send_all())
        if len(self._waiting) > 1 << 20:  # a paste that is larger waits in the terminal
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                piece, self._waiting = self._waiting[:_PIECE], self._waiting[_PIECE:]
                await self._send(piece)
        finally:
            self._sending = None
            if not self._detached.is_set():
                asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self.typed)


async def _show(terminal: object) -> None:
    async for output in terminal:  # type: ignore[attr-defined]
        await asyncio.to_thread(_write, sys.stdout.fileno(), output)


async def _give(process: Process, piece: bytes) -> bool:
    """Whether it takes more."""
    try:
        await (process.write(piece) if piece else process.close_input())
    except (Conflict, NotFound):
        return False  # it has exited, or closed its input
    return bool(piece)


def _read_stdin(give: Callable[[bytes], Coroutine[None, None, bool]]) -> None:
    """In a thread that ends with the program: a file, a pipe or a terminal, whatever it is."""
    loop = asyncio.get_running_loop()
    giving: set[asyncio.Task[bool]] = set()

    def begin(piece: bytes, taken: Future[bool]) -> None:
        def done(task: asyncio.Task[bool]) -> None:
            giving.discard(task)
            taken.set_result(not task.cancelled() and task.exception() is None and task.result())

        task = loop.create_task(give(piece))
        giving.add(task)
        task.add_done_callback(done)

    def read() -> None:
        is_more = True
        with contextlib.suppress(OSError, RuntimeError):  # our input cannot be read, or the loop is closed: we end
            while is_more:
                taken: Future[bool] = Future()
                loop.call_soon_threadsafe(begin, os.read(0, _PIECE), taken)
                is_more = taken.result()

    threading.Thread(target=read, name="stdin", daemon=True).start()


@contextlib.contextmanager
def _interrupting(process: Process) -> Iterator[None]:
    """INT and TERM to us are INT and TERM to the process; the third of them kills it."""
    loop = asyncio.get_running_loop()
    told: set[asyncio.Task[object]] = set()
    count = 0

    def pass_on(name: str) -> None:
        nonlocal count
        count += 1
        task: asyncio.Task[object] = loop.create_task(process.stop(signal=name) if count < 3 else process.kill())
        told.add(task)
        task.add_done_callback(told.discard)

    loop.add_signal_handler(signal.SIGINT, pass_on, "INT")
    loop.add_signal_handler(signal.SIGTERM, pass_on, "TERM")
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSADRAIN)  # what was typed meanwhile is for the process
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _watching_size(loop: asyncio.AbstractEventLoop, tell: Callable[[], Awaitable[None]]) -> Iterator[None]:
    telling: set[asyncio.Future[None]] = set()

    def changed() -> None:
        task = asyncio.ensure_future(tell())
        telling.add(task)
        task.add_done_callback(telling.discard)

    loop.add_signal_handler(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
