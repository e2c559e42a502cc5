"""Markdown out of text that nobody can trust: whatever it holds, it stays where it was put."""

from __future__ import annotations

import re
from typing import Any

from sandbox_agent.core.json_values import Object, as_list, as_object, as_text, json_text
from sandbox_agent.history.diffs import unified_diff

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


def render_tool(call: Object) -> str:
    """`call` is the tool call with its updates merged in."""
    title = inline(as_text(call.get("title") or call.get("toolCallId"))) or "tool"
    kind = code_span(as_text(call.get("kind") or "other"))
    status = code_span(as_text(call.get("status") or "pending"))
    parts = [f"**Tool:** {title} ({kind}, {status})\n\n"]
    paths = [as_text(as_object(place).get("path")) for place in as_list(call.get("locations"))]
    parts += [f"- {code_span(path)}\n" for path in paths if path]
    if call.get("rawInput") is not None:
        parts.append(f"\nInput:\n\n{_value(call['rawInput'])}")
    parts += [_tool_content(as_object(content)) for content in as_list(call.get("content"))]
    if call.get("rawOutput") is not None and not call.get("content"):
        parts.append(f"\nOutput:\n\n{_value(call['rawOutput'])}")
    return "".join(parts)


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


def _tool_content(content: Object) -> str:
    kind = as_text(content.get("type"))
    if kind == "diff":
        path = as_text(content.get("path"))
        old = content.get("oldText")
        diff = unified_diff(path, None if old is None else as_text(old), as_text(content.get("newText")))
        return f"\nChange to {code_span(path)}:\n\n{fenced(diff, 'diff')}"
    if kind == "terminal":
        return f"\nTerminal {code_span(as_text(content.get('terminalId')))}\n"
    block = as_object(content.get("content"))
    text = block.get("text", as_object(block.get("resource")).get("text"))
    if isinstance(text, str):
        return f"\nOutput:\n\n{fenced(text)}"
    return f"\nOutput: {inline(as_text(block.get('type')))} {code_span(as_text(block.get('uri')))}\n"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return fenced(value)
    return fenced(json_text(value, indent=2), "json")
