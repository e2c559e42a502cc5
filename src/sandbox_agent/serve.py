"""The composition root: builds the parts, and owns the order of start-up and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from sandbox_agent.agents import Catalog
from sandbox_agent.core.budget import Budget
from sandbox_agent.core.permission_policy import parse_policy
from sandbox_agent.errors import ConfigError
from sandbox_agent.files import FileLimits, FileService
from sandbox_agent.http.access.auth import Credentials
from sandbox_agent.http.access.origins import Cors, HostNames
from sandbox_agent.http.app import App, AppLimits
from sandbox_agent.http.asgi.telemetry import Telemetry
from sandbox_agent.http.server.direct import DirectProtocol
from sandbox_agent.http.server.websocket import bounded_websocket
from sandbox_agent.http.server.wire import BoundedProtocol, Sockets, bounded, close_stalled
from sandbox_agent.http.surface import Parts, build_app
from sandbox_agent.hub.agents.agent import AgentOptions
from sandbox_agent.hub.housekeeping import close_idle, watch_store
from sandbox_agent.hub.hub import Hub, HubOptions
from sandbox_agent.logs import set_up_logging
from sandbox_agent.process import ROSTER, no_orphans
from sandbox_agent.redaction import Redactor, secrets_of
from sandbox_agent.settings import Settings
from sandbox_agent.store import Retention, make_store

_log = logging.getLogger(__name__)
_LAST_REQUESTS = 1
"""Seconds that responses under way may take to leave once every agent has stopped."""


def run(settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Serve until INT or TERM; `announce` gets the address once it can be used. Raises ConfigError, StoreError."""
    redactor = Redactor([*secrets_of(settings.environ), settings.token or "", *_config_secrets(settings)])
    set_up_logging(settings.log_level, settings.log_format, redactor)
    _allow_sockets(settings.max_sockets)
    listener = _listen(settings.host, settings.port)
    _favour_the_loop()
    with no_orphans(settings.data_path), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, listener, redactor, announce))


def hub_options(settings: Settings, redactor: Redactor) -> HubOptions:
    """Raises InvalidParams for a permission mode that there is not."""
    agent = AgentOptions(
        start_timeout=settings.agent_start_timeout_ms / 1000,
        stop_grace=settings.agent_stop_grace_ms / 1000,
        budget=Budget(
            queued_prompts=settings.max_queued_prompts,
            open_requests=settings.max_open_requests,
            open_request_bytes=settings.open_request_bytes,
            early_bytes=settings.early_update_bytes,
            tool_calls=settings.max_tool_calls,
        ),
        policy=parse_policy(settings.permission_mode, field="permission_mode"),
        line_bytes=settings.max_line_bytes,
        clean_stderr=redactor.head,
    )
    patience = settings.permission_timeout_ms
    return HubOptions(
        agent=agent,
        window_bytes=settings.connection_memory_bytes,
        feed_bytes=settings.feed_memory_bytes,
        connections=settings.max_connections,
        refuses_turns_when_degraded=settings.refuse_turns_when_degraded,
        room_timeout=settings.acp_request_timeout_ms / 1000,
        unattended=None if patience is None else patience / 1000,
    )


def file_limits(settings: Settings) -> FileLimits:
    return FileLimits(
        refuse_backslash=False,
        max_archive_bytes=settings.max_archive_bytes,
        max_archive_entries=settings.max_archive_entries,
        max_member_bytes=settings.max_member_bytes,
        max_archive_depth=settings.max_archive_depth,
        max_gzip_ratio=settings.max_gzip_ratio,
        gzip_ratio_after=settings.gzip_ratio_after,
        max_file_bytes=settings.max_file_bytes,
        max_inline_bytes=settings.max_inline_bytes,
        max_listed=settings.max_listed,
        stall_seconds=settings.upload_stall_ms / 1000,
        max_operations=settings.max_file_operations,
        max_streams=settings.max_file_streams,
        workers=settings.file_workers,
    )


def retention(settings: Settings) -> Retention:
    days = settings.retention_days
    return Retention(age=None if days is None else days * 86_400, bytes=settings.retention_bytes)


