"""An agent's process as others read it, typed for the wire."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from sandbox_agent.core.lifecycle import State
from sandbox_agent.hub.agents.agent import Agent


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The agent's process. `stopped` is also one that has not been needed yet."""

    status: Literal["running", "stopped", "error"]
    uptime_ms: int | None
    restart_count: int
    last_error: str | None
    pid: int | None
    sessions: int


def server_status(agent: Agent | None) -> ServerStatus:
    if agent is None:
        return ServerStatus(status="stopped", uptime_ms=None, restart_count=0, last_error=None, pid=None, sessions=0)
    state, process = agent.lifecycle.state, agent.process
    is_running = state is State.RUNNING and process is not None
    return ServerStatus(
        status="running" if is_running else "error" if state is State.FAILED else "stopped",
        uptime_ms=int(process.uptime * 1000) if is_running and process is not None else None,
        restart_count=agent.lifecycle.restarts,
        last_error=agent.last_error,
        pid=process.pid if process is not None else None,
        sessions=sum(session.is_live for session in agent.sessions.values()),
    )


def capabilities(agent: Agent | None) -> dict[str, Any]:
    """What the agent said in its last `initialize`; nothing before its first start."""
    found = msgspec.json.decode(agent.handshake).get("agentCapabilities") if agent is not None else None
    return found if isinstance(found, dict) else {}


def stderr_lines(agent: Agent | None, tail: int) -> tuple[list[str], int]:
    """The last lines that the agent wrote to stderr, in this run or the one before, and how many there were."""
    summary = None
    if agent is not None:
        summary = agent.process.stderr.summary() if agent.process is not None else agent.last_stderr
    if summary is None:
        return [], 0
    kept = [*summary.head, *summary.tail]
    return kept[-tail:] if tail else [], summary.total_lines
