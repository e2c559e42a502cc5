"""Prompts in both languages: ACP's content blocks and OpenCode's parts."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote, urlsplit

from sandbox_agent.core.frames import META
from sandbox_agent.core.json_values import Object, as_object, as_text, meta_value
from sandbox_agent.errors import InvalidParams
from sandbox_agent.history.opencode.limits import TEXT_CHARS, cut

_PLAIN = "text/plain"


def part_of(block: Any) -> Object:
    """A block as the content of a part: what is not text is a file."""
    block = as_object(block)
    kind = block.get("type")
    if kind == "text":
        said: Object = {"type": "text", "text": cut(as_text(block.get("text")), TEXT_CHARS)}
        return {**said, "synthetic": True} if meta_value(block, "synthetic") is True else said
    if kind in ("image", "audio"):
        mime = as_text(block.get("mimeType")) or "application/octet-stream"
        uri = as_text(block.get("uri"))
        return _file(mime, uri or f"data:{mime};base64,{as_text(block.get('data'))}", uri)
    if kind == "resource":
        resource = as_object(block.get("resource"))
        uri = as_text(resource.get("uri"))
        return _file(as_text(resource.get("mimeType")) or _PLAIN, uri, uri)
    if kind == "resource_link":
        uri = as_text(block.get("uri"))
        return _file(as_text(block.get("mimeType")) or _PLAIN, uri, as_text(block.get("name")) or uri)
    return {"type": "text", "text": f"[{as_text(kind) or 'content'}]"}


def block_of(part: Object) -> Object | None:
    """A part of a prompt as a block; None for what is only a note to OpenCode. Raises InvalidParams."""
    kind = part.get("type")
    if kind == "text":
        said: Object = {"type": "text", "text": as_text(part.get("text"))}
        if part.get("ignored"):
            return None
        return {**said, "_meta": {META: {"synthetic": True}}} if part.get("synthetic") else said
    if kind == "file":
        return _file_block(part)
    if kind == "agent":
        return None  # the text names it as well
    if kind == "subtask":
        return {"type": "text", "text": as_text(part.get("prompt"))}
    raise InvalidParams(f"parts: type {as_text(kind)[:80]!r} is not known")


def _file_block(part: Object) -> Object:
    url, mime = as_text(part.get("url")), as_text(part.get("mime"))
    name = as_text(part.get("filename"))
    if not url.startswith("data:"):
        if not urlsplit(url).scheme:
            url = f"file://{quote(url)}"
        return {"type": "resource_link", "uri": url, "name": name or unquote(url.rsplit("/", 1)[-1]), "mimeType": mime}
    head, comma, data = url.partition(",")
    if not comma:
        raise InvalidParams("parts: the url of a file is no valid data URL")
    if mime.startswith("image/") and head.endswith(";base64"):
        return {"type": "image", "mimeType": mime, "data": data}
    resource: Object = {"uri": f"file:///{quote(name or 'attachment')}", "mimeType": mime or _PLAIN}
    resource |= {"blob": data} if head.endswith(";base64") else {"text": unquote(data)}
    return {"type": "resource", "resource": resource}


def _file(mime: str, url: str, name: str) -> Object:
    short = unquote(name.rsplit("/", 1)[-1])
    made: Object = {"type": "file", "mime": mime, "url": url}
    return {**made, "filename": short} if short else made
