"""The composition root: builds the parts, and owns the order of start-up and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from sandbox_agent.agents import Catalog
from sandbox_agent.core.budget import Budget
from sandbox_agent.core.permission_policy import parse_policy
from sandbox_agent.errors import ConfigError
from sandbox_agent.files import FileLimits, FileService
from sandbox_agent.http.access.auth import Credentials
from sandbox_agent.http.access.origins import Cors, HostNames
from sandbox_agent.http.access.tokens import FILE, NamedTokens, TokenFile
from sandbox_agent.http.app import AppLimits
from sandbox_agent.http.asgi.messages import Asgi
from sandbox_agent.http.asgi.telemetry import Telemetry
from sandbox_agent.http.doors.link import HEAD_ROOM
from sandbox_agent.http.doors.opencode.door import OpenCodeAtRoot
from sandbox_agent.http.server.direct import DirectProtocol
from sandbox_agent.http.server.uvicorn_parts import Config, Server
from sandbox_agent.http.server.wire import BoundedProtocol, Sockets, bounded, close_stalled
from sandbox_agent.http.surface import Parts, build_app
from sandbox_agent.hub.agents.options import AgentOptions
from sandbox_agent.hub.housekeeping import close_idle, rest_idle, watch_store
from sandbox_agent.hub.hub import Hub, HubOptions
from sandbox_agent.hub.processes.processes import ProcessOptions
from sandbox_agent.hub.processes.views import ProcessConfig
from sandbox_agent.logs import set_up_logging
from sandbox_agent.memory import favour_the_loop, give_back
from sandbox_agent.process import ROSTER, Child, no_orphans, owner_ended
from sandbox_agent.redaction import Redactor, secrets_of
from sandbox_agent.settings import Settings
from sandbox_agent.store import Retention, Store, open_store, secret_of
from sandbox_agent.store.membership import Membership

if TYPE_CHECKING:
    from sandbox_agent.hub.cluster.cluster import Cluster

_log = logging.getLogger(__name__)
_LAST_REQUESTS = 1
"""Seconds that responses under way may take to leave once every agent has stopped."""


def run(settings: Settings, *, announce: Callable[[str], None], owner: int | None = None) -> None:
    """Serve until INT, TERM, HUP or the end of the process `owner`; `announce` gets the address once it can be used.

    Raises ConfigError, StoreError."""
    redactor = Redactor(
        [
            *secrets_of(settings.environ),
            settings.token or "",
            settings.cluster_token or "",
            secret_of(settings.store),
            *_config_secrets(settings),
        ]
    )
    set_up_logging(settings.log_level, settings.log_format, redactor)
    _allow_sockets(settings.max_sockets)
    listeners = [_listen(settings.host, settings.port)]
    if settings.opencode_port is not None:
        listeners.append(_listen(settings.host, settings.opencode_port))
    favour_the_loop()
    with no_orphans(settings.data_path), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, listeners, redactor, announce, owner))


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
        start_child=Child.launch,
    )
    patience = settings.permission_timeout_ms
    return HubOptions(
        agent=agent,
        window_bytes=settings.connection_memory_bytes,
        correlation_bytes=settings.correlation_bytes,
        feed_bytes=settings.feed_memory_bytes,
        session_processes=settings.max_session_processes,
        connections=settings.max_connections,
        open_sessions=settings.max_open_sessions,
        running_turns=settings.max_running_turns,
        running_turns_per_user=settings.max_running_turns_per_user,
        refuses_turns_when_degraded=settings.refuse_turns_when_degraded,
        room_timeout=settings.acp_request_timeout_ms / 1000,
        unattended=None if patience is None else patience / 1000,
        processes=process_options(settings),
        data_dir=settings.data_path,
    )


def process_options(settings: Settings) -> ProcessOptions:
    return ProcessOptions(
        folder=settings.data_path / "processes",
        limits=ProcessConfig(
            max_concurrent_processes=settings.max_processes,
            default_run_timeout_ms=settings.run_timeout_ms,
            max_run_timeout_ms=settings.max_run_timeout_ms,
            max_output_bytes=settings.process_output_bytes,
            max_log_bytes_per_process=settings.process_log_bytes,
            max_input_bytes_per_request=settings.process_input_bytes,
        ),
        is_allowed=settings.processes,
        exited=settings.max_exited_processes,
        stop_grace=settings.agent_stop_grace_ms / 1000,
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


def membership(settings: Settings, address: str) -> Membership:
    return Membership(
        node_id=settings.node_id,
        url="" if settings.cluster_token is None else settings.node_url or address,
        lease=settings.lease_ms / 1000,
        takes_over=settings.takeover == "auto",
    )


def _join_cluster(hub: Hub, store: Store, settings: Settings, token: str) -> None:
    from sandbox_agent.hub.cluster.cluster import Cluster, ClusterOptions  # noqa: PLC0415 - only for who has one
    from sandbox_agent.store.postgres.store import PostgresStore  # noqa: PLC0415

    if isinstance(store, PostgresStore):  # which the settings have seen to
        options = ClusterOptions(
            token=token,
            ca_file=settings.node_ca_file,
            lease=settings.lease_ms / 1000,
            takes_over=settings.takeover == "auto",
            drain=settings.drain_ms / 1000,
        )
        Cluster(hub, store, options)


def app_limits(settings: Settings) -> AppLimits:
    return AppLimits(in_flight=settings.max_requests, subscribers=settings.max_subscribers)


async def _serve(
    settings: Settings,
    listeners: list[socket.socket],
    redactor: Redactor,
    announce: Callable[[str], None],
    owner: int | None,
) -> None:
    store = await open_store(
        settings.store,
        settings.data_path,
        retention=retention(settings),
        memory_bytes=settings.store_memory_bytes,
        search_text_bytes=settings.search_text_bytes,
        membership=membership(settings, _address(listeners[0])),
    )
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
        if settings.cluster_token is not None:
            _join_cluster(hub, store, settings, settings.cluster_token)
        await hub.processes.restore()
        ports = [listener.getsockname()[1] for listener in listeners]
        app: Asgi = build_app(_parts(settings, hub, catalog, files, redactor, port=ports[0]))
        if len(listeners) > 1:
            app = OpenCodeAtRoot(app, ports[1])
            _log.info("listening for OpenCode address=%s", _address(listeners[1]))
        sockets = Sockets(settings.max_sockets)
        config = _uvicorn_config(app, settings, sockets)
        server = _Server(config, hub, on_started=lambda: announce(_address(listeners[0])))
        hub.tasks.start(watch_store(hub))
        hub.tasks.start(close_idle(hub, settings.connection_idle_ms / 1000))
        hub.tasks.start(rest_idle(hub, settings.session_process_idle_ms / 1000))
        chores = [
            asyncio.create_task(close_stalled(server.server_state, sockets)),
            asyncio.create_task(ROSTER.reap_adopted()),
            asyncio.create_task(give_back()),
            *([asyncio.create_task(server.end_with(owner))] if owner is not None else []),
        ]
        try:
            await server.serve(sockets=listeners)
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
        credentials=_credentials(settings, port),
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
        cluster_token=settings.cluster_token,
        node_ca_file=settings.node_ca_file,
        default_agent=settings.default_agent,
        opencode_stream_bytes=settings.opencode_stream_bytes,
        opencode_sessions=settings.opencode_sessions,
    )


def _credentials(settings: Settings, port: int) -> Credentials:
    """Raises ConfigError."""
    named = NamedTokens(TokenFile(settings.data_path))
    if named.exist and settings.no_token:
        raise ConfigError(
            f"--no-token lets everybody in, but {str(settings.data_path)!r} has named tokens: start without "
            f"--no-token, or remove {FILE} there"
        )
    return Credentials(
        settings.token, cookie_name=f"sandbox-agent-{port}", named=named, cluster_token=settings.cluster_token
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


class _Server(Server):
    """uvicorn waits for open responses before it stops; so the hub ends them first."""

    def __init__(self, config: Config, hub: Hub, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._hub = hub
        self._on_started = on_started
        self._ending = asyncio.Event()
        self._hurrying = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """INT, TERM and HUP end the server in good order, with exit code 0; a second one ends it at once.

        A HUP that is ignored stays so: that is what `nohup` does. But programs that we start must not inherit that:
        in a terminal, Ctrl-C, Ctrl-\\ and hanging up have to work."""
        loop = asyncio.get_running_loop()
        is_deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        numbers = (signal.SIGINT, signal.SIGTERM, *(() if is_deaf else (signal.SIGHUP,)))
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        for number in (signal.SIGHUP, signal.SIGQUIT):
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    async def end_with(self, owner: int) -> None:
        """Go down in good order once the process `owner` has ended."""
        await owner_ended(owner)
        _log.warning("the program that started this server has ended pid=%s", owner)
        self.should_exit = True
        self._ending.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._ending.is_set():
            self._hurrying.set()
        super().handle_exit(sig, frame)
        self._ending.set()

    async def _drain(self, cluster: Cluster) -> None:
        """Hand the sessions on to other nodes, unless somebody has no time for that."""
        work = [asyncio.create_task(cluster.draining.finish()), asyncio.create_task(self._hurrying.wait())]
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    async def main_loop(self) -> None:
        """As uvicorn's, which looks ten times a second whether it is to end, and ticks once for ten looks."""
        for looks in itertools.count(step=10):
            if await self.on_tick(looks):
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), timeout=1.0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        if self._hub.cluster is not None:
            await self._drain(self._hub.cluster)
        await self._hub.close()
        await super().shutdown(sockets)


_EVERY_ANSWER = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-resource-policy", "same-origin"),
]


def _uvicorn_config(app: Asgi, settings: Settings, sockets: Sockets) -> Config:
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # it logs the query of upgrades: a token may be there
    return Config(
        app,
        http=bounded(sockets, DirectProtocol if settings.direct_http else BoundedProtocol),
        headers=_EVERY_ANSWER,
        ws=_websockets(sockets),  # type: ignore[arg-type]  # a class, as far as uvicorn calls it
        ws_max_size=settings.max_body_bytes + HEAD_ROOM,
        ws_per_message_deflate=False,
        lifespan="off",
        proxy_headers=False,
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=_LAST_REQUESTS,
    )


def _websockets(sockets: Sockets) -> Callable[..., asyncio.Protocol]:
    """Makes the protocol of an upgraded socket, which is imported at the first: that is a tenth of a server's start."""

    def upgraded(**named: Any) -> asyncio.Protocol:
        from sandbox_agent.http.server.websocket import bounded_websocket  # noqa: PLC0415

        return bounded_websocket(sockets)(**named)

    return upgraded


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
