"""Telling an agent's echo of a prompt from other things that it says in the user's name."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.core import frames


class _PromptParams(msgspec.Struct):
    prompt: list[dict[str, Any]] = []


class _Chunk(msgspec.Struct, frozen=True):
    content: dict[str, Any] = {}


class _ChunkParams(msgspec.Struct):
    update: _Chunk = _Chunk()


class Echo:
    """What of one prompt the agent has not sent back yet. Some send none of it, some all, whole or in pieces."""

    def __init__(self, prompt: bytes) -> None:
        """`prompt` is the request's line."""
        try:
            blocks = msgspec.json.decode(frames.params_of(prompt), type=_PromptParams).prompt
        except msgspec.MsgspecError:
            blocks = []
        self._text = _squeezed("".join(_text(block) for block in blocks))
        self._others = [block for block in blocks if not _text(block)]

    def takes(self, chunk: bytes) -> bool:
        """Whether this `user_message_chunk` goes on where the echo has come to."""
        try:
            content = msgspec.json.decode(frames.params_of(chunk), type=_ChunkParams).update.content
        except msgspec.MsgspecError:
            return False
        text = _squeezed(_text(content))
        if text and self._text.startswith(text):
            self._text = self._text[len(text) :]
            return True
        if not text and content in self._others:
            self._others.remove(content)
            return True
        return False


def _text(block: dict[str, Any]) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else ""


def _squeezed(text: str) -> str:
    """Without white space: agents trim it, and break lines anew."""
    return "".join(text.split())
