"""An agent's processes as others read them, typed for the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from sandbox_agent.core import versions
from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.launch import Isolation
from sandbox_agent.core.lifecycle import State
from sandbox_agent.core.versions import Version
from sandbox_agent.hub.agents.agent import Agent
from sandbox_agent.hub.agents.handshake import capabilities_member
from sandbox_agent.hub.agents.processes import Tally


class ProcessStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A running process. `session` is the one that has it to itself; null where sessions share it."""

    pid: int
    session: str | None
    uptime_ms: int


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The agent's processes. `stopped` is also one that has not been needed yet.

    `pid` and `uptimeMs` are those of the process that has run longest; `restartCount` and `sessions` are of all."""

    status: Literal["running", "stopped", "error"]
    uptime_ms: int | None
    restart_count: int
    last_error: str | None
    pid: int | None
    sessions: int
    processes: list[ProcessStatus]
    protocol_version: int | None = None
    """The version of ACP that it speaks; null before its first start."""


def server_status(agents: Sequence[Agent], tally: Tally) -> ServerStatus:
    processes = sorted(_running(agents), key=lambda process: -process.uptime_ms)
    has_failed = any(agent.lifecycle.state is State.FAILED for agent in agents)
    last = max((agent for agent in agents if agent.last_error), key=lambda agent: agent.last_used, default=None)
    return ServerStatus(
        status="running" if processes else "error" if has_failed else "stopped",
        uptime_ms=processes[0].uptime_ms if processes else None,
        restart_count=tally.restarts,
        last_error=last.last_error if last is not None else None,
        pid=processes[0].pid if processes else next((a.process.pid for a in agents if a.process is not None), None),
        sessions=sum(session.is_live for agent in agents for session in agent.sessions.values()),
        processes=processes,
        protocol_version=next((int(agent.version) for agent in agents if agent.has_shaken_hands), None),
    )


_CARRIED = (
    "commandExecution errorEvents fileChanges itemStarted mcpTools permissions planMode questions reasoning "
    "sessionLifecycle status streamingDeltas textMessages toolCalls toolResults"
).split()
"""What clients of the earlier API ask for and get from every agent here, whichever of it the agent uses."""


def capabilities(agents: Sequence[Agent], isolation: Isolation) -> dict[str, Any]:
    """What the agent said in its last `initialize`, nothing before its first start; and the earlier API's booleans."""
    agent = next((agent for agent in agents if agent.has_shaken_hands), None)
    said = msgspec.json.decode(agent.handshake) if agent is not None else {}
    version = agent.version if agent is not None else Version.V1
    in_version_1 = as_object(versions.initialize_result(said, from_=version, to=Version.V1))
    prompt = as_object(as_object(in_version_1.get("agentCapabilities")).get("promptCapabilities"))
    earlier = {
        **dict.fromkeys(_CARRIED, True),
        "images": prompt.get("image") is True,
        "fileAttachments": prompt.get("embeddedContext") is True,
        "sharedProcess": isolation == "process",
    }
    return {**earlier, **as_object(said.get(capabilities_member(version)))}


def stderr_lines(agents: Sequence[Agent], tail: int) -> tuple[list[str], int]:
    """The last lines that the agent wrote to stderr, each process in its run or the one before, and how many in all."""
    kept: list[str] = []
    total = 0
    for agent in sorted(agents, key=lambda agent: agent.last_used):
        summary = agent.process.stderr.summary() if agent.process is not None else agent.last_stderr
        if summary is not None:
            kept += [*summary.head, *summary.tail]
            total += summary.total_lines
    return kept[-tail:] if tail else [], total


def _running(agents: Sequence[Agent]) -> list[ProcessStatus]:
    return [
        ProcessStatus(pid=agent.process.pid, session=agent.own_session, uptime_ms=int(agent.process.uptime * 1000))
        for agent in agents
        if agent.is_ready and agent.process is not None
    ]
