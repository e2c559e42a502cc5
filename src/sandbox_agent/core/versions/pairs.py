"""The words in which the table is written: how a value of one version reads in the other, in both directions.

A pair is asked for either direction with `read(value, to)`. `Pair.read` is exact: it looks whether the way back gives
`value` again, and keeps what it would miss in `_meta["sandboxagent.dev"]` under the name of the version that has it:

    "_meta": {"sandboxagent.dev": {"v2": {"fields": {"status": "paused"}, "absent": ["title"]}}}

says: in version 2 the status is `paused`, and there is no title. So the table only has to say what is best to show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

from sandbox_agent.core.frames import META
from sandbox_agent.core.versions.version import Object, Version

ABSENT: Any = object()
_KEYS = {Version.V1: "v1", Version.V2: "v2"}


class Reading(Protocol):
    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        """`value` in version `to`. What is not of the expected type comes back as it is."""


class Same:
    """The same in both versions."""

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        return value


SAME = Same()


class Each(NamedTuple):
    """A list of things."""

    item: Reading

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        if not isinstance(value, list):
            return value
        return [self.item.read(item, to, is_exact=is_exact) for item in value]


class Named(NamedTuple):
    """An object whose members are all of one kind, under any name."""

    item: Reading

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: self.item.read(item, to, is_exact=is_exact) for name, item in value.items()}


class Marker:
    """A boolean in version 1; in version 2 an object that is there or not."""

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        if to is Version.V1:
            return value is not None and value is not False
        return {} if value is True else value if isinstance(value, dict) else None


MARKER = Marker()


class Closed:
    """One of few words in version 1; any word in version 2, which is shown as the nearest of them."""

    def __init__(self, words: str, *, otherwise: str, nearest: Mapping[str, str] | None = None) -> None:
        self._words = frozenset(words.split())
        self._nearest = nearest or {}
        self._otherwise = otherwise

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        if to is Version.V2 or not isinstance(value, str) or value in self._words:
            return value
        return self._nearest.get(value, self._otherwise)


class Pair:
    """An object in both versions. What `plain` gives up is kept, and put back on the way back."""

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        if not isinstance(value, dict):
            return value
        is_kept, value, kept = unpack(value, to)
        there = self.plain(value, to, is_exact=is_exact)
        if is_kept:
            return restore(there, kept)
        if not is_exact:
            return there
        other = Version.V1 if to is Version.V2 else Version.V2
        return self.keeping(there, value, other)

    def plain(self, value: Object, to: Version, *, is_exact: bool) -> Object:
        """The object in version `to`, with nothing kept at this level; what is inside is exact or not."""
        raise NotImplementedError

    def keeping(self, there: Object, original: Object, version: Version) -> Object:
        """`there`, with all of `original` (of `version`) kept in it that reading it back does not give."""
        back = self.plain(there, version, is_exact=False)
        if back != original:  # it may be that something inside had been kept before, and is only kept again if exact
            back = self.plain(there, version, is_exact=True)
        return keep(there, original, back, version)


class Field(NamedTuple):
    """A member's name in either version, how its value reads, and what stands in where only one version requires it."""

    v1: str
    v2: str = ""
    reading: Reading = SAME
    v1_needs: Any = ABSENT
    v2_needs: Any = ABSENT


class Record(Pair):
    """An object with these fields; others pass. `v2_says` are members that version 1 leaves unsaid, `v1_bare` those
    that version 1 does not let be null."""

    def __init__(self, *fields: Field, v2_says: Mapping[str, str] | None = None, v1_bare: Collection[str] = ()) -> None:
        self._names = {
            Version.V1: {f.v2 or f.v1: (f.v1, f.reading) for f in fields},
            Version.V2: {f.v1: (f.v2 or f.v1, f.reading) for f in fields},
        }
        self._needs = {
            Version.V1: [(f.v1, f.v1_needs) for f in fields if f.v1_needs is not ABSENT],
            Version.V2: [(f.v2 or f.v1, f.v2_needs) for f in fields if f.v2_needs is not ABSENT],
        }
        self._v2_says = v2_says or {}
        self._v1_bare = v1_bare

    def plain(self, value: Object, to: Version, *, is_exact: bool) -> Object:
        names = self._names[to]
        there: Object = {}
        for name, member in value.items():
            if name in names:
                renamed, reading = names[name]
                there[renamed] = member if reading is SAME else reading.read(member, to, is_exact=is_exact)
            else:
                there.setdefault(name, member)
        if to is Version.V2:
            for name, word in self._v2_says.items():
                there.setdefault(name, word)
        else:
            for name, word in self._v2_says.items():
                if there.get(name) == word:
                    del there[name]
            for name in self._v1_bare:
                if name in there and there[name] is None:
                    del there[name]
        for name, needed in self._needs[to]:
            if there.get(name) is None:
                there[name] = needed(there) if callable(needed) else needed
        return there


