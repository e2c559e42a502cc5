"""One table: what each ACP method is to us."""

from __future__ import annotations

import enum
from typing import NamedTuple


class ClientCall(enum.Enum):
    """What a request from a client asks of the server."""

    INITIALIZE = "answered from the handshake that the server made"
    LIST = "answered from the server-wide inventory"
    CREATE = "goes to the agent; its answer names a new session, to which the client is attached"
    LOAD = "replays a session to the client and attaches it, waking the session if need be"
    RESUME = "attaches the client to a session without a replay, waking it if need be"
    FORK = "goes to a live session; its answer names a new one"
    PROMPT = "one at a time per session, others queue"
    CONFIGURE = "sets model, mode or option, in the spelling that the agent knows"
    FINISH = "ends a session at the agent; done by the server where the agent has no such method"
    SERVER = "an extension of ours: answered by the server"
    SESSION = "goes to the agent of the session that it names"
    AGENT = "goes to the connection's agent"

    __hash__ = object.__hash__  # an Enum's own is written in Python, and each request is looked up by this


class Method(NamedTuple):
    call: ClientCall
    may_repeat: bool
    """Whether a client that does not know if the server has its request may send it again."""


METHODS: dict[str, Method] = {
    "initialize": Method(ClientCall.INITIALIZE, may_repeat=True),
    "authenticate": Method(ClientCall.AGENT, may_repeat=False),
    "logout": Method(ClientCall.AGENT, may_repeat=True),
    "session/new": Method(ClientCall.CREATE, may_repeat=False),
    "session/load": Method(ClientCall.LOAD, may_repeat=True),
    "session/resume": Method(ClientCall.RESUME, may_repeat=True),
    "session/fork": Method(ClientCall.FORK, may_repeat=False),
    "session/list": Method(ClientCall.LIST, may_repeat=True),
    "session/prompt": Method(ClientCall.PROMPT, may_repeat=True),  # under its turnId, which clients always give
    "session/close": Method(ClientCall.FINISH, may_repeat=True),
    "session/delete": Method(ClientCall.FINISH, may_repeat=True),
    "session/set_mode": Method(ClientCall.CONFIGURE, may_repeat=True),
    "session/set_model": Method(ClientCall.CONFIGURE, may_repeat=True),
    "session/set_config_option": Method(ClientCall.CONFIGURE, may_repeat=True),
    "_sandboxagent/fs/move": Method(ClientCall.SERVER, may_repeat=False),
    "_sandboxagent/fs/delete_entry": Method(ClientCall.SERVER, may_repeat=False),
}
"""Requests of clients. Our other extensions are all answered by the server, and may be repeated."""

EXTENSION_PREFIX = "_sandboxagent/"
CANCEL_REQUEST = "$/cancel_request"
SESSION_CANCEL = "session/cancel"
PERMISSION = "session/request_permission"
QUESTION = "_sandboxagent/session/request_question"
ELICITATION = "elicitation/create"
PROMPT = "session/prompt"
UPDATE = "session/update"

SESSION_STARTED = "_sandboxagent/session/started"
SESSION_ENDED = "_sandboxagent/session/ended"
ITEM_COMPLETED = "_sandboxagent/item/completed"
RUNTIME_ERROR = "_sandboxagent/error"
UNPARSED = "_sandboxagent/agent/unparsed"
TERMINAL_OUTPUT = "_sandboxagent/terminal/output"
STREAM_GAP = "_sandboxagent/stream/gap"

HOST_METHODS: dict[str, tuple[str, ...]] = {
    "fs/read_text_file": ("fs", "readTextFile"),
    "fs/write_text_file": ("fs", "writeTextFile"),
    "terminal/create": ("terminal",),
    "terminal/output": ("terminal",),
    "terminal/wait_for_exit": ("terminal",),
    "terminal/kill": ("terminal",),
    "terminal/release": ("terminal",),
}
"""Requests from the agent that the server serves itself when no attached client claims the capability."""

CLAIMED: dict[str, tuple[str, ...]] = {ELICITATION: ("elicitation",), **HOST_METHODS}
"""Requests from the agent that only a client with this capability can answer. Others any client can."""

UNLIMITED = frozenset({"session/prompt", "_sandboxagent/agent/install"})
"""Calls without a wall-clock limit: a turn or an install takes as long as it takes."""


def goes_to_agent(method: str) -> bool:
    """Whether a request needs the agent at all; others the server answers by itself."""
    return client_call(method, has_session=True) not in _BY_THE_SERVER


_BY_THE_SERVER = frozenset({ClientCall.INITIALIZE, ClientCall.LIST, ClientCall.SERVER})


def client_call(method: str, *, has_session: bool) -> ClientCall:
    """How to treat a request from a client. Unknown methods pass through."""
    known = METHODS.get(method)
    if known is not None:
        return known.call
    if method.startswith(EXTENSION_PREFIX):
        return ClientCall.SERVER
    return ClientCall.SESSION if has_session else ClientCall.AGENT


def may_repeat(method: str) -> bool:
    """Whether sending the request twice does no harm. Of methods that we do not know nobody can say."""
    known = METHODS.get(method)
    return known.may_repeat if known is not None else method.startswith(EXTENSION_PREFIX)
