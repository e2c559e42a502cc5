"""What OpenCode wants to know of a session, a message and a command: the members that its clients cannot do without."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox_agent.core.json_values import Object, as_object, as_text
from sandbox_agent.history.opencode.telling import milliseconds


@dataclass(frozen=True, slots=True)
class SessionView:
    """The session that is folded: its id in OpenCode's words, what its ids are made from, its agent and directory."""

    session_id: str
    seed: str
    agent: str
    directory: str


def user_message(view: SessionView, message_id: str, time: float, model: str, mode: str) -> Object:
    return {
        "id": message_id,
        "sessionID": view.session_id,
        "role": "user",
        "time": {"created": milliseconds(time)},
        "agent": mode,
        "model": {"providerID": view.agent, "modelID": model},
    }


def assistant_message(view: SessionView, message_id: str, parent_id: str, time: float, model: str, mode: str) -> Object:
    """One that has just begun."""
    return {
        "id": message_id,
        "sessionID": view.session_id,
        "role": "assistant",
        "time": {"created": milliseconds(time)},
        "parentID": parent_id,
        "modelID": model,
        "providerID": view.agent,
        "mode": mode,
        "agent": mode,
        "path": {"cwd": view.directory, "root": view.directory},
        "cost": 0,
        "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    }


def slash_command(command: Object) -> Object:
    name, hint = as_text(command.get("name")), as_object(command.get("input")).get("hint")
    made = {"name": name, "description": as_text(command.get("description")), "template": f"/{name} $ARGUMENTS"}
    return {**made, "source": "command", "hints": ["$ARGUMENTS"] if hint else []}
