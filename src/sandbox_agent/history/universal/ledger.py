"""Which items are open, and the item events that updates make of them."""

from __future__ import annotations

from typing import Any, Protocol

from sandbox_agent.core.json_values import Object, as_text, meta_value
from sandbox_agent.history.universal.items import OpenItem, TextItem, ToolItem, given_item, item

OPEN_LIMIT = 900
"""How many items may be open at once. Past it the oldest is completed early, which bounds memory and the
number of events that one turn's end can make."""


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


def _tool_key(call_id: str) -> str:
    return f"tool:{call_id}"
