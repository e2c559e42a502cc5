"""What every door reads from the first message of a client: its params and the agent it wants."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import InvalidParams
from sandbox_agent.http.asgi.problems import Scope


def read_params(raw: bytes) -> dict[str, Any]:
    """The params of `initialize`. Raises InvalidParams."""
    try:
        return msgspec.json.decode(frames.params_of(raw), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidParams(f"params of initialize: {error}") from None


def query(scope: Scope, name: str) -> str | None:
    """One value from the query string; None if it is absent or empty. Raises InvalidParams when given twice."""
    given: bytes = scope["query_string"]
    found = parse_qs(given.decode("latin-1")).get(name)
    if not found:
        return None
    if len(found) > 1:
        raise InvalidParams(f"query parameter {name} is there {len(found)} times")
    return found[0]


def agent_in_meta(params: dict[str, Any]) -> AgentId | None:
    """The agent named in `params._meta["sandboxagent.dev"].agent`."""
    meta = params.get("_meta")
    ours = meta.get(META) if isinstance(meta, dict) else None
    agent = ours.get("agent") if isinstance(ours, dict) else None
    return AgentId(agent) if isinstance(agent, str) and agent else None


def wanted_agent(scope: Scope, params: dict[str, Any], default: str | None) -> AgentId:
    """From `?agent=`, from `_meta`, or the server's default. Raises InvalidParams when there is none."""
    agent = query(scope, "agent") or agent_in_meta(params) or default
    if not agent:
        raise InvalidParams(f'name an agent: ?agent=, params._meta["{META}"].agent, or the setting default_agent')
    return AgentId(agent)
