"""`POST /v1/agents/{agent}/install`: one JSON answer at the end, or the progress as server-sent events."""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

from sandbox_agent.agents import Artifact, InstallResult, InstallWish, Progress
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import (
    AgentNotInstalled,
    InstallError,
    InvalidParams,
    SandboxAgentError,
    TooLarge,
    UnknownAgent,
    UnsupportedMediaType,
)
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.problems import outcome, problem_body
from sandbox_agent.http.asgi.routes import Operation
from sandbox_agent.http.asgi.sse import HEARTBEAT, beat, begin, peer_left
from sandbox_agent.hub.hub import Hub
from sandbox_agent.redaction import Redactor

_KEPT = 256
"""Progress that a slow reader has not taken: the newest is kept."""


class InstallBody(InstallWish, frozen=True, rename="camel"):
    pass


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """`already_installed` is the former spelling of `alreadyInstalled`, kept for existing clients."""

    already_installed: bool
    is_installed_already: bool = msgspec.field(name="alreadyInstalled")
    artifacts: list[Artifact]
    version: str | None = None
    source: str


INSTALL_AGENT = Operation(
    "installAgent",
    "Install an agent",
    "agents",
    "An installed agent is left as it is unless `reinstall` is true. The body is optional. There is no time limit, and "
    "the install continues if the client disconnects. With `Accept: text/event-stream` the response is a stream of "
    "`progress` events (agent, step, message, fraction, bytes) that ends with one `done` event with this response, or "
    "one `error` event with a problem.",
    body=InstallBody,
    is_body_optional=True,
    returns=Installed,
    errors=(InvalidParams, UnknownAgent, UnsupportedMediaType, TooLarge, AgentNotInstalled, InstallError, 507),
)


class InstallApi:
    def __init__(self, hub: Hub, redactor: Redactor) -> None:
        self._hub = hub
        self._redactor = redactor

    async def install(self, exchange: Exchange) -> Installed | None:
        agent = AgentId(exchange.path("agent"))
        has_body = exchange.header(b"content-type") is not None or (exchange.header(b"content-length") or "0") != "0"
        body = await exchange.json(InstallBody) if has_body else InstallBody()
        wish = InstallWish(body.reinstall, body.agent_version, body.agent_process_version)
        if "text/event-stream" not in (exchange.header(b"accept") or ""):
            return _installed(await self._hub.installs.install(agent, wish))
        told = _Told()
        running = asyncio.create_task(self._hub.installs.install(agent, wish, told.add))
        running.add_done_callback(lambda _: told.wake())
        leaving = asyncio.create_task(peer_left(exchange.receive))
        leaving.add_done_callback(lambda _: told.wake())
        try:
            await self._tell(exchange, told, running, leaving)
        finally:
            running.cancel()  # this waits for the install, it is not the install
            leaving.cancel()
            await asyncio.gather(running, leaving, return_exceptions=True)
        return None

    async def _tell(
        self,
        exchange: Exchange,
        told: _Told,
        running: asyncio.Task[InstallResult],
        leaving: asyncio.Task[None],
    ) -> None:
        await told.news()
        if running.done() and not told.waiting:
            running.result()  # what is wrong before the first step is an answer with its own status
        await begin(exchange.send)
        while not leaving.done():
            while told.waiting:
                await _event(exchange, b"progress", msgspec.json.encode(told.waiting.popleft()))
            if running.done():
                await _event(exchange, *await self._last_event(running, exchange.scope["path"]), is_last=True)
                return
            if not await told.news(wait=HEARTBEAT):
                await beat(exchange.send)

    async def _last_event(self, running: asyncio.Task[InstallResult], path: str) -> tuple[bytes, bytes]:
        result = await outcome(running, path)
        if isinstance(result, SandboxAgentError):
            return b"error", self._redactor.clean(problem_body(result, instance=path).decode()).encode()
        return b"done", msgspec.json.encode(_installed(result))


class _Told:
    """What an install has told of itself and nobody has been sent yet."""

    def __init__(self) -> None:
        self.waiting: deque[Progress] = deque(maxlen=_KEPT)
        self._changed = asyncio.Event()

    def add(self, progress: Progress) -> None:
        self.waiting.append(progress)
        self.wake()

    def wake(self) -> None:
        self._changed.set()

    async def news(self, wait: float | None = None) -> bool:
        """Return when something has changed since the last call; False when nothing has for so long."""
        try:
            async with asyncio.timeout(wait):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True


async def _event(exchange: Exchange, name: bytes, body: bytes, *, is_last: bool = False) -> None:
    event = b"event: %b\ndata: %b\n\n" % (name, body)
    await exchange.send({"type": "http.response.body", "body": event, "more_body": not is_last})


def _installed(result: InstallResult) -> Installed:
    return Installed(
        already_installed=result.already_installed,
        is_installed_already=result.already_installed,
        artifacts=list(result.artifacts),
        version=result.version,
        source=result.source,
    )
