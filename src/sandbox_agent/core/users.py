"""Who a client is, what it may do, and how what it did is signed in the record."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.core.frames import META
from sandbox_agent.core.methods import CANCEL_REQUEST, EXTENSION_PREFIX
from sandbox_agent.errors import Forbidden


class Right(enum.IntEnum):
    """Each includes those before it."""

    READ = 1
    PROMPT = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


class User(NamedTuple):
    """Who holds a token. Two tokens under one name are two users, so that a new one does not revive an old one."""

    name: str | None = None
    """None for the server's own token, and where no token is needed."""
    right: Right = Right.ADMIN
    token: str = ""
    """Tells tokens of one name apart; it is not the token."""
    until: float | None = None
    """When the token expires, in seconds since the epoch."""

    @property
    def may_prompt(self) -> bool:
        return self.right >= Right.PROMPT

    def require(self, right: Right, what: str) -> None:
        """Raises Forbidden."""
        if self.right < right:
            raise Forbidden(
                f"{what} needs the right {right.word!r}; the token {self.name!r} has {self.right.word!r}",
                requiredRight=right.word,
            )


OWNER = User()

_OURS: dict[Right, tuple[str, ...]] = {
    Right.READ: (
        "agent/list",
        "feed/follow",
        "feed/unfollow",
        "session/detach",
        "session/events",
        "session/follow",
        "session/get",
        "session/list",
        "session/list_models",
        "session/search",
    ),
    Right.PROMPT: (
        "fs/delete_entry",
        "fs/list_entries",
        "fs/mkdir",
        "fs/move",
        "fs/read_file",
        "fs/stat",
        "fs/upload_batch",
        "fs/write_file",
        "process/delete",
        "process/get",
        "process/get_config",
        "process/input",
        "process/kill",
        "process/list",
        "process/logs",
        "process/resize",
        "process/run",
        "process/start",
        "process/stop",
        "session/set_metadata",
        "session/take_back",
        "session/terminate",
    ),
    Right.ADMIN: ("agent/install", "process/set_config"),
}
METHOD_RIGHTS: dict[str, Right] = {
    "initialize": Right.READ,
    "session/list": Right.READ,
    "session/load": Right.READ,
    "session/resume": Right.READ,
    CANCEL_REQUEST: Right.READ,  # of one's own requests
    "authenticate": Right.ADMIN,
    "logout": Right.ADMIN,
    "session/delete": Right.ADMIN,  # who did what must not be for those to delete who did it
    **{EXTENSION_PREFIX + name: right for right, names in _OURS.items() for name in names},
}


def right_for(method: str) -> Right:
    """What a message of a client needs. What agents know and we do not is for those who may prompt."""
    known = METHOD_RIGHTS.get(method)
    if known is not None:
        return known
    return Right.ADMIN if method.startswith(EXTENSION_PREFIX) else Right.PROMPT


def signed(line: bytes, name: str | None) -> bytes:
    """A message of a client as the history keeps it: with the name of the user, if there is one.

    An answer that is an error has no place for it."""
    if name is None:
        return line
    members = frames.members(line)
    where = "params" if "method" in members else "result"
    try:
        held = frames.members(bytes(members[where])) if where in members else {}
        meta = frames.members(bytes(held["_meta"])) if "_meta" in held else {}
        ours: dict[str, Any] = dict(frames.members(bytes(meta[META]))) if META in meta else {}
    except msgspec.ValidationError:  # an array, or a `_meta` that is no object: it is kept as it was said
        return line
    if where == "result" and where not in members:
        return line
    ours["user"] = name
    held_now: dict[str, Any] = {**held, "_meta": {**meta, META: ours}}
    return frames.one_line(frames.to_json({**members, where: held_now}))
