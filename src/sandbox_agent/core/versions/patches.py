"""A file's change as two texts (version 1) and as a Git patch (version 2)."""

from __future__ import annotations

import re
from typing import NamedTuple

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_NO_NEWLINE = "\\ No newline at end of file"


class Texts(NamedTuple):
    path: str
    old: str | None
    new: str


def git_patch(texts: Texts) -> str:
    """A patch with the whole of both texts, so that they can be read out of it again. Its cost is linear.

    What the texts share at their beginning and end is context. The numbers of lines count from the beginning of the
    texts, which may be only a part of the file."""
    old, new = _lines(texts.old or ""), _lines(texts.new)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    name = _quoted(texts.path)
    origin = "/dev/null" if texts.old is None else name
    out = [f"diff --git {name} {name}"]
    if texts.old is None:
        out.append("new file mode 100644")
    out += [f"--- {origin}", f"+++ {name}"]
    out.append(f"@@ -{_span(len(old))} +{_span(len(new))} @@")
    out += [_marked(" ", line) for line in old[:head]]
    out += [_marked("-", line) for line in old[head : len(old) - tail]]
    out += [_marked("+", line) for line in new[head : len(new) - tail]]
    out += [_marked(" ", line) for line in old[len(old) - tail :]]
    return "\n".join(out) + "\n"


def read_patch(text: str, path: str, *, is_new: bool) -> Texts | None:
    """The two texts as far as the patch of one file has them; None if it has no hunks (binary, a mode, a move)."""
    old: list[str] = []
    new: list[str] = []
    has_hunk = False
    last: list[list[str]] = []
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    for line in lines:
        if _HUNK.match(line):
            has_hunk = True
        elif not has_hunk:
            continue
        elif line.startswith("diff --git "):
            return None
        elif line == _NO_NEWLINE:
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
        else:
            last = {" ": [old, new], "-": [old], "+": [new], "": [old, new]}.get(line[:1], [])
            for side in last:
                side.append(line[1:] + "\n")
    if not has_hunk:
        return None
    return Texts(path, None if is_new else "".join(old), "".join(new))


def _lines(text: str) -> list[str]:
    """Its lines, each with its end; only `\\n` ends a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _marked(mark: str, line: str) -> str:
    return f"{mark}{line[:-1]}" if line.endswith("\n") else f"{mark}{line}\n{_NO_NEWLINE}"


def _span(count: int) -> str:
    return f"{1 if count else 0},{count}"


def _quoted(path: str) -> str:
    """As Git writes a path: in quotes with escapes if it has unusual characters."""
    if not re.search(r'[\x00-\x1f"\\\x7f-\U0010ffff]', path):
        return path
    escaped = []
    for byte in path.encode(errors="replace"):
        char = chr(byte)
        if char in '"\\':
            escaped.append("\\" + char)
        elif byte < 0x20 or byte >= 0x7F:
            escaped.append(_ESCAPES.get(char) or f"\\{byte:03o}")
        else:
            escaped.append(char)
    return f'"{"".join(escaped)}"'


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"}
