"""Which agents there are, and how each is found, installed, verified and launched."""

from sandbox_agent.agents.catalog import AgentListing, Catalog, CustomAgent
from sandbox_agent.agents.credentials import Credential, find_credentials
from sandbox_agent.agents.install import InstallResult, Progress, ProgressCallback
from sandbox_agent.agents.plan import InstallWish
from sandbox_agent.agents.shelf import Artifact

__all__ = [
    "AgentListing",
    "Artifact",
    "Catalog",
    "Credential",
    "CustomAgent",
    "InstallResult",
    "InstallWish",
    "Progress",
    "ProgressCallback",
    "find_credentials",
]
