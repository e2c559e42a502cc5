"""What the command's exit codes mean, and what to do about each error."""

from __future__ import annotations

import os

from sandbox_agent.errors import (
    AgentNotInstalled,
    ConfigError,
    ConnectionLost,
    InvalidParams,
    NotFound,
    RequestFailed,
    SandboxAgentError,
    StoreError,
    Unauthorized,
    UnknownAgent,
    UnknownSession,
    UntrustedCertificate,
)

FAILED = 1
MISUSE = 2
UNREACHABLE = 3
UNAUTHORIZED = 4
NOT_FOUND = 5
INTERRUPTED = 130
_AUTH_REQUIRED = -32000

STOP_CODES = {"end_turn": 0, "refusal": 10, "max_tokens": 11, "max_turn_requests": 12, "cancelled": INTERRUPTED}
OTHER_STOP = 13
UNASKED = 14
TIMED_OUT = 124

MEANINGS = {
    0: "success",
    FAILED: "the server or the agent reported an error",
    MISUSE: "invalid usage, configuration or data directory",
    UNREACHABLE: "cannot connect to the server",
    UNAUTHORIZED: "the access token is missing or invalid",
    NOT_FOUND: "no such agent, session, file or connection",
    10: "`run`: the agent refused to answer",
    11: "`run`: the token limit was reached",
    12: "`run`: the limit of model requests per turn was reached",
    OTHER_STOP: "`run`: the turn ended for another reason",
    UNASKED: "`run`: a permission request was rejected because there was no terminal to ask at; see `--approve`",
    TIMED_OUT: "`run`: the turn was cancelled after `--timeout`",
    INTERRUPTED: "cancelled, for example with Ctrl-C",
}

_CODES: tuple[tuple[type[SandboxAgentError], int], ...] = (
    (ConnectionLost, UNREACHABLE),
    (UntrustedCertificate, UNREACHABLE),
    (Unauthorized, UNAUTHORIZED),
    (NotFound, NOT_FOUND),
    (InvalidParams, MISUSE),
    (ConfigError, MISUSE),
    (StoreError, MISUSE),
)
_NEXT_STEPS: tuple[tuple[type[SandboxAgentError], str], ...] = (
    (ConnectionLost, "start a server with `sandbox-agent daemon start`, or give another address with --endpoint"),
    (UntrustedCertificate, "name the authority that issued it: --ca-file FILE, SANDBOX_AGENT_CA_FILE or SSL_CERT_FILE"),
    (Unauthorized, "pass the server's token with --token or SANDBOX_AGENT_TOKEN"),
    (UnknownAgent, "see `sandbox-agent agents list`"),
    (UnknownSession, "see `sandbox-agent sessions list`"),
    (AgentNotInstalled, "install it with `sandbox-agent install-agent NAME`"),
)


def exit_code(error: SandboxAgentError) -> int:
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)


def stop_code(stop_reason: str | None) -> int:
    return STOP_CODES.get(stop_reason or "", OTHER_STOP)


def next_step(error: SandboxAgentError) -> str | None:
    """What to do about it: what the agent or the server says in `hint`, else what always helps with such errors."""
    if isinstance(error, RequestFailed):
        return _late_key(error) or error.hint
    return next((step for kind, step in _NEXT_STEPS if isinstance(error, kind)), None)


def _late_key(error: RequestFailed) -> str | None:
    """A key that is set here, but was not when the server started: agents see the server's environment only."""
    data = error.data["error"].get("data")
    names = data.get("env") if error.remote_code == _AUTH_REQUIRED and isinstance(data, dict) else None
    late = [name for name in names if os.environ.get(name)] if isinstance(names, list) else []
    if not late:
        return None
    return (
        f"{late[0]} is set here, but agents get it from the server, which was started without it or has another one: "
        "start the server again with it (`sandbox-agent daemon stop`, then `sandbox-agent daemon start`)"
    )
