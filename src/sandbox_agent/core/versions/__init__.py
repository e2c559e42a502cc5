"""ACP version 1 and 2: one table of pairs, read in both directions. No IO; decoded JSON in, decoded JSON out.

The table is in `kinds` (updates), `calls` (methods) and `capabilities` (`initialize`); `pairs` has the words that it is
written in. Nothing here raises on what a peer sent: what cannot be understood passes unchanged. Arguments are never
changed in place, but parts of them may be shared with what is returned. What one version has and the other has not
travels in `_meta["sandboxagent.dev"]`, so that the way back restores it.
"""

from sandbox_agent.core.versions.handshake import (
    UNSUPPORTED_VERSION,
    chosen_version,
    initialize_params,
    initialize_request,
    initialize_result,
    spoken_version,
    supported_by,
    unsupported_version,
)
from sandbox_agent.core.versions.messages import ask, ask_result, request, result
from sandbox_agent.core.versions.turns import HeldPrompt, idle_answer, idle_update
from sandbox_agent.core.versions.updates import UpdateTranslator
from sandbox_agent.core.versions.version import LATEST, Version

__all__ = [
    "LATEST",
    "UNSUPPORTED_VERSION",
    "HeldPrompt",
    "UpdateTranslator",
    "Version",
    "ask",
    "ask_result",
    "chosen_version",
    "idle_answer",
    "idle_update",
    "initialize_params",
    "initialize_request",
    "initialize_result",
    "request",
    "result",
    "spoken_version",
    "supported_by",
    "unsupported_version",
]
