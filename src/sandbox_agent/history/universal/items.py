"""Items that have begun and not ended: messages and reasoning by their chunks, tools by their updates."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.json_values import Object, as_object, as_text, meta_value
from sandbox_agent.history.universal.parts import (
    block_part,
    content_text,
    reasoning_part,
    tool_call_part,
    tool_content_parts,
    tool_result_part,
)


class TextItem:
    """A message or a stretch of reasoning, growing by chunks."""

    def __init__(self, item_id: str, update: Object, *, role: str, is_reasoning: bool) -> None:
        self.item_id = item_id
        self.native_id = native_item_id(update, update.get("messageId"))
        self.parent_id = parent_item_id(update)
        self._role = role
        self._is_reasoning = is_reasoning
        self._parts: list[Object] = []
        self._text: list[str] = []
        self._first_block: Any = None

    def add(self, block: Any) -> str:
        """Append a content block; the text that it added, if any."""
        if self._first_block is None:
            self._first_block = block
        part = block_part(block)
        if part is None:
            return ""
        if part["type"] == "text":
            self._text.append(part["text"])
            return str(part["text"])
        self._close_text()
        self._parts.append(part)
        return ""

    def snapshot(self, status: str) -> Object:
        self._close_text()
        return item(
            self.item_id,
            self.native_id,
            self.parent_id,
            kind="message",
            role=self._role,
            parts=self._parts,
            status=status,
        )

    def _close_text(self) -> None:
        if not self._text:
            return
        text = "".join(self._text)
        self._text = []
        is_reasoning = self._is_reasoning
        self._parts.append(reasoning_part(self._first_block, text) if is_reasoning else {"type": "text", "text": text})


class ToolItem:
    """A tool call with its updates merged in: each update replaces the members that it names."""

    def __init__(self, call_id: str) -> None:
        self.item_id = call_id
        self.native_id: str | None = call_id
        self.parent_id: str | None = None
        self._call: Object = {"toolCallId": call_id}

    @property
    def name(self) -> str | None:
        name = self._call.get("title") or self._call.get("kind")
        return as_text(name) if name else None

    def merge(self, update: Object) -> str:
        """Apply an update; the output text that it added. Agents send the whole content each time."""
        before = content_text(self._call)
        self._call.update({name: value for name, value in update.items() if value is not None})
        self.item_id = as_text(meta_value(self._call, "itemId")) or self.item_id
        self.native_id = native_item_id(self._call, self._call["toolCallId"])
        self.parent_id = parent_item_id(self._call)
        text = content_text(update)
        return text.removeprefix(before) if text != before else ""

    def snapshot(self, status: str) -> Object:
        parts = [tool_call_part(self._call)]
        result = tool_result_part(self._call)
        if result is not None:
            parts.append(result)
        parts += tool_content_parts(self._call)
        return item(
            self.item_id,
            self.native_id,
            self.parent_id,
            kind="tool_call",
            role="tool",
            parts=parts,
            status=status,
        )


OpenItem = TextItem | ToolItem


def item(
    item_id: str,
    native_id: str | None,
    parent_id: str | None,
    *,
    kind: str,
    role: str | None,
    parts: list[Object],
    status: str,
) -> Object:
    return {
        "item_id": item_id,
        "native_item_id": native_id,
        "parent_id": parent_id,
        "kind": kind,
        "role": role,
        "content": list(parts),
        "status": status,
    }


def given_item(value: Any) -> Object | None:
    """A finalised item that the server put into history whole; None if it has no id or no content."""
    given = as_object(value)
    item_id = as_text(given.get("item_id") or given.get("itemId"))
    content = given.get("content")
    if not item_id or not isinstance(content, list):
        return None
    native = given.get("native_item_id", given.get("nativeItemId"))
    parent = given.get("parent_id", given.get("parentId"))
    kind, role, status = given.get("kind"), given.get("role"), given.get("status")
    return item(
        item_id,
        None if native is None else as_text(native),
        None if parent is None else as_text(parent),
        kind=kind if kind in _KINDS else "unknown",
        role=role if role in _ROLES else None,
        parts=[part for part in content if isinstance(part, dict)],
        status=status if status in ("in_progress", "failed") else "completed",
    )


def native_item_id(holder: Object, default: Any) -> str | None:
    native = meta_value(holder, "nativeItemId")
    native = default if native is None else native
    return None if native is None else as_text(native)


def parent_item_id(holder: Object) -> str | None:
    parent = meta_value(holder, "parentId")
    return None if parent is None else as_text(parent)


_KINDS = frozenset({"message", "tool_call", "tool_result", "system", "status", "unknown"})
_ROLES = frozenset({"user", "assistant", "system", "tool"})
