"""What we aim for, next to the peer or by itself, and whether a run has reached it."""

from __future__ import annotations

from dataclasses import dataclass

from bench.running import Results


@dataclass(frozen=True)
class Aim:
    """`limit` is a ratio to `to`, or an absolute value where `to` is None. More is better unless `is_less`."""

    case: str
    figure: str
    limit: float
    to: str | None = None
    is_less: bool = False

    @property
    def words(self) -> str:
        sign = "≤" if self.is_less else "≥"
        return f"{sign} {self.limit:g}" + (f" of {_LABELS[self.to]}" if self.to else "")

    def reached(self, results: Results) -> float | None:
        """The value that is held against the limit."""
        if self.to is None:
            return results.median(self.case, "ours", self.figure)
        return results.ratio(self.case, "ours", self.to, self.figure)

    def is_met(self, results: Results) -> bool | None:
        value = self.reached(results)
        if value is None:
            return None
        return value <= self.limit if self.is_less else value >= self.limit


_LABELS = {"peer": "peer", "peer-quiet": "peer quiet"}


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    title: str
    case: str
    figure: str
    unit: str
    aims: tuple[Aim, ...] = ()
    is_less: bool = False
    """Less is better."""


def rows() -> list[Row]:
    def row(
        title: str, case: str, figure: str, unit: str, *aims: tuple[float, str | None], is_less: bool = False
    ) -> Row:
        made = tuple(Aim(case, figure, limit, to, is_less) for limit, to in aims)
        return Row(title, case, figure, unit, made, is_less)

    return [
        row("POST round trip, 1 client", "post-1", "rate", "req/s", (1, "peer-quiet")),
        row("… CPU of the server", "post-1", "cpu_us", "µs/req", is_less=True),
        row("POST round trip, 16 clients", "post-16", "rate", "req/s", (1.3, "peer-quiet")),
        row("… p50", "post-16", "p50_us", "µs", is_less=True),
        row("… p99", "post-16", "p99_us", "µs", is_less=True),
        row("… CPU of the server", "post-16", "cpu_us", "µs/req", is_less=True),
        row("POST round trip, 64 clients", "post-64", "rate", "req/s", (1.3, "peer-quiet")),
        row("… CPU of the server", "post-64", "cpu_us", "µs/req", is_less=True),
        row("stream 100k of 100 B, one reader", "flood", "rate", "events/s", (5, "peer")),
        row("… CPU of the server", "flood", "cpu_us", "µs/event", is_less=True),
        row("… lost", "flood", "lost_share", "%", (0, None), is_less=True),
        row("8 sessions of 20k", "flood-8", "rate", "events/s", (5, "peer")),
        row("… lost", "flood-8", "lost_share", "%", (0, None), is_less=True),
        row("slow reader, 100k: lost", "slow", "lost_share", "%", (0, None), is_less=True),
        row("… memory grown by", "slow", "grown_mb", "MB", (64, None), is_less=True),
        row("stalled reader, 100k: lost", "stalled", "lost_share", "%", (0, None), is_less=True),
        row("… memory grown by", "stalled", "grown_mb", "MB", (64, None), is_less=True),
        row("one event, agent to client, p50", "latency", "p50_us", "µs", (1, "peer"), is_less=True),
        row("reconnect, replay of 50k", "replay", "rate", "events/s"),
        row("… lost", "replay", "lost_share", "%", (0, None), is_less=True),
        row("translated between ACP versions", "versions", "rate", "events/s", (100_000, None)),
        row("start to first 200 on health", "start", "ms", "ms", (150, None), is_less=True),
        row("… CPU until then", "start", "cpu_ms", "ms", is_less=True),
        row("idle memory", "start", "idle_mb", "MB", (28, None), is_less=True),
        row("run `/bin/true` to its end, p50", "run", "p50_us", "µs", (1.2, "peer"), is_less=True),
        row("… CPU of the server", "run", "cpu_us", "µs/run", is_less=True),
        row("100k lines of a process, followed", "output", "rate", "lines/s", (3, "peer")),
        row("GET 256 MiB", "get", "mb_per_s", "MB/s", (1.5, "peer")),
        row("… memory at most", "get", "rss_mb", "MB", (60, None), is_less=True),
        row("… CPU of the server", "get", "cpu_ms", "ms", is_less=True),
        row("PUT 256 MiB", "put", "mb_per_s", "MB/s"),
        row("… memory at most", "put", "rss_mb", "MB", (60, None), is_less=True),
        row("tar of 2,000 small files", "tar", "ms", "ms", (1, "peer"), is_less=True),
        row("50 sessions: memory of ours for each", "sessions-50", "own_kb_each", "KB", (100, None), is_less=True),
        row("… all processes, for each", "sessions-50", "kb_each", "KB", is_less=True),
        row("… time for each", "sessions-50", "ms_each", "ms", is_less=True),
        row("… processes", "sessions-50", "processes", "", is_less=True),
        row("`sandbox-agent --help`", "commands", "help_ms", "ms", (80, None), is_less=True),
        row("`sandbox-agent --version`", "commands", "version_ms", "ms", (80, None), is_less=True),
        row("`sandbox-agent agents list`", "commands", "agents_list_ms", "ms", (200, None), is_less=True),
        row("`sandbox-agent run --agent mock hello`", "commands", "run_ms", "ms", (800, None), is_less=True),
        row("`from sandbox_agent import SandboxAgent`", "commands", "import_ms", "ms", (90, None), is_less=True),
        row("first event of the built-in agent, after a start", "first", "event_ms", "ms", is_less=True),
        row("… end of its first turn", "first", "ms", "ms", is_less=True),
        row("round trips over a WebSocket, one client in Python", "websocket", "rate", "req/s"),
        row("load a session of 10,000 events", "history-10000", "ms", "ms", is_less=True),
        row("load a session of 100,000 events", "history-100000", "ms", "ms", is_less=True),
        row("`session/list` with 10,000 sessions", "list-10000", "ms", "ms", is_less=True),
        row("500 sessions at once, 200 events each", "flood-500", "rate", "events/s"),
        row("2,000 idle streams: memory for each", "idle-2000", "kb_each", "KB", is_less=True),
        row("… processors in use while nothing happens", "idle-2000", "cpu_share", "", is_less=True),
        row("one session, 100 clients that read all of it", "audience-100", "rate", "events/s"),
        row("… lost", "audience-100", "lost_share", "%", (0, None), is_less=True),
    ]
