"""A message under another id: the quick way and the thorough one agree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core import frames

IDS = st.one_of(st.integers(-5, 10**12), st.text(max_size=8), st.floats(allow_nan=False, allow_infinity=False))
KEYS = st.sampled_from(["id", "Id", "method", "x", 'a"id', "sessionId", "id\\"])
VALUES = st.recursive(
    st.none() | st.integers() | st.sampled_from(["id", '"id":1', "plain", 'q"id"', "\\"]) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(IDS, IDS, st.dictionaries(KEYS, VALUES, max_size=4), st.booleans(), st.booleans())
def test_only_the_id_changes_whatever_else_the_message_holds(
    old: Any, new: Any, params: dict[str, Any], is_compact: bool, is_ascii: bool
) -> None:
    message = {"jsonrpc": "2.0", "id": old, "method": "m", "params": params}
    raw = json.dumps(message, separators=(",", ":") if is_compact else None, ensure_ascii=is_ascii).encode()
    key = json.dumps(new).encode()
    renamed = frames.with_id(raw, key, was=frames.parse(raw).key)
    assert json.loads(renamed) == {**message, "id": new}
    assert json.loads(frames.with_id(raw, key)) == json.loads(renamed)


@pytest.mark.parametrize(
    "raw",
    [
        rb'{"jsonrpc":"2.0","\u0069d":1,"method":"m","params":{"id":1}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"id":1},"id":1}',
        b'{"jsonrpc":"2.0","method":"id","id":1}',
        b'{"jsonrpc":"2.0","id":1 ,"method":"m"}',
        b'{"jsonrpc":"2.0","id":12,"method":"m"}',
        b'{"jsonrpc":"2.0","method":"m","id":1}',
        b'{"jsonrpc":"2.0",\n"id":1,\r\n"method":"m"}',
    ],
)
def test_the_member_that_is_renamed_is_the_outermost_id(raw: bytes) -> None:
    expected = {**json.loads(raw), "id": "new"}
    renamed = frames.with_id(raw, b'"new"', was=frames.parse(raw).key)
    assert json.loads(renamed) == expected
    assert b"\n" not in renamed
