"""A session's history as OpenCode's messages and parts, and as the events that tell of them. No IO.

`SessionFold` makes events out of entries; `Messages` makes messages out of events. Whoever reloads a session runs both,
whoever follows it live the first alone: so that both see the same."""

from sandbox_agent.history.opencode.fold import SessionFold
from sandbox_agent.history.opencode.infos import SessionView
from sandbox_agent.history.opencode.messages import Messages
from sandbox_agent.history.opencode.telling import Told

__all__ = ["Messages", "SessionFold", "SessionView", "Told"]
