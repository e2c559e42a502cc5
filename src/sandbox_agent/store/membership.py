"""What a server is among those that share its store."""

from __future__ import annotations

import msgspec


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    node_id: str | None = None
    """None: the one that is kept in the data directory, made at the first start."""
    url: str = ""
    """Where the other nodes reach this one; empty: they do not."""
    lease: float = 30.0
    """Seconds for which its sessions stay its own without a word from it."""
    takes_over: bool = True
    """Whether it goes on with sessions of nodes that are gone."""
