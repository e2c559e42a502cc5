"""The same without async, for scripts: an event loop in a thread does the work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, TypedDict, TypeVar, Unpack

from sandbox_agent.client.agents import AgentInfo, Progress
from sandbox_agent.client.asking import OpenRequest, PermissionHandler, QuestionHandler
from sandbox_agent.client.blocking_processes import BlockingProcesses
from sandbox_agent.client.files import FileEntry, Files
from sandbox_agent.client.providers.provider import Provider
from sandbox_agent.client.sandbox import DEFAULT_URL, SandboxAgent, SearchResult, SessionInfo
from sandbox_agent.client.session import HistoryEvent, Session, SessionOptions
from sandbox_agent.client.turn import Turn

if TYPE_CHECKING:
    from sandbox_agent.client.updates import Update

T = TypeVar("T")


class ConnectOptions(TypedDict, total=False):
    """Those of `SandboxAgent.connect`."""

    token: str | None
    on_permission: PermissionHandler | None
    on_question: QuestionHandler | None
    retry_for: float
    ca_file: Path | str | None


class StartOptions(TypedDict, total=False):
    """Those of `SandboxAgent.start`."""

    sandbox: Provider | None
    env: Mapping[str, str] | None
    within: float
    data_dir: Path | str | None
    config: Path | str | None
    flags: tuple[str, ...]
    log: IO[bytes] | int | None
    on_permission: PermissionHandler | None
    on_question: QuestionHandler | None


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

    def events(self) -> Iterator[Update | OpenRequest]:
        """The updates, and among them what the agent asks: call `answer` of each `OpenRequest`."""
        return self._loop.iterate(self._turn.events())

    def text(self) -> str:
        """Run it to its end; gives what the agent said."""
        return self._loop.run(self._turn.text())

    def start(self) -> str:
        """Return its turn id when the server has taken it; it runs by itself."""
        return self._loop.run(self._turn.start())

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

    @property
    def agent(self) -> str:
        return self.session.agent

    @property
    def cwd(self) -> str:
        return self.session.cwd

    @property
    def replay(self) -> list[Update]:
        """After `load_session`: the conversation so far."""
        return self.session.replay

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

    def describe(self) -> dict[str, Any]:
        """What the server knows of it: title, cwd, times, how it ended."""
        return self._loop.run(self.session.describe())

    def fork(self, *, cwd: str | None = None) -> BlockingSession:
        """A new session that begins with this one's conversation. Raises AgentUnsupported."""
        return BlockingSession(self._loop, self._loop.run(self.session.fork(cwd=cwd)))

    def list_models(self) -> list[dict[str, Any]]:
        return self._loop.run(self.session.list_models())

    def set_metadata(self, **metadata: Any) -> dict[str, Any]:
        """Merge into the session's metadata; None removes a name."""
        return self._loop.run(self.session.set_metadata(**metadata))

    def terminate(self) -> None:
        """End it for everybody. Its history stays."""
        self._loop.run(self.session.terminate())

    def delete(self) -> None:
        """End it and forget its history."""
        self._loop.run(self.session.delete())


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
    """As `SandboxAgent`, with `with` and plain `for`; in a notebook, `open()` and `close()` instead of `with`.

    Handlers are called in the thread of the event loop."""

    def __init__(self, sandbox: SandboxAgent) -> None:
        self._sandbox = sandbox
        self._loop = _Loop()
        self._is_open = False

    @classmethod
    def connect(cls, url: str = DEFAULT_URL, **options: Unpack[ConnectOptions]) -> Self:
        """The options are those of `SandboxAgent.connect`."""
        return cls(SandboxAgent.connect(url, **options))

    @classmethod
    def start(cls, **options: Unpack[StartOptions]) -> Self:
        """The options are those of `SandboxAgent.start`."""
        return cls(SandboxAgent.start(**options))

    def open(self) -> Self:
        """As entering a `with` block: `sandbox = BlockingSandboxAgent.start().open()`, and `close()` at the end.

        What is forgotten open ends with the program, or with the kernel of the notebook."""
        try:
            self._loop.run(self._sandbox.__aenter__())
        except BaseException:
            self._loop.stop()
            raise
        self._is_open = True
        return self

    def close(self) -> None:
        """Close the connections, and stop the server if it is ours. Closing twice is no error."""
        if self._is_open:
            self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
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

    @property
    def processes(self) -> BlockingProcesses:
        return BlockingProcesses(self._loop, self._sandbox.processes)

    def health(self) -> dict[str, Any]:
        return self._loop.run(self._sandbox.health())

    def agents(self) -> list[AgentInfo]:
        return self._loop.run(self._sandbox.agents.list())

    def describe_agent(self, agent: str, *, config: bool = False) -> AgentInfo:
        """One agent. With `config` it is started, if need be, to say its models, modes and options."""
        return self._loop.run(self._sandbox.agents.get(agent, config=config))

    def install_agent(self, agent: str, *, reinstall: bool = False, progress: Progress | None = None) -> dict[str, Any]:
        """Install it unless it is there. `progress` is called in the thread of the event loop."""
        return self._loop.run(self._sandbox.agents.install(agent, reinstall=reinstall, progress=progress))

    def auth_methods(self, agent: str) -> list[dict[str, Any]]:
        return self._loop.run(self._sandbox.auth_methods(agent))

    def authenticate(self, agent: str, method_id: str) -> None:
        self._loop.run(self._sandbox.authenticate(agent, method_id))

    def create_session(
        self,
        *,
        agent: str,
        cwd: str | Path | None = None,
        mcp_servers: list[dict[str, Any]] | None = None,
        on_permission: PermissionHandler | None = None,
        on_question: QuestionHandler | None = None,
        **options: Unpack[SessionOptions],
    ) -> BlockingSession:
        """As `SandboxAgent.create_session`."""
        creating = self._sandbox.create_session(
            agent=agent,
            cwd=cwd,
            mcp_servers=mcp_servers,
            on_permission=on_permission,
            on_question=on_question,
            **options,
        )
        return BlockingSession(self._loop, self._loop.run(creating))

    def get_session(self, session_id: str, *, agent: str | None = None) -> BlockingSession:
        """A session without attaching to it: to read its history, describe, terminate or delete it."""
        return BlockingSession(self._loop, self._loop.run(self._sandbox.get_session(session_id, agent=agent)))

    def load_session(self, session_id: str, *, agent: str | None = None) -> BlockingSession:
        return BlockingSession(self._loop, self._loop.run(self._sandbox.load_session(session_id, agent=agent)))

    def resume_session(self, session_id: str, *, agent: str | None = None) -> BlockingSession:
        return BlockingSession(self._loop, self._loop.run(self._sandbox.resume_session(session_id, agent=agent)))

    def list_sessions(
        self, *, agent: str | None = None, cwd: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """The newest first."""
        return self._loop.run(self._sandbox.list_sessions(agent=agent, cwd=cwd, limit=limit))

    def search(self, words: str, *, limit: int = 20) -> SearchResult:
        return self._loop.run(self._sandbox.search(words, limit=limit))
