"""ACP content as the content parts of the old universal items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandbox_agent.core.json_values import Object, as_list, as_object, as_text, json_text, meta_value, read_json
from sandbox_agent.history.diffs import unified_diff


def block_part(block: Any) -> Object | None:
    """A ContentBlock as a part; None for what the old schema has no part for."""
    block = as_object(block)
    make = _BLOCKS.get(as_text(block.get("type")))
    return make(block) if make else None


def reasoning_part(block: Any, text: str) -> Object:
    visibility = meta_value(as_object(block), "reasoningVisibility")
    return {
        "type": "reasoning",
        "text": text,
        "visibility": visibility if visibility in ("public", "private") else "public",
    }


def tool_call_part(call: Object) -> Object:
    """`call` is the tool call with all its updates merged in."""
    name = meta_value(call, "toolName") or call.get("title") or call.get("kind") or "tool"
    return {
        "type": "tool_call",
        "name": as_text(name),
        "arguments": json_text(call.get("rawInput", {})),
        "call_id": as_text(call.get("toolCallId")),
    }


def tool_result_part(call: Object) -> Object | None:
    """The output, from `rawOutput` or else the text of the content; None while there is neither."""
    output = call.get("rawOutput")
    text = as_text(output) if output is not None else content_text(call)
    if output is None and not text:
        return None
    return {"type": "tool_result", "call_id": as_text(call.get("toolCallId")), "output": text}


def tool_content_parts(call: Object) -> list[Object]:
    """Diffs, read locations and whatever else the call's content holds, text left out: it is the result's."""
    parts: list[Object] = []
    for content in as_list(call.get("content")):
        content = as_object(content)
        if content.get("type") == "diff":
            parts.append(_diff_part(content))
        elif content.get("type") == "content":
            part = block_part(content.get("content"))
            if part and part["type"] != "text":
                parts.append(part)
    if call.get("kind") == "read":
        paths = [as_object(location).get("path") for location in as_list(call.get("locations"))]
        parts += [{"type": "file_ref", "path": as_text(p), "action": "read", "diff": None} for p in paths if p]
    return parts


def content_text(call: Object) -> str:
    """All text in a tool call's content, joined."""
    blocks = (as_object(as_object(content).get("content")) for content in as_list(call.get("content")))
    return "".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")


def status_part(holder: Object) -> Object | None:
    """The status that an update carries in its `_meta`, if any."""
    status = as_object(meta_value(holder, "status"))
    if not status.get("label"):
        return None
    detail = status.get("detail")
    return {
        "type": "status",
        "label": as_text(status["label"]),
        "detail": None if detail is None else as_text(detail),
    }


def _text(block: Object) -> Object:
    return {"type": "text", "text": as_text(block.get("text"))}


def _image(block: Object) -> Object:
    """Inline data has no path in the old schema, so it travels as a data URI."""
    mime = block.get("mimeType")
    path = as_text(block.get("uri")) or f"data:{as_text(mime)};base64,{as_text(block.get('data'))}"
    return {"type": "image", "path": path, "mime": None if mime is None else as_text(mime)}


def _resource(block: Object) -> Object:
    resource = as_object(block.get("resource"))
    text = resource.get("text")
    if isinstance(text, str) and resource.get("mimeType") == "application/json":
        payload = read_json(text.encode("utf-8", "replace"))
        if payload is not None:
            return {"type": "json", "json": payload}
    if isinstance(text, str):
        return {"type": "text", "text": text}
    return _file(as_text(resource.get("uri")))


def _resource_link(block: Object) -> Object:
    return _file(as_text(block.get("uri")))


def _file(uri: str) -> Object:
    return {"type": "file_ref", "path": uri.removeprefix("file://"), "action": "read", "diff": None}


def _diff_part(content: Object) -> Object:
    old = content.get("oldText")
    path = as_text(content.get("path"))
    diff = unified_diff(path, None if old is None else as_text(old), as_text(content.get("newText")))
    return {"type": "file_ref", "path": path, "action": "write" if old is None else "patch", "diff": diff}


_BLOCKS: dict[str, Callable[[Object], Object]] = {
    "text": _text,
    "image": _image,
    "resource": _resource,
    "resource_link": _resource_link,
}
