"""What the command's exit codes mean, and what to do about each error."""

from __future__ import annotations

from sandbox_agent.errors import (
    AgentNotInstalled,
    ConfigError,
    ConnectionLost,
    InvalidParams,
    NotFound,
    SandboxAgentError,
    StoreError,
    Unauthorized,
    UnknownAgent,
    UnknownSession,
)

FAILED = 1
MISUSE = 2
UNREACHABLE = 3
UNAUTHORIZED = 4
NOT_FOUND = 5
INTERRUPTED = 130

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
    (Unauthorized, UNAUTHORIZED),
    (NotFound, NOT_FOUND),
    (InvalidParams, MISUSE),
    (ConfigError, MISUSE),
    (StoreError, MISUSE),
)
_NEXT_STEPS: tuple[tuple[type[SandboxAgentError], str], ...] = (
    (ConnectionLost, "start a server with `sandbox-agent daemon start`, or give another address with --endpoint"),
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
    return next((step for kind, step in _NEXT_STEPS if isinstance(error, kind)), None)
