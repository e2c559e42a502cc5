"""The command `sandbox-agent`, thin over the server and the client."""

from sandbox_agent.cli.main import main

__all__ = ["main"]
