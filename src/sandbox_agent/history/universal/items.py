"""Items of a turn: messages and reasoning grow by chunks, tools by updates; the ledger knows which are open."""

from __future__ import annotations

from typing import Any, Protocol

from sandbox_agent.core.json_values import Object, as_object, as_text, meta_value
from sandbox_agent.history.universal.parts import (
    block_part,
    content_text,
    reasoning_part,
    tool_call_part,
    tool_content_parts,
    tool_result_part,
)

OPEN_LIMIT = 900
"""How many items may be open at once. Past it the oldest is completed early, which bounds memory and the
number of events that one turn's end can make."""
_KINDS = frozenset({"message", "tool_call", "tool_result", "system", "status", "unknown"})
_ROLES = frozenset({"user", "assistant", "system", "tool"})


class Emit(Protocol):
    def __call__(self, type_: str, data: Object, *, synthetic: bool = False) -> None: ...


class ItemLedger:
    """`emit` gets every event. `sequence` is the history entry's: new items are named after it."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open: dict[str, OpenItem] = {}
        self._text_key: str | None = None
        self._finished: set[str] = set()

    def tool_name(self, call_id: str) -> str | None:
        """What an open tool call is about."""
        opened = self._open.get(_tool_key(call_id))
        return opened.name if isinstance(opened, ToolItem) else None

    def chunk(self, update: Object, sequence: int, *, role: str, is_reasoning: bool) -> None:
        message_id = update.get("messageId")
        style = f"{role}:{is_reasoning}:"
        key = f"text:{style}{as_text(message_id)}"
        if message_id is None:
            key = self._text_key or ""
        is_known = key in self._open and key.startswith(f"text:{style}")
        if not is_known or meta_value(update, "phase") == "started":
            key = f"text:{style}{as_text(message_id) or f'#{sequence}'}"
            if key in self._open:
                self._complete(key, "completed")
            item_id = as_text(meta_value(update, "itemId")) or f"msg_{sequence}"
            self._begin(key, TextItem(item_id, update, role=role, is_reasoning=is_reasoning), synthetic=True)
        self._text_key = key
        opened = self._open[key]
        if isinstance(opened, TextItem):
            self._delta(opened, opened.add(update.get("content")))

    def tool(self, update: Object, *, is_call: bool) -> None:
        """A `tool_call` begins an item; an update of an unknown call begins it too, so that none is lost."""
        call_id = as_text(update.get("toolCallId"))
        key = _tool_key(call_id)
        opened = self._open.get(key)
        added = ""
        if not isinstance(opened, ToolItem):
            opened = ToolItem(call_id)
            added = opened.merge(update)
            self._text_key = None
            self._begin(key, opened, synthetic=not is_call)
        else:
            added = opened.merge(update)
        if not is_call:
            self._delta(opened, added)
        if update.get("status") in ("completed", "failed"):
            self._complete(key, update["status"], synthetic=False)

    def whole(self, item_id: str, *, kind: str, role: str | None, parts: list[Object]) -> None:
        """An item that is there all at once."""
        for type_, status, content in (
            ("item.started", "in_progress", []),
            ("item.completed", "completed", parts),
        ):
            made = item(item_id, None, None, kind=kind, role=role, parts=content, status=status)
            self._emit(type_, {"item": made}, synthetic=True)

    def finalised(self, value: Any) -> None:
        """The server's own word on a finished item; said only once, whoever says it first."""
        given = given_item(value)
        if given is None or given["item_id"] in self._finished:
            return
        for key, opened in list(self._open.items()):
            if opened.item_id == given["item_id"]:
                self._forget(key)
        self._finished.add(given["item_id"])
        self._emit("item.completed", {"item": given})

    def complete_all(self, status: str) -> None:
        for key in list(self._open):
            self._complete(key, status)

    def begin_turn(self) -> None:
        """From here on an item id may come again."""
        self._finished.clear()
        self._text_key = None

    def _begin(self, key: str, opened: OpenItem, *, synthetic: bool) -> None:
        while len(self._open) >= OPEN_LIMIT:
            self._complete(next(iter(self._open)), "completed")
        self._open[key] = opened
        self._finished.discard(opened.item_id)
        self._emit("item.started", {"item": opened.snapshot("in_progress")}, synthetic=synthetic)

    def _delta(self, opened: OpenItem, text: str) -> None:
        if text:
            data = {"item_id": opened.item_id, "native_item_id": opened.native_id, "delta": text}
            self._emit("item.delta", data)

    def _complete(self, key: str, status: str, *, synthetic: bool = True) -> None:
        opened = self._forget(key)
        self._finished.add(opened.item_id)
        self._emit("item.completed", {"item": opened.snapshot(status)}, synthetic=synthetic)

    def _forget(self, key: str) -> OpenItem:
        if key == self._text_key:
            self._text_key = None
        return self._open.pop(key)


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


def _tool_key(call_id: str) -> str:
    return f"tool:{call_id}"