class Custom(Pair):
    """A pair that needs code: what to make of an object of version 1, and of one of version 2.

    The functions make a new object, and translate what is inside with the pairs that they are made of."""

    def __init__(self, *, up: Callable[[Object, bool], Object], down: Callable[[Object, bool], Object]) -> None:
        self._up = up
        self._down = down

    def plain(self, value: Object, to: Version, *, is_exact: bool) -> Object:
        return self._up(value, is_exact) if to is Version.V2 else self._down(value, is_exact)


class Tagged:
    """One of several pairs, by the word in `tag`; `otherwise` where it is none of these."""

    def __init__(self, tag: str, pairs: Mapping[str | None, Reading], *, otherwise: Reading = SAME) -> None:
        self._tag = tag
        self._pairs = pairs
        self._otherwise = otherwise

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        if not isinstance(value, dict):
            return value
        word = value.get(self._tag)
        if word is None or isinstance(word, str):
            return self._pairs.get(word, self._otherwise).read(value, to, is_exact=is_exact)
        return value


def unpack(value: Object, version: Version) -> tuple[bool, Object, Any]:
    """Whether something is kept in `value` for this version, `value` without it, and what it is."""
    meta = value.get("_meta")
    ours = meta.get(META) if isinstance(meta, dict) else None
    key = _KEYS[version]
    if not isinstance(meta, dict) or not isinstance(ours, dict) or key not in ours:
        return False, value, None
    rest = {name: member for name, member in ours.items() if name != key}
    meta = {name: member for name, member in meta.items() if name != META or rest}
    if rest:
        meta[META] = rest
    bare = {name: member for name, member in value.items() if name != "_meta" or meta}
    if meta:
        bare["_meta"] = meta
    return True, bare, ours[key]


def restore(there: Object, kept: Any) -> Object:
    """Put what was kept back into what was read. What cannot be understood changes nothing."""
    if not isinstance(kept, dict):
        return there
    fields, absent = kept.get("fields"), kept.get("absent")
    if isinstance(fields, dict):
        there = {**there, **fields}
    if isinstance(absent, list):
        missing = {name for name in absent if isinstance(name, str)}
        there = {name: member for name, member in there.items() if name not in missing}
    return there


def keep(there: Object, original: Object, back: Object, version: Version) -> Object:
    """`there`, with all of `original` (of `version`) kept in it that reading it `back` does not give."""
    if back == original:
        return there
    fields = {n: member for n, member in original.items() if n != "_meta" and back.get(n, ABSENT) != member}
    absent = [name for name in back if name != "_meta" and name not in original]
    meta, told = there.get("_meta", ABSENT), original.get("_meta", ABSENT)
    if told is ABSENT and meta is not ABSENT:
        absent.append("_meta")
    elif told is not ABSENT and (meta != told or _strips_badly(told, version)):
        fields["_meta"] = told
    kept = {"fields": fields, "absent": absent}
    return with_kept(there, {name: part for name, part in kept.items() if part}, version)


def with_kept(there: Object, kept: Any, version: Version) -> Object:
    """`there` with this kept for `version` in its `_meta`. None says: in that version it is not said at all."""
    meta = there.get("_meta")
    members = meta if isinstance(meta, dict) else {}
    ours = members.get(META)
    held = {**(ours if isinstance(ours, dict) else {}), _KEYS[version]: kept}
    return {**there, "_meta": {**members, META: held}}


def _strips_badly(meta: Any, version: Version) -> bool:
    """Whether taking what we kept out of this `_meta` again would not leave it as it was."""
    if not isinstance(meta, dict) or not meta:
        return True
    ours = meta.get(META, ABSENT)
    return ours is not ABSENT and (not isinstance(ours, dict) or not ours or _KEYS[version] in ours)