def app_limits(settings: Settings) -> AppLimits:
    return AppLimits(in_flight=settings.max_requests, subscribers=settings.max_subscribers)


async def _serve(
    settings: Settings, listener: socket.socket, redactor: Redactor, announce: Callable[[str], None]
) -> None:
    store = make_store(
        settings.store,
        settings.data_path,
        retention=retention(settings),
        memory_bytes=settings.store_memory_bytes,
    )
    await store.open()
    files = FileService(
        [Path(root) for root in settings.fs_root],
        Path.cwd(),
        file_limits(settings),
        data_dir=settings.data_path,
    )
    try:
        await files.mend()
        catalog = Catalog(
            settings.agents,
            data_dir=settings.data_path,
            registry_url=settings.acp_registry_url,
            require_preinstall=settings.require_preinstall,
            env=settings.environ,
        )
        hub = Hub(store, catalog, environ=settings.environ, options=hub_options(settings, redactor), files=files)
        app = build_app(_parts(settings, hub, catalog, files, redactor, port=listener.getsockname()[1]))
        sockets = Sockets(settings.max_sockets)
        config = _uvicorn_config(app, settings, sockets)
        server = _Server(config, hub, on_started=lambda: announce(_address(listener)))
        hub.tasks.start(watch_store(hub))
        hub.tasks.start(close_idle(hub, settings.connection_idle_ms / 1000))
        chores = [
            asyncio.create_task(close_stalled(server.server_state, sockets)),
            asyncio.create_task(ROSTER.reap_adopted()),
        ]
        try:
            await server.serve(sockets=[listener])
        finally:
            for chore in chores:
                chore.cancel()
    finally:
        await files.close()
        await store.close()


def _parts(
    settings: Settings, hub: Hub, catalog: Catalog, files: FileService, redactor: Redactor, *, port: int
) -> Parts:
    cors = Cors(
        settings.cors_allow_origin,
        settings.cors_allow_method,
        settings.cors_allow_header,
        settings.cors_allow_credentials,
    )
    cors.check()
    return Parts(
        hub=hub,
        catalog=catalog,
        files=files,
        credentials=Credentials(settings.token, cookie_name=f"sandbox-agent-{port}"),
        hosts=HostNames(
            settings.allow_host,
            is_loopback=settings.is_loopback,
            is_any_name=not settings.is_loopback and settings.token is not None and not settings.allow_host,
        ),
        cors=cors,
        redactor=redactor,
        telemetry=Telemetry(logs_access=settings.access_log),
        limits=app_limits(settings),
        request_timeout=settings.acp_request_timeout_ms / 1000,
        body_limit=settings.max_body_bytes,
        default_agent=settings.default_agent,
    )


def _config_secrets(settings: Settings) -> list[str]:
    return [value for agent in settings.agents.values() for value in secrets_of(agent.env)]


def _allow_sockets(wanted: int) -> None:
    """Raise our soft limit of open files as far as we may: each socket needs one, and so do agents and files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    goal = wanted + 1024
    if soft < goal:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (goal if hard < 0 else min(goal, hard), hard))


class _Server(uvicorn.Server):
    """uvicorn waits for open responses before it stops; so the hub ends them first."""

    def __init__(self, config: uvicorn.Config, hub: Hub, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._hub = hub
        self._on_started = on_started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """INT and TERM end the server in good order, with exit code 0; a second one ends it at once."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await self._hub.close()
        await super().shutdown(sockets)


_EVERY_ANSWER = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-resource-policy", "same-origin"),
]


def _uvicorn_config(app: App, settings: Settings, sockets: Sockets) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # it logs the query of upgrades: a token may be there
    return uvicorn.Config(
        app,
        http=bounded(sockets, DirectProtocol if settings.direct_http else BoundedProtocol),
        headers=_EVERY_ANSWER,
        ws=bounded_websocket(sockets),
        ws_max_size=settings.max_body_bytes,
        ws_per_message_deflate=False,
        lifespan="off",
        proxy_headers=False,
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=_LAST_REQUESTS,
    )


def _favour_the_loop() -> None:
    """What is loaded by now stays: the collector need not look at it again, nor look so often.

    And the store's thread hands the interpreter back sooner: the loop is who somebody waits for."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(0.001)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not there on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop
