"""Any bytes are one JSON-RPC message or a MalformedMessage, and rewriting a message changes nothing else in it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from sandbox_agent.core import frames
from sandbox_agent.errors import MalformedMessage

KEY = b'"a new id"'


def check(data: bytes) -> None:
    try:
        frame = frames.parse(data)
    except MalformedMessage:
        return
    line = frames.one_line(data)
    assert b"\n" not in line
    assert b"\r" not in line
    before = _members(line)
    for renamed in (frames.with_id(line, KEY), frames.with_id(line, KEY, was=frame.key)):
        assert frames.parse(renamed).key == KEY
        assert {**before, "id": "a new id"} == _members(renamed)
    if frame.method is not None and isinstance(before.get("params"), dict):
        changed = _members(frames.with_params(line, {"sessionId": "another"}))
        assert changed == {**before, "params": {**before["params"], "sessionId": "another"}}


def _members(line: bytes) -> dict[str, Any]:
    """As another decoder reads it; numbers stay as they are written."""
    text = frames.mended(line).decode() if not _is_sound(line) else line.decode()
    found = json.loads(text, parse_float=str, parse_int=str, strict=False)
    assert isinstance(found, dict)
    return found


def _is_sound(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return True
