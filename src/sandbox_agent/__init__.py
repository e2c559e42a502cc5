"""Run coding agents remotely. `SandboxAgent` is the entry to the Python SDK; it is imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox_agent.version import __version__

if TYPE_CHECKING:
    from sandbox_agent.client import BlockingSandboxAgent, SandboxAgent

__all__ = ["BlockingSandboxAgent", "SandboxAgent", "__version__"]


def __getattr__(name: str) -> Any:
    if name in {"BlockingSandboxAgent", "SandboxAgent"}:
        from sandbox_agent import client  # noqa: PLC0415

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
