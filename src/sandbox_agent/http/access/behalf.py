"""For whom another node of a cluster asks: a right and a name. The header counts only with the cluster's token."""

from __future__ import annotations

from urllib.parse import quote, unquote

from sandbox_agent.core.users import OWNER, Right, User

ON_BEHALF = b"x-sandbox-agent-user"


def describe(user: User) -> bytes:
    return f"{user.right.word} {quote(user.name or '')}".rstrip().encode()


def read_user(said: bytes) -> User | None:
    """None for what no node says."""
    right, _, name = said.decode("latin-1").partition(" ")
    found = Right.__members__.get(right.upper())
    if found is None:
        return None
    return User(unquote(name), found) if name else OWNER if found is Right.ADMIN else User(None, found)
