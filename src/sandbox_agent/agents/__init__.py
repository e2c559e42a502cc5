"""Which agents there are, and how each is found, installed, verified and launched.

Names are imported when they are first used: most commands read the settings, and few install anything."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox_agent.agents.catalog import AgentListing, Catalog
    from sandbox_agent.agents.credentials import Credential, find_credentials
    from sandbox_agent.agents.custom import CustomAgent
    from sandbox_agent.agents.install import InstallResult, Progress, ProgressCallback
    from sandbox_agent.agents.plan import InstallWish
    from sandbox_agent.agents.shelf import Artifact

_HOMES = {
    "AgentListing": "catalog",
    "Artifact": "shelf",
    "Catalog": "catalog",
    "Credential": "credentials",
    "CustomAgent": "custom",
    "InstallResult": "install",
    "InstallWish": "plan",
    "Progress": "install",
    "ProgressCallback": "install",
    "find_credentials": "credentials",
}

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


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
