"""What messages and tool calls contain."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.versions.diffs import DIFF, further_diffs, text_content
from sandbox_agent.core.versions.pairs import Closed, Custom, Each, Field, Reading, Record, keep, unpack
from sandbox_agent.core.versions.version import Object, Version


class Share:
    """A number; in version 2 one from 0 to 1."""

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return min(max(value, 0), 1) if is_number and to is Version.V2 else value


ANNOTATIONS = Record(
    Field("audience", reading=Each(Closed("assistant user", otherwise="assistant"))),
    Field("priority", reading=Share()),
)
_ANNOTATED = Record(Field("annotations", reading=ANNOTATIONS))
_KNOWN_BLOCKS = frozenset({"text", "image", "audio", "resource_link", "resource"})


class ContentBlock:
    """A block of content. Of a kind that version 1 does not know, version 1 shows its text or its name."""

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            return value
        if value["type"] not in _KNOWN_BLOCKS:
            return _UNKNOWN_BLOCK.read(value, to, is_exact=is_exact)
        if "annotations" in value or "_meta" in value:
            return _ANNOTATED.read(value, to, is_exact=is_exact)
        return value


def _unknown_block(block: Object, is_exact: bool) -> Object:
    if block["type"] in _KNOWN_BLOCKS:
        return block
    text = block.get("text")
    shown: Object = {"type": "text", "text": text if isinstance(text, str) else f"[{block['type']}]"}
    return {**shown, "_meta": block["_meta"]} if "_meta" in block else shown


_UNKNOWN_BLOCK = Custom(up=lambda block, _: block, down=_unknown_block)
BLOCK = ContentBlock()
BLOCKS = Each(BLOCK)


def is_same_content(item: Any) -> bool:
    """Whether it is the content of a tool call that both versions surely write alike: most are, and need no more."""
    if not isinstance(item, dict) or item.get("type") != "content" or "_meta" in item:
        return False
    block = item.get("content")
    if not isinstance(block, dict) or "_meta" in block or "annotations" in block:
        return False
    kind = block.get("type")
    return isinstance(kind, str) and kind in _KNOWN_BLOCKS


class ToolContents:
    """The contents of a tool call. A diff of several files is several diffs in version 1."""

    def read(self, value: Any, to: Version, *, is_exact: bool = True) -> Any:
        if not isinstance(value, list):
            return value
        there: list[Any] = []
        for item in value:
            if is_same_content(item):
                there.append(item)
            else:
                there += self._item(item, to, is_exact=is_exact)
        return there

    def _item(self, item: Any, to: Version, *, is_exact: bool) -> list[Any]:
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            return [item]
        is_kept, _, kept = unpack(item, to)
        if is_kept and kept is None:
            return []
        if item["type"] == "terminal" and to is Version.V2 and not is_kept:
            return [keep(item, item, {}, Version.V1)]  # a client's; in version 2 terminals are the agent's
        there = _BY_KIND.get(item["type"], _UNKNOWN_CONTENT).read(item, to, is_exact=is_exact)
        more = further_diffs(item) if to is Version.V1 and item["type"] == "diff" and not is_kept else []
        return [there, *more]


def _unknown_content(content: Object, is_exact: bool) -> Object:
    if content["type"] in _BY_KIND:
        return content
    shown = text_content(f"[{content['type']}]")
    return {**shown, "_meta": content["_meta"]} if "_meta" in content else shown


_UNKNOWN_CONTENT = Custom(up=lambda content, _: content, down=_unknown_content)
_BY_KIND: dict[str, Reading] = {
    "content": Record(Field("content", reading=BLOCK)),
    "diff": DIFF,
    "terminal": Record(),
}
TOOL_CONTENTS = ToolContents()
