"""Named tokens: a file in the data directory with their hashes, and who holds them as the file says now."""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from sandbox_agent.core.users import Right, User
from sandbox_agent.errors import ConfigError, Conflict, InvalidParams, NotFound

_log = logging.getLogger(__name__)
FILE = "tokens.json"
MAX_TOKENS = 1000
_MAX_BYTES = 1 << 20
_PREFIX = "sat_"
"""So that tools which look for leaked secrets can find ours."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")


class NamedToken(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is kept of a token. It is 256 random bits, so a plain hash of it cannot be reversed."""

    name: str
    right: Literal["read", "prompt", "admin"]
    sha256: str
    created: float
    expires: float | None = None

    @property
    def user(self) -> User:
        return User(self.name, Right[self.right.upper()], self.sha256[:16], self.expires)


class _Saved(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    version: Literal[1] = 1
    tokens: list[NamedToken] = []


class TokenFile:
    """Changed by `sandbox-agent tokens`, read by servers. Each change is whole or did not happen."""

    def __init__(self, data_dir: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = data_dir / FILE
        self._clock = clock

    def read(self) -> list[NamedToken]:
        """Raises ConfigError for a file that cannot be understood; one that is not there has none."""
        try:
            with self.path.open("rb") as file:
                content = file.read(_MAX_BYTES + 1)
            if len(content) > _MAX_BYTES:
                raise ConfigError(f"{str(self.path)!r} is larger than {_MAX_BYTES} bytes")
            return msgspec.json.decode(content, type=_Saved).tokens
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"{str(self.path)!r} cannot be read: {error.strerror}") from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ConfigError(f"{str(self.path)!r} is damaged: {error}") from None

    def add(self, name: str, right: Right, *, expires: float | None = None) -> str:
        """The new token, which is shown this once. Raises InvalidParams, Conflict."""
        if not _NAME.fullmatch(name):
            raise InvalidParams(
                f"invalid name {name!r}: use up to 64 letters, digits and . _ @ + -, beginning with a letter or digit"
            )
        token = _PREFIX + secrets.token_urlsafe(32)
        word: Literal["read", "prompt", "admin"] = right.word  # type: ignore[assignment]
        with self._changing() as tokens:
            if any(known.name == name for known in tokens):
                raise Conflict(f"there is a token named {name!r} already; revoke it first")
            if len(tokens) >= MAX_TOKENS:
                raise Conflict(f"token limit ({MAX_TOKENS}) reached; revoke one first")
            made = NamedToken(
                name=name, right=word, sha256=_digest(token.encode()), created=self._clock(), expires=expires
            )
            tokens.append(made)
        return token

    def revoke(self, name: str) -> None:
        """Raises NotFound."""
        with self._changing() as tokens:
            kept = [known for known in tokens if known.name != name]
            if len(kept) == len(tokens):
                raise NotFound(f"no token named {name!r}")
            tokens[:] = kept

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[NamedToken]]:
        """The tokens, to be changed; whoever else wants to waits. Raises ConfigError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"{str(self.path.parent)!r} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tokens = self.read()
            yield tokens
            self._write(tokens)
        finally:
            os.close(lock)

    def _write(self, tokens: list[NamedToken]) -> None:
        beside = self.path.with_suffix(f".{secrets.token_hex(4)}.new")
        content = msgspec.json.format(msgspec.json.encode(_Saved(tokens=tokens)), indent=2)
        try:
            written = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(written, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise ConfigError(f"{str(self.path)!r} cannot be written: {error.strerror}") from None


class NamedTokens:
    """Who holds which token, as the file says at this moment. Without a file nobody does."""

    def __init__(self, file: TokenFile | None, *, clock: Callable[[], float] = time.time) -> None:
        """Raises ConfigError."""
        self._file = file
        self._clock = clock
        self._stamp = _NEVER if file is None else _stamp(file.path)
        self._holders: dict[User, bytes] = {} if file is None else _holders(file.read())

    @property
    def exist(self) -> bool:
        """Whether there are any, or were: the file stays when the last one is revoked."""
        return self._stamp != _NEVER

    def find(self, token: bytes) -> User | None:
        """Takes as long whichever token it is compared with, and however much of it is right."""
        self.refresh()
        digest = _digest(token).encode()
        found = None
        for user, expected in self._holders.items():
            if hmac.compare_digest(digest, expected):
                found = user
        return found if found is not None and self._is_in_time(found) else None

    def is_current(self, user: User) -> bool:
        """Whether a token that was good still is."""
        if user.name is None:
            return True
        self.refresh()
        return user in self._holders and self._is_in_time(user)

    def refresh(self) -> None:
        """Look at the file, and read it if it has changed. One that cannot be read lets nobody in."""
        if self._file is None:
            return
        stamp = _stamp(self._file.path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._holders = _holders(self._file.read())
        except ConfigError as error:
            self._holders = {}
            _log.error("named tokens are refused: %s", error.detail)

    def _is_in_time(self, user: User) -> bool:
        return user.until is None or user.until > self._clock()


_NEVER = (0, 0, 0)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Differs whenever the file has been replaced."""
    try:
        found = path.stat()
    except OSError:
        return _NEVER
    return found.st_ino, found.st_mtime_ns, found.st_size


def _holders(tokens: list[NamedToken]) -> dict[User, bytes]:
    return {token.user: token.sha256.encode() for token in tokens}


def _digest(token: bytes) -> str:
    return sha256(token).hexdigest()
