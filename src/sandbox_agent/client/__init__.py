"""The Python SDK. Names are imported when they are first used: ACP's types take long to load."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox_agent.client.agents import Agents
    from sandbox_agent.client.asking import OpenRequest, PermissionRequest, QuestionRequest
    from sandbox_agent.client.blocking import BlockingSandboxAgent, BlockingSession
    from sandbox_agent.client.files import FileEntry, Files
    from sandbox_agent.client.processes import Output, Process, Processes, ProcessInfo, ProcessResult
    from sandbox_agent.client.sandbox import SandboxAgent, SearchResult, SessionInfo
    from sandbox_agent.client.session import HistoryEvent, Session
    from sandbox_agent.client.turn import Turn
    from sandbox_agent.client.updates import StreamGap, UnknownUpdate, Update, text_of

_HOMES = {
    "Agents": "agents",
    "BlockingSandboxAgent": "blocking",
    "BlockingSession": "blocking",
    "FileEntry": "files",
    "Files": "files",
    "HistoryEvent": "session",
    "OpenRequest": "asking",
    "Output": "processes",
    "PermissionRequest": "asking",
    "Process": "processes",
    "ProcessInfo": "processes",
    "ProcessResult": "processes",
    "Processes": "processes",
    "QuestionRequest": "asking",
    "SandboxAgent": "sandbox",
    "SearchResult": "sandbox",
    "Session": "session",
    "SessionInfo": "sandbox",
    "StreamGap": "updates",
    "Turn": "turn",
    "UnknownUpdate": "updates",
    "Update": "updates",
    "text_of": "updates",
}

__all__ = [
    "Agents",
    "BlockingSandboxAgent",
    "BlockingSession",
    "FileEntry",
    "Files",
    "HistoryEvent",
    "OpenRequest",
    "Output",
    "PermissionRequest",
    "Process",
    "ProcessInfo",
    "ProcessResult",
    "Processes",
    "QuestionRequest",
    "SandboxAgent",
    "SearchResult",
    "Session",
    "SessionInfo",
    "StreamGap",
    "Turn",
    "UnknownUpdate",
    "Update",
    "text_of",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
