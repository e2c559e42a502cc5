"""The same without async, for scripts: an event loop in a thread does the work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from sandbox_agent.client.agents import AgentInfo
from sandbox_agent.client.files import FileEntry, Files
from sandbox_agent.client.sandbox import DEFAULT_URL, SandboxAgent, SessionInfo
from sandbox_agent.client.session import HistoryEvent, Session
from sandbox_agent.client.turn import Turn
from sandbox_agent.client.updates import Update, text_of

T = TypeVar("T")


class _Loop:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sandbox-agent", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        end = object()
        try:
            while (item := self.run(_next(items, end))) is not end:
                yield item  # type: ignore[misc]
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                self.run(close())

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()


async def _next(items: AsyncIterator[T], end: object) -> T | object:
    try:
        return await anext(items)
    except StopAsyncIteration:
        return end


class BlockingTurn:
    """Iterate over it for the updates; leaving early cancels the turn."""

    def __init__(self, loop: _Loop, turn: Turn) -> None:
        self._loop = loop
        self._turn = turn

    def __iter__(self) -> Iterator[Update]:
        return self._loop.iterate(self._turn.__aiter__())

    def text(self) -> str:
        """Run it to its end; gives what the agent said."""
        return "".join(map(text_of, self))

    @property
    def stop_reason(self) -> str | None:
        return self._turn.stop_reason


class BlockingSession:
    def __init__(self, loop: _Loop, session: Session) -> None:
        self._loop = loop
        self.session = session
        """The async session behind it."""

    @property
    def id(self) -> str:
        return self.session.id

    def prompt(self, content: str | list[Any]) -> BlockingTurn:
        return BlockingTurn(self._loop, self.session.prompt(content))

    def cancel(self) -> None:
        """From another thread: end the turn that runs."""
        self._loop.run(self.session.cancel())

    def set_model(self, model_id: str) -> None:
        self._loop.run(self.session.set_model(model_id))

    def set_mode(self, mode_id: str) -> None:
        self._loop.run(self.session.set_mode(mode_id))

    def set_config_option(self, config_id: str, value: str | bool) -> list[dict[str, Any]]:
        return self._loop.run(self.session.set_config_option(config_id, value))

    def events(self, *, after: int = 0, limit: int | None = None) -> Iterator[HistoryEvent]:
        return self._loop.iterate(self.session.events(after=after, limit=limit))

    def terminate(self) -> None:
        self._loop.run(self.session.terminate())


class BlockingFiles:
    def __init__(self, loop: _Loop, files: Files) -> None:
        self._loop = loop
        self._files = files

    def read(self, path: str) -> bytes:
        return self._loop.run(self._files.read(path))

    def write(self, path: str, content: bytes | str | Path) -> int:
        return self._loop.run(self._files.write(path, content))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        self._loop.run(self._files.delete(path, recursive=recursive))

    def upload(self, directory: Path | str, path: str) -> list[str]:
        return self._loop.run(self._files.upload(directory, path))

    def download(self, path: str, target: Path | str) -> int:
        return self._loop.run(self._files.download(path, target))

    def list(self, path: str = ".") -> list[FileEntry]:
        return self._loop.run(self._files.list(path))


class BlockingSandboxAgent:
    """As `SandboxAgent`, with `with` and plain `for`. Handlers are called in the thread of the event loop."""

    def __init__(self, sandbox: SandboxAgent) -> None:
        self._sandbox = sandbox
        self._loop = _Loop()

    @classmethod
    def connect(cls, url: str = DEFAULT_URL, **options: Any) -> Self:
        """The options are those of `SandboxAgent.connect`."""
        return cls(SandboxAgent.connect(url, **options))

    @classmethod
    def start(cls, **options: Any) -> Self:
        """The options are those of `SandboxAgent.start`."""
        return cls(SandboxAgent.start(**options))

    def __enter__(self) -> Self:
        try:
            self._loop.run(self._sandbox.__aenter__())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._loop.run(self._sandbox.__aexit__(kind, error, trace))
        finally:
            self._loop.stop()

    @property
    def url(self) -> str:
        return self._sandbox.url

    @property
    def files(self) -> BlockingFiles:
        return BlockingFiles(self._loop, self._sandbox.files)

    def agents(self) -> list[AgentInfo]:
        return self._loop.run(self._sandbox.agents.list())

    def create_session(self, *, agent: str, cwd: str | Path = "/", **options: Any) -> BlockingSession:
        return BlockingSession(
            self._loop, self._loop.run(self._sandbox.create_session(agent=agent, cwd=cwd, **options))
        )

    def load_session(self, session_id: str, *, agent: str | None = None) -> BlockingSession:
        return BlockingSession(self._loop, self._loop.run(self._sandbox.load_session(session_id, agent=agent)))

    def resume_session(self, session_id: str, *, agent: str | None = None) -> BlockingSession:
        return BlockingSession(self._loop, self._loop.run(self._sandbox.resume_session(session_id, agent=agent)))

    def list_sessions(self, **filters: Any) -> list[SessionInfo]:
        return self._loop.run(self._sandbox.list_sessions(**filters))
