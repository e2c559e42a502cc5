"""Commands of the earlier command line that are gone, each with what to use instead."""

from __future__ import annotations

REMOVED_COMMANDS = {
    "api agents list": "api v1 agents list",
    "api agents install": "api v1 agents install",
    "api agents modes": "api v1 agents show AGENT --config",
    "api agents models": "api v1 agents show AGENT --config",
    "api sessions list": "api v1 sessions list",
    "api sessions create": "run --agent AGENT",
    "api sessions send-message": "run --resume SESSION",
    "api sessions send-message-stream": "run --resume SESSION",
    "api sessions terminate": "sessions terminate SESSION",
    "api sessions events": "sessions events SESSION",
    "api sessions events-sse": "sessions attach SESSION",
    "api sessions reply-question": "sessions attach SESSION",
    "api sessions reject-question": "sessions attach SESSION",
    "api sessions reply-permission": "sessions attach SESSION",
    "api fs entries": "api v1 fs entries",
    "api fs read": "api v1 fs read",
    "api fs write": "api v1 fs write",
    "api fs delete": "api v1 fs delete",
    "api fs mkdir": "api v1 fs mkdir",
    "api fs move": "api v1 fs move",
    "api fs stat": "api v1 fs stat",
    "api fs upload-batch": "api v1 fs upload-batch",
}
"""Without `sandbox-agent` in front."""


def replacement(words: list[str]) -> tuple[str, str] | None:
    """The removed command that `words` begin with, and what to use instead. Options come after its name."""
    for length in range(len(words), 0, -1):
        command = " ".join(words[:length])
        if command in REMOVED_COMMANDS:
            return command, REMOVED_COMMANDS[command]
    return None
