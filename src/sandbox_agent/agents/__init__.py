"""Which agents there are, and how each is launched and installed."""

from sandbox_agent.agents.catalog import Catalog, CustomAgent

__all__ = ["Catalog", "CustomAgent"]
