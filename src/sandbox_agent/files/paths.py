"""Rules for requested paths, decided on the text alone: no disk is touched here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import PurePath

from sandbox_agent.archives.rules import MAX_NAME_BYTES, MAX_PATH_BYTES, Parts, clip
from sandbox_agent.errors import Forbidden, InvalidParams


class Standing(Enum):
    INSIDE = "a root, or beneath one"
    ABOVE = "an ancestor of a root: may be passed through, never used"
    OUTSIDE = "neither"


def absolute(path: str, base: PurePath) -> str:
    """`path` made absolute against `base`, spelled as it was asked: `..` stays, since only the disk knows."""
    check_path(path)
    joined = path if path.startswith("/") else f"{base}/{path}"
    if joined is not path:
        check_path(joined)
    return "/" + "/".join(split(joined))


def check_path(path: str) -> None:
    if not path:
        raise InvalidParams("the path is empty", path=path)
    shown = clip(path)
    if "\0" in path:
        raise InvalidParams(f"the path {shown} has a NUL character in it")
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        raise InvalidParams(f"the path {shown} is not valid Unicode") from None
    if len(encoded) > MAX_PATH_BYTES:
        raise InvalidParams(f"the path {shown} has {len(encoded)} bytes; at most {MAX_PATH_BYTES} are allowed")
    if len(encoded) > MAX_NAME_BYTES:
        for name in encoded.split(b"/"):
            if len(name) > MAX_NAME_BYTES:
                raise InvalidParams(f"a name in {shown} has {len(name)} bytes; at most {MAX_NAME_BYTES} are allowed")


def split(path: str) -> Parts:
    """The components of a path, without empty ones and single dots."""
    return tuple(name for name in path.split("/") if name not in ("", "."))


def join(parts: Iterable[str]) -> str:
    return "/" + "/".join(parts)


class Roots:
    """The directories that confine everything. Pairs of (as configured, as it really is); none means `/`."""

    def __init__(self, pairs: Sequence[tuple[PurePath, PurePath]] = ()) -> None:
        self.is_confining = bool(pairs)
        chosen = pairs or [(PurePath("/"), PurePath("/"))]
        self._real = tuple(dict.fromkeys(split(str(real)) for _, real in chosen))
        self._aliases = tuple((split(str(spelled)), split(str(real))) for spelled, real in chosen)

    @property
    def first(self) -> str:
        return join(self._real[0])

    def canonical(self, parts: Parts) -> Parts:
        """`parts` with a root's configured spelling exchanged for the real one."""
        for spelled, real in self._aliases:
            if spelled != real and parts[: len(spelled)] == spelled:
                return real + parts[len(spelled) :]
        return parts

    def standing(self, parts: Sequence[str]) -> Standing:
        place = tuple(parts)
        if self.root_of(place) is not None:
            return Standing.INSIDE
        return Standing.ABOVE if self.holds_root(place) else Standing.OUTSIDE

    def root_of(self, parts: Parts) -> Parts | None:
        """The root that `parts` lies in or is."""
        return next((root for root in self._real if parts[: len(root)] == root), None)

    def holds_root(self, parts: Parts) -> bool:
        """Whether `parts` is a root or has one beneath it, so that it must be neither moved nor deleted."""
        return any(root[: len(parts)] == parts for root in self._real)

    def refuse(self, asked: str) -> Forbidden:
        return Forbidden(f"{clip(asked)} is outside the directories that this server may touch")
