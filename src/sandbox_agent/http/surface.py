"""All routes on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from sandbox_agent.agents import Catalog
from sandbox_agent.core.users import Right
from sandbox_agent.files import FileService
from sandbox_agent.http.access.attendance import Attendance
from sandbox_agent.http.access.auth import SIGN_IN, Credentials
from sandbox_agent.http.access.gate import Gate
from sandbox_agent.http.access.origins import Cors, HostNames
from sandbox_agent.http.api import (
    agents,
    browser,
    directory_config,
    events,
    files,
    guides,
    health,
    install,
    metrics,
    nodes,
    process_logs,
    processes,
    reference,
    sessions,
)
from sandbox_agent.http.api.elsewhere import Elsewhere
from sandbox_agent.http.app import App, AppLimits
from sandbox_agent.http.asgi.routes import Door, Endpoint
from sandbox_agent.http.asgi.telemetry import Telemetry
from sandbox_agent.http.doors import acp, compat, link, operations, rpc, terminal
from sandbox_agent.http.doors.opencode.door import OpenCodeParts, opencode_routes
from sandbox_agent.http.ui import Ui, ui_routes
from sandbox_agent.hub.hub import Hub
from sandbox_agent.redaction import Redactor

READ, PROMPT, ADMIN = Right.READ, Right.PROMPT, Right.ADMIN


class Parts(msgspec.Struct, frozen=True):
    """What the surface is made of."""

    hub: Hub
    catalog: Catalog
    files: FileService
    credentials: Credentials
    hosts: HostNames
    limits: AppLimits
    request_timeout: float
    body_limit: int
    cors: Cors = msgspec.field(default_factory=Cors)
    redactor: Redactor = msgspec.field(default_factory=lambda: Redactor(()))
    telemetry: Telemetry = msgspec.field(default_factory=Telemetry)
    cluster_token: str | None = None
    node_ca_file: str | None = None
    default_agent: str | None = None
    opencode_stream_bytes: int = 8 << 20
    opencode_sessions: int = 64


def build_app(parts: Parts) -> App:
    gate = Gate(parts.credentials, parts.hosts, parts.cors)
    attendance = Attendance(parts.credentials.named, parts.hub.user_ended)
    return App(build_routes(parts), gate, parts.telemetry, parts.limits, attendance, _elsewhere(parts).serve)


def build_routes(parts: Parts) -> Sequence[Endpoint | Door]:
    hub, fs = parts.hub, files.FilesApi(parts.hub, parts.files)
    agent, session = agents.AgentsApi(hub, parts.catalog, parts.redactor), sessions.SessionsApi(hub)
    installing = install.InstallApi(hub, parts.redactor)
    user, feed = browser.BrowserApi(parts.credentials), events.EventsApi(hub)
    named = compat.CompatDoor(hub, request_timeout=parts.request_timeout, body_limit=parts.body_limit)
    process, printed = processes.ProcessesApi(hub), process_logs.ProcessLogsApi(hub.processes)
    shown = terminal.TerminalDoor(hub.processes, _elsewhere(parts).serve)
    mcp = directory_config.DirectoryConfigApi(hub.directories, "mcp")
    skills = directory_config.DirectoryConfigApi(hub.directories, "skills")
    guide, node = guides.GuidesApi(), nodes.NodesApi(hub)
    docs = reference.ReferenceApi(lambda: _describe(table))
    table: list[Endpoint | Door] = [
        Door("/v1/rpc", rpc.METHODS, _rpc(parts), operations.RPC, needs=READ),
        Door("/acp", acp.METHODS, _acp(parts), operations.ACP, serves_websocket=True, needs=READ),
        Door("/v1/acp", ("GET",), named, operations.COMPAT_LIST, streams=frozenset(), needs=READ),
        Door("/v1/acp/{server_id}", compat.METHODS, named, operations.COMPAT, needs=READ),
        Door("/v1/nodes/link", (), _link(parts), serves_websocket=True, is_open=True),
        Endpoint("GET", "/v1/health", health.HealthApi(hub).show, health.SHOW_HEALTH, needs=READ),
        Endpoint("GET", "/v1/metrics", metrics.MetricsApi(hub, parts.telemetry).read, metrics.READ_METRICS, needs=READ),
        Endpoint("GET", "/v1/nodes", node.list, nodes.LIST_NODES, needs=READ),
        Endpoint("POST", "/v1/nodes/{id}/drain", node.drain, nodes.DRAIN_NODE, needs=ADMIN),
        Endpoint("POST", "/v1/nodes/{id}/resume", node.resume, nodes.RESUME_NODE, needs=ADMIN),
        Endpoint("GET", "/v1/events", feed.follow, events.FOLLOW_EVENTS, is_stream=True, needs=READ),
        Endpoint("GET", "/v1/openapi.json", docs.openapi, reference.READ_OPENAPI, needs=READ),
        Endpoint("POST", "/v1/tickets", user.issue_ticket, browser.ISSUE_TICKET, needs=READ),
        Endpoint("GET", "/v1/agents", agent.list, agents.LIST_AGENTS, needs=READ),
        Endpoint("GET", "/v1/agents/{agent}", agent.show, agents.SHOW_AGENT, needs=READ),
        Endpoint("POST", "/v1/agents/{agent}/install", installing.install, install.INSTALL_AGENT, needs=ADMIN),
        Endpoint("GET", "/v1/agents/{agent}/logs", agent.logs, agents.READ_LOGS, needs=PROMPT),
        Endpoint("GET", "/v1/sessions", session.list, sessions.LIST_SESSIONS, needs=READ),
        Endpoint("GET", "/v1/sessions/{id}", session.show, sessions.SHOW_SESSION, needs=READ),
        Endpoint("GET", "/v1/sessions/{id}/transcript", session.transcript, sessions.READ_TRANSCRIPT, needs=READ),
        Endpoint("GET", "/v1/search", session.search, sessions.SEARCH_SESSIONS, needs=READ),
        Endpoint("POST", "/v1/processes/run", process.run, processes.RUN_PROCESS, needs=PROMPT),
        Endpoint("GET", "/v1/processes/config", process.show_config, processes.SHOW_CONFIG, needs=PROMPT),
        Endpoint("POST", "/v1/processes/config", process.change_config, processes.CHANGE_CONFIG, needs=ADMIN),
        Endpoint("GET", "/v1/processes", process.list, processes.LIST_PROCESSES, needs=PROMPT),
        Endpoint("POST", "/v1/processes", process.start, processes.START_PROCESS, needs=PROMPT),
        Endpoint("GET", "/v1/processes/{id}", process.show, processes.SHOW_PROCESS, needs=PROMPT),
        Endpoint("DELETE", "/v1/processes/{id}", process.delete, processes.DELETE_PROCESS, needs=PROMPT),
        Endpoint("POST", "/v1/processes/{id}/stop", process.stop, processes.STOP_PROCESS, needs=PROMPT),
        Endpoint("POST", "/v1/processes/{id}/kill", process.kill, processes.KILL_PROCESS, needs=PROMPT),
        Endpoint("POST", "/v1/processes/{id}/input", process.write, processes.WRITE_INPUT, needs=PROMPT),
        Endpoint("GET", "/v1/processes/{id}/logs", printed.read, process_logs.READ_LOG, is_stream=True, needs=PROMPT),
        Endpoint("POST", "/v1/processes/{id}/terminal/resize", process.resize, processes.RESIZE_TERMINAL, needs=PROMPT),
        Door(
            "/v1/processes/{id}/terminal/ws", ("GET",), shown, operations.TERMINAL, serves_websocket=True, needs=PROMPT
        ),
        Endpoint("GET", "/v1/config/mcp", mcp.read, directory_config.READ_MCP, needs=PROMPT),
        Endpoint("PUT", "/v1/config/mcp", mcp.write, directory_config.WRITE_MCP, needs=ADMIN),
        Endpoint("DELETE", "/v1/config/mcp", mcp.delete, directory_config.DELETE_MCP, needs=ADMIN),
        Endpoint("GET", "/v1/config/skills", skills.read, directory_config.READ_SKILLS, needs=PROMPT),
        Endpoint("PUT", "/v1/config/skills", skills.write, directory_config.WRITE_SKILLS, needs=ADMIN),
        Endpoint("DELETE", "/v1/config/skills", skills.delete, directory_config.DELETE_SKILLS, needs=ADMIN),
        Endpoint("GET", "/v1/fs/entries", fs.entries, files.LIST_ENTRIES, needs=PROMPT),
        Endpoint("GET", "/v1/fs/file", fs.read, files.READ_FILE, needs=PROMPT),
        Endpoint("PUT", "/v1/fs/file", fs.write, files.WRITE_FILE, needs=PROMPT),
        Endpoint("DELETE", "/v1/fs/entry", fs.delete, files.DELETE_ENTRY, needs=PROMPT),
        Endpoint("POST", "/v1/fs/mkdir", fs.mkdir, files.MAKE_DIRECTORY, needs=PROMPT),
        Endpoint("POST", "/v1/fs/move", fs.move, files.MOVE_ENTRY, needs=PROMPT),
        Endpoint("GET", "/v1/fs/stat", fs.stat, files.STAT_ENTRY, needs=PROMPT),
        Endpoint("POST", "/v1/fs/upload-batch", fs.upload_batch, files.UPLOAD_BATCH, needs=PROMPT),
        *opencode_routes(_opencode(parts)),
        *ui_routes(Ui()),
        Endpoint("GET", "/docs", docs.reference, None, is_page=True, needs=READ),
        Endpoint("GET", "/docs/", guide.page, None, is_page=True, needs=READ),
        Endpoint("GET", "/docs/{page}", guide.page, None, is_page=True, needs=READ),
        Endpoint("POST", SIGN_IN, user.sign_in, None, is_open=True, needs=READ),
        Endpoint("POST", "/sign-out", user.sign_out, None, needs=READ),
    ]
    return table


def _describe(table: Sequence[Endpoint | Door]) -> dict[str, Any]:
    from sandbox_agent.http.api.openapi import build_document  # noqa: PLC0415 - most servers are never asked for it

    return build_document(table)


def _rpc(parts: Parts) -> rpc.RpcDoor:
    return rpc.RpcDoor(parts.hub, request_timeout=parts.request_timeout, body_limit=parts.body_limit)


def _link(parts: Parts) -> link.LinkDoor:
    return link.LinkDoor(parts.hub, parts.cluster_token, body_limit=parts.body_limit)


def _elsewhere(parts: Parts) -> Elsewhere:
    return Elsewhere(parts.hub, parts.cluster_token, parts.node_ca_file)


def _opencode(parts: Parts) -> OpenCodeParts:
    elsewhere = _elsewhere(parts)
    return OpenCodeParts(
        parts.hub,
        parts.catalog,
        parts.files,
        body_limit=parts.body_limit,
        request_timeout=parts.request_timeout,
        default_agent=parts.default_agent,
        issue_ticket=parts.credentials.tickets.issue,
        ticket_seconds=parts.credentials.tickets.lifetime,
        stream_bytes=parts.opencode_stream_bytes,
        sessions_held=parts.opencode_sessions,
        forward=elsewhere.forward,
        ask_others=elsewhere.ask_others,
    )


def _acp(parts: Parts) -> acp.AcpDoor:
    return acp.AcpDoor(parts.hub, default_agent=parts.default_agent, body_limit=parts.body_limit)
