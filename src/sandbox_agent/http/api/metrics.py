"""`GET /v1/metrics`: the numbers of the hub, the store and the requests, in Prometheus' format."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import NO_STORE, Response
from sandbox_agent.http.asgi.routes import Content, Operation
from sandbox_agent.http.asgi.telemetry import BOUNDS, Telemetry
from sandbox_agent.hub.agents.status import server_status
from sandbox_agent.hub.hub import Hub
from sandbox_agent.version import __version__

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

READ_METRICS = Operation(
    "readMetrics",
    "Get metrics in Prometheus text format",
    "server",
    returns=Content(("text/plain",), {"type": "string"}),
)
_PAGE = 4096


class MetricsApi:
    def __init__(self, hub: Hub, telemetry: Telemetry) -> None:
        self._hub = hub
        self._telemetry = telemetry
        self._registry: Any = None

    async def read(self, _: Exchange) -> Response:
        # imported when somebody asks: 60 ms that a start need not pay
        from prometheus_client import CollectorRegistry  # noqa: PLC0415
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest  # noqa: PLC0415

        if self._registry is None:
            self._registry = CollectorRegistry(auto_describe=False)
            self._registry.register(self)
        pids = {agent.process.pid: agent.id for agent in self._hub.agents if agent.process is not None}
        self._memory = await asyncio.to_thread(_group_memory, pids)
        return Response(200, generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4.encode(), (NO_STORE,))

    _memory: dict[str, int] = {}  # noqa: RUF012 - replaced as a whole, never changed

    def collect(self) -> Iterator[Metric]:
        yield from self._about_requests()
        yield from self._about_hub()
        yield from self._about_cluster()
        yield from self._about_agents()

    def describe(self) -> list[Metric]:
        return []

    def _about_requests(self) -> Iterator[Metric]:
        from prometheus_client import core  # noqa: PLC0415

        telemetry = self._telemetry
        requests = core.CounterMetricFamily(
            "sandbox_agent_http_requests", "Requests answered.", labels=["method", "route", "status"]
        )
        for (method, route, status), number in list(telemetry.requests.items()):
            requests.add_metric([method, route, str(status)], number)
        yield requests
        seconds = core.HistogramMetricFamily(
            "sandbox_agent_http_request_seconds", "Time to answer, without streams.", labels=["method", "route"]
        )
        for (method, route), latency in list(telemetry.latencies.items()):
            seconds.add_metric([method, route], _cumulated(latency.buckets), latency.total)
        yield seconds
        refused = core.CounterMetricFamily(
            "sandbox_agent_http_refused", "Requests turned away at the gate.", labels=["status"]
        )
        for status_text, number in telemetry.refused.items():
            refused.add_metric([status_text], number)
        yield refused
        gauge = core.GaugeMetricFamily
        yield gauge("sandbox_agent_http_in_flight", "Requests under way.", value=telemetry.in_flight)
        yield gauge("sandbox_agent_streams", "Open streams and WebSockets.", value=telemetry.subscribers)

    def _about_hub(self) -> Iterator[Metric]:
        from prometheus_client import core  # noqa: PLC0415

        hub, gauge, counter = self._hub, core.GaugeMetricFamily, core.CounterMetricFamily
        info = core.InfoMetricFamily("sandbox_agent", "The server.")
        info.add_metric([], {"version": __version__})
        yield info
        health = hub.store.health()
        yield gauge("sandbox_agent_connections", "Open connections.", value=len(hub.clients))
        yield gauge("sandbox_agent_store_pending_bytes", "History not yet committed.", value=hub.store.backlog())
        yield counter("sandbox_agent_store_lost_entries", "History given up.", value=health.lost_entries)
        yield gauge("sandbox_agent_store_up", "1 while history is kept.", value=int(health.state == "ok"))
        waiting = sum(connection.stream.waiting for connection in hub.clients.values())
        yield gauge("sandbox_agent_events_waiting", "Events that no reader has taken.", value=waiting)

    def _about_cluster(self) -> Iterator[Metric]:
        from prometheus_client import core  # noqa: PLC0415

        cluster, gauge = self._hub.cluster, core.GaugeMetricFamily
        if cluster is None:
            return
        info = core.InfoMetricFamily("sandbox_agent_node", "The node of a cluster.")
        info.add_metric([], {"id": cluster.node})
        yield info
        guests = sum(connection.is_guest for connection in self._hub.clients.values())
        yield gauge("sandbox_agent_node_draining", "1 while it takes no sessions.", int(cluster.directory.is_draining))
        yield gauge("sandbox_agent_node_sessions", "Sessions in use here.", len(self._hub.sessions.all_held()))
        yield gauge("sandbox_agent_node_links", "Links to other nodes.", len(cluster.links))
        yield gauge("sandbox_agent_node_guests", "Connections of clients at other nodes.", guests)

    def _about_agents(self) -> Iterator[Metric]:
        from prometheus_client import core  # noqa: PLC0415

        gauge, counter, label = core.GaugeMetricFamily, core.CounterMetricFamily, ["agent"]
        up = gauge("sandbox_agent_agent_up", "1 while a process of it runs.", labels=label)
        processes = gauge("sandbox_agent_agent_processes", "Its processes that run.", labels=label)
        restarts = counter("sandbox_agent_agent_restarts", "Starts after the first.", labels=label)
        sessions = gauge("sandbox_agent_agent_sessions", "Sessions live in its processes.", labels=label)
        queued = gauge("sandbox_agent_prompts_queued", "Prompts waiting for their turn.", labels=label)
        asked = gauge("sandbox_agent_requests_pending", "Requests that the agent has not answered.", labels=label)
        open_asks = gauge("sandbox_agent_asks_pending", "Requests of the agent without an answer.", labels=label)
        memory = gauge("sandbox_agent_agent_rss_bytes", "Memory of its process groups.", labels=label)
        events = counter(
            "sandbox_agent_events", "Events from the agent, and to connections.", labels=["agent", "direction"]
        )
        for agent_id in self._hub.agents.ids():
            agents, tally = self._hub.agents.all_of(agent_id), self._hub.agents.tally(agent_id)
            name, status = [agent_id], server_status(agents, tally)
            up.add_metric(name, int(status.status == "running"))
            processes.add_metric(name, len(status.processes))
            restarts.add_metric(name, tally.restarts)
            sessions.add_metric(name, status.sessions)
            queued.add_metric(name, sum(len(session.queue) for a in agents for session in a.sessions.values()))
            asked.add_metric(name, sum(agent.waiting for agent in agents))
            open_asks.add_metric(name, sum(agent.open_asks for agent in agents))
            memory.add_metric(name, self._memory.get(agent_id, 0))
            events.add_metric([agent_id, "in"], tally.events_in)
            events.add_metric([agent_id, "out"], tally.events_out)
        yield from (up, processes, restarts, sessions, queued, asked, open_asks, memory, events)


def _cumulated(buckets: list[int]) -> list[tuple[str, float]]:
    bounds = [*map(str, BOUNDS), "+Inf"]
    total = 0
    found: list[tuple[str, float]] = []
    for bound, number in zip(bounds, buckets, strict=True):
        total += number
        found.append((bound, total))
    return found


def _group_memory(wanted: Mapping[int, str]) -> dict[str, int]:
    """Resident bytes by agent, over all processes of its groups: `wanted` says whose a group is."""
    found = dict.fromkeys(wanted.values(), 0)
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text(encoding="latin-1").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        name = wanted.get(int(fields[2]))
        if name is not None:
            found[name] += int(fields[21]) * _PAGE
    return found
