"""A tool call as Markdown: what it was, what went in, what came out."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.json_values import Object, as_list, as_object, as_text, json_text
from sandbox_agent.history.diffs import unified_diff
from sandbox_agent.history.markdown import code_span, fenced, inline


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
    parts += [_content(as_object(content)) for content in as_list(call.get("content"))]
    if call.get("rawOutput") is not None and not call.get("content"):
        parts.append(f"\nOutput:\n\n{_value(call['rawOutput'])}")
    return "".join(parts)


def _content(content: Object) -> str:
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
