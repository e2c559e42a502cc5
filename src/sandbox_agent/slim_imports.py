"""Libraries without what they import besides: parts that we never use, and that take long to load.

What is left out is left out for the one import only: whoever asks for it later gets the real thing.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Import as if these modules were not installed: for libraries that do without where they are missing."""
    with _placed(dict.fromkeys(names)):
        yield


@contextlib.contextmanager
def with_empty(names: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Import as if these modules had nothing but these names, each None: for libraries that insist on them."""
    stand_ins: dict[str, ModuleType | None] = {}
    for name, members in names.items():
        stand_in = stand_ins[name] = ModuleType(name)
        vars(stand_in).update(dict.fromkeys(members))
    with _placed(stand_ins):
        yield


@contextlib.contextmanager
def _placed(stand_ins: dict[str, ModuleType | None]) -> Iterator[None]:
    new = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    sys.modules.update(new)  # type: ignore[arg-type]  # None is how the import system is told that there is none
    try:
        yield
    finally:
        for name in new:
            sys.modules.pop(name, None)
