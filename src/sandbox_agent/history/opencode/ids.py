"""OpenCode's ids, made from a session's history: whoever makes them again makes the same.

An id is a prefix, 12 hexadecimal digits that ascend with time (those of sessions descend), and some base62."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, Literal

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.history.opencode.telling import milliseconds

Kind = Literal["msg", "prt", "per", "que"]

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_TAIL = 14
_SPACE = 1 << 48
_PER_MILLISECOND = 4096
_SKEW = 24 * 3600 * 1000 * _PER_MILLISECOND
"""How far a client's clock may be from ours for its own message ids to be taken."""
_OWN_MESSAGE = re.compile(r"msg_([0-9a-f]{12})[0-9A-Za-z]{1,40}\Z")
_SESSION = re.compile(r"ses_[0-9a-f]{12}([0-9A-Za-z]{1,1400})\Z")


class Ids:
    """The ids of one session's messages, parts and requests, each greater than all before."""

    def __init__(self, seed: str) -> None:
        """`seed` keeps the ids of sessions apart that say the same at the same time."""
        self._seed = seed
        self._last = 0

    def next(self, kind: Kind, time: float) -> str:
        self._last = max(self._last + 1, _stamp(time))
        digest = blake2b(f"{self._seed}:{self._last}".encode(), digest_size=11).digest()
        return f"{kind}_{self._last % _SPACE:012x}{_base62(int.from_bytes(digest))[-_TAIL:].rjust(_TAIL, '0')}"

    def adopt(self, given: Any, time: float) -> str | None:
        """A client's own id for its message, if it can stand between those before and after it."""
        match = _OWN_MESSAGE.match(given) if isinstance(given, str) else None
        if match is None:
            return None
        now = _stamp(time)
        ahead = (int(match[1], 16) - now + _SPACE // 2) % _SPACE - _SPACE // 2
        if abs(ahead) > _SKEW or now + ahead <= self._last:
            return None
        self._last = now + ahead
        return str(given)


def session_id(key: SessionKey, created: float) -> str:
    """A session's id: it holds the names of agent and session, so that nothing has to be kept to find them again."""
    newest_first = (_SPACE - 1) - _stamp(created) % _SPACE
    named = b"\x01" + f"{key.agent}\0{key.session}".encode()
    return f"ses_{newest_first:012x}{_base62(int.from_bytes(named))}"


def read_session_id(given: str) -> SessionKey | None:
    """The session that an id names; None if it names none. Whether it is there is another question."""
    match = _SESSION.match(given)
    if match is None:
        return None
    value = 0
    for digit in match[1]:
        value = value * 62 + _VALUES[digit]
    try:
        named = value.to_bytes((value.bit_length() + 7) // 8)
        agent, mark, session = named[1:].decode().partition("\0")
    except UnicodeDecodeError:
        return None
    is_whole = named[:1] == b"\x01" and mark == "\0" and bool(agent) and bool(session)
    return SessionKey(AgentId(agent), SessionId(session)) if is_whole else None


def event_id(number: int, time: float) -> str:
    """Events are not kept, so that their ids only have to differ and ascend."""
    return f"evt_{(_stamp(time) + number % _PER_MILLISECOND) % _SPACE:012x}{_base62(number).rjust(_TAIL, '0')}"


def _stamp(time: float) -> int:
    return milliseconds(time) * _PER_MILLISECOND


def _base62(value: int) -> str:
    digits: list[str] = []
    while value:
        value, digit = divmod(value, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)) or "0"
