"""Processes without async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Protocol, TypeVar

from sandbox_agent.client.processes import Output, Process, Processes, ProcessInfo, ProcessResult

T = TypeVar("T")


class _Runs(Protocol):
    def run(self, work: Coroutine[Any, Any, T]) -> T: ...

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]: ...


class BlockingProcess:
    """Iterate over it for its output, until it exits."""

    def __init__(self, loop: _Runs, process: Process) -> None:
        self._loop = loop
        self.process = process
        """The async process behind it."""

    @property
    def id(self) -> str:
        return self.process.id

    @property
    def info(self) -> ProcessInfo:
        return self.process.info

    def __iter__(self) -> Iterator[Output]:
        return self._loop.iterate(self.process.output())

    def wait(self) -> ProcessInfo:
        return self._loop.run(self.process.wait())

    def write(self, data: bytes | str) -> None:
        self._loop.run(self.process.write(data))

    def close_input(self) -> None:
        self._loop.run(self.process.close_input())

    def resize(self, cols: int, rows: int) -> None:
        self._loop.run(self.process.resize(cols, rows))

    def stop(self, *, wait: float = 0.0, signal: str = "TERM") -> ProcessInfo:
        return self._loop.run(self.process.stop(wait=wait, signal=signal))

    def kill(self, *, wait: float = 0.0) -> ProcessInfo:
        return self._loop.run(self.process.kill(wait=wait))

    def delete(self) -> None:
        self._loop.run(self.process.delete())


class BlockingProcesses:
    """As `Processes`, with the same options."""

    def __init__(self, loop: _Runs, processes: Processes) -> None:
        self._loop = loop
        self._processes = processes

    def run(self, command: str, *args: str, **options: Any) -> ProcessResult:
        return self._loop.run(self._processes.run(command, *args, **options))

    def start(self, command: str, *args: str, **options: Any) -> BlockingProcess:
        return BlockingProcess(self._loop, self._loop.run(self._processes.start(command, *args, **options)))

    def list(self, *, owner: str | None = None) -> list[ProcessInfo]:
        return self._loop.run(self._processes.list(owner=owner))

    def get(self, process_id: str) -> BlockingProcess:
        return BlockingProcess(self._loop, self._loop.run(self._processes.get(process_id)))
