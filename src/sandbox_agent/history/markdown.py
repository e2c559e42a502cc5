"""Markdown out of text that nobody can trust: whatever it holds, it stays where it was put."""

from __future__ import annotations

import re

_RUNS = re.compile(r"`+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&:])")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,30}")


def inline(text: str) -> str:
    """One line of plain words: no mark-up in it takes effect."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(clean(text).split()))


def code_span(text: str) -> str:
    """One line of code, `(none)` when there is nothing to show: an empty list item could make a heading."""
    text = " ".join(clean(text).split()) or "(none)"
    ticks = "`" * (1 + max((len(run) for run in _RUNS.findall(text)), default=0))
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """A code block, its fence longer than any inside."""
    text = clean(text).removesuffix("\n")
    ticks = "`" * max(3, 1 + max((len(run) for run in _RUNS.findall(text)), default=0))
    return f"{ticks}{language}\n{text}\n{ticks}\n"


def quoted(text: str) -> str:
    """A block quote that keeps the text's own Markdown, and ends where we end it.

    Its code blocks get fences of ours; elsewhere HTML tags and link definitions, which reach beyond a quote,
    are made plain text."""
    lines = [line for block in _blocks(clean(text).strip("\n")) for line in block.split("\n")]
    return "".join(f"> {line}\n" if line else ">\n" for line in lines)


def clean(text: str) -> str:
    """Newlines as newlines; other control characters made visible."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _blocks(text: str) -> list[str]:
    """The text with its top-level code blocks fenced anew, closed even where the author left them open."""
    blocks: list[str] = []
    code: list[str] = []
    fence = language = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if not fence and mark is None:
            blocks.append(_TAG.sub("&lt;", line).replace("]:", "]\\:"))
        elif not fence and mark is not None:
            fence = mark[1]
            known = _LANGUAGE.match(mark[2].strip())
            language = known[0] if known else ""
        elif mark is not None and mark[1].startswith(fence) and not mark[2].strip():
            blocks.append(fenced("\n".join(code), language).removesuffix("\n"))
            code, fence = [], ""
        else:
            code.append(line)
    if fence:
        blocks.append(fenced("\n".join(code), language).removesuffix("\n"))
    return blocks
