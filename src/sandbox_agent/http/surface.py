"""All routes on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sandbox_agent.agents import Catalog
from sandbox_agent.files import FileService
from sandbox_agent.http.access.auth import SIGN_IN, Credentials
from sandbox_agent.http.access.gate import Gate
from sandbox_agent.http.access.origins import Cors, HostNames
from sandbox_agent.http.api import (
    agents,
    browser,
    events,
    files,
    health,
    install,
    metrics,
    openapi,
    reference,
    sessions,
)
from sandbox_agent.http.app import App, AppLimits
from sandbox_agent.http.asgi.routes import Door, Endpoint
from sandbox_agent.http.asgi.telemetry import Telemetry
from sandbox_agent.http.doors import acp, compat, operations, rpc
from sandbox_agent.http.ui import Ui, ui_routes
from sandbox_agent.hub.hub import Hub
from sandbox_agent.redaction import Redactor


@dataclass(frozen=True, slots=True)
class Parts:
    """What the surface is made of."""

    hub: Hub
    catalog: Catalog
    files: FileService
    credentials: Credentials
    hosts: HostNames
    limits: AppLimits
    request_timeout: float
    body_limit: int
    cors: Cors = field(default_factory=Cors)
    redactor: Redactor = field(default_factory=lambda: Redactor(()))
    telemetry: Telemetry = field(default_factory=Telemetry)
    default_agent: str | None = None


def build_app(parts: Parts) -> App:
    gate = Gate(parts.credentials, parts.hosts, parts.cors)
    return App(build_routes(parts), gate, parts.telemetry, parts.limits)


def build_routes(parts: Parts) -> Sequence[Endpoint | Door]:
    hub, fs = parts.hub, files.FilesApi(parts.hub, parts.files)
    agent, session = agents.AgentsApi(hub, parts.catalog, parts.redactor), sessions.SessionsApi(hub)
    installing = install.InstallApi(hub, parts.redactor)
    user, feed = browser.BrowserApi(parts.credentials), events.EventsApi(hub.feed)
    named = compat.CompatDoor(hub, request_timeout=parts.request_timeout, body_limit=parts.body_limit)
    docs = reference.ReferenceApi(lambda: openapi.build_document(table))
    table: list[Endpoint | Door] = [
        Door("/v1/rpc", rpc.METHODS, _rpc(parts), operations.RPC),
        Door("/acp", acp.METHODS, _acp(parts), operations.ACP, serves_websocket=True),
        Door("/v1/acp", ("GET",), named, operations.COMPAT_LIST, streams=frozenset()),
        Door("/v1/acp/{server_id}", compat.METHODS, named, operations.COMPAT),
        Endpoint("GET", "/v1/health", health.HealthApi(hub).show, health.SHOW_HEALTH),
        Endpoint("GET", "/v1/metrics", metrics.MetricsApi(hub, parts.telemetry).read, metrics.READ_METRICS),
        Endpoint("GET", "/v1/events", feed.follow, events.FOLLOW_EVENTS, is_stream=True),
        Endpoint("GET", "/v1/openapi.json", docs.openapi, reference.READ_OPENAPI),
        Endpoint("POST", "/v1/tickets", user.issue_ticket, browser.ISSUE_TICKET),
        Endpoint("GET", "/v1/agents", agent.list, agents.LIST_AGENTS),
        Endpoint("GET", "/v1/agents/{agent}", agent.show, agents.SHOW_AGENT),
        Endpoint("POST", "/v1/agents/{agent}/install", installing.install, install.INSTALL_AGENT),
        Endpoint("GET", "/v1/agents/{agent}/logs", agent.logs, agents.READ_LOGS),
        Endpoint("GET", "/v1/sessions", session.list, sessions.LIST_SESSIONS),
        Endpoint("GET", "/v1/sessions/{id}", session.show, sessions.SHOW_SESSION),
        Endpoint("GET", "/v1/sessions/{id}/transcript", session.transcript, sessions.READ_TRANSCRIPT),
        Endpoint("GET", "/v1/fs/entries", fs.entries, files.LIST_ENTRIES),
        Endpoint("GET", "/v1/fs/file", fs.read, files.READ_FILE),
        Endpoint("PUT", "/v1/fs/file", fs.write, files.WRITE_FILE),
        Endpoint("DELETE", "/v1/fs/entry", fs.delete, files.DELETE_ENTRY),
        Endpoint("POST", "/v1/fs/mkdir", fs.mkdir, files.MAKE_DIRECTORY),
        Endpoint("POST", "/v1/fs/move", fs.move, files.MOVE_ENTRY),
        Endpoint("GET", "/v1/fs/stat", fs.stat, files.STAT_ENTRY),
        Endpoint("POST", "/v1/fs/upload-batch", fs.upload_batch, files.UPLOAD_BATCH),
        *ui_routes(Ui()),
        Endpoint("GET", "/docs", docs.reference, None, is_page=True),
        Endpoint("POST", SIGN_IN, user.sign_in, None, is_open=True),
        Endpoint("POST", "/sign-out", user.sign_out, None),
    ]
    return table


def _rpc(parts: Parts) -> rpc.RpcDoor:
    return rpc.RpcDoor(parts.hub, request_timeout=parts.request_timeout, body_limit=parts.body_limit)


def _acp(parts: Parts) -> acp.AcpDoor:
    return acp.AcpDoor(parts.hub, default_agent=parts.default_agent, body_limit=parts.body_limit)
