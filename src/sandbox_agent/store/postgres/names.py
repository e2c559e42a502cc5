"""Names as PostgreSQL's text can hold them: everything but NUL and halves of surrogate pairs, which are spelled out."""

from __future__ import annotations

import re

_SPECIAL = re.compile("[\\\\\0\ud800-\udfff]")
_SPELLED = re.compile(r"\\(\\|u([0-9a-f]{4}))")


def spell(name: str) -> str:
    return _SPECIAL.sub(_spell, name) if _SPECIAL.search(name) else name


def read_name(spelled: str) -> str:
    return _SPELLED.sub(_read, spelled) if "\\" in spelled else spelled


def _spell(found: re.Match[str]) -> str:
    return "\\\\" if found.group() == "\\" else f"\\u{ord(found.group()):04x}"


def _read(found: re.Match[str]) -> str:
    return "\\" if found.group(1) == "\\" else chr(int(found.group(2), 16))
