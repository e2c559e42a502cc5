from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core import frames
from sandbox_agent.core.frames import Frame
from sandbox_agent.errors import MalformedMessage, SessionBusy

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
names = st.sampled_from(["session/prompt", "session/update", "_vendor/x", "é"])
ids = st.sampled_from([b"0", b"-1", b"7", b"1.0", b"1.50", b"1e3", b'"a"', b'"0"', b'""', b"null", rb'"\u00e9"'])


def members_of(raw: bytes) -> Any:
    return json.loads(raw)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Sound JSON-RPC messages of every kind, with members that we know nothing of, spaced in any way."""
    message: dict[str, Any] = draw(st.dictionaries(st.text(max_size=8), values, max_size=3))
    message["jsonrpc"] = "2.0"
    for name in ("id", "method", "params", "result", "error"):
        message.pop(name, None)
    kind = draw(st.sampled_from(["request", "notification", "answer", "error"]))
    if kind in {"request", "notification"}:
        message["method"] = draw(names)
        message["params"] = draw(values | st.fixed_dictionaries({"sessionId": st.text(), "update": values}))
    if kind == "answer":
        message["result"] = draw(values)
    if kind == "error":
        message["error"] = draw(st.fixed_dictionaries({"code": st.integers(), "message": st.text()}))
    if kind != "notification":
        message["id"] = draw(st.integers() | st.text() | st.none())
    text = json.dumps(message, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    return text.encode(errors="surrogatepass") if text.isascii() else text.encode(errors="replace")


@given(
    st.binary()
    | messages().map(lambda raw: raw[:-1])
    | messages().map(lambda raw: raw + b"]")
    | values.map(msgspec.json.encode)
)
def test_bytes_of_any_kind_are_a_frame_or_malformed(raw: bytes) -> None:
    try:
        frames.parse(raw)
    except MalformedMessage:
        pass


@given(st.integers(0, 400), st.binary(min_size=1, max_size=3), messages())
def test_a_damaged_message_is_a_frame_that_can_be_passed_on_or_malformed(at: int, damage: bytes, raw: bytes) -> None:
    broken = raw[: at % len(raw)] + damage + raw[at % len(raw) + 1 :]
    try:
        frames.parse(broken)
    except MalformedMessage:
        return
    assert frames.parse(frames.with_id(broken, b"5")).key == b"5"


@given(messages())
def test_the_head_says_what_kind_of_message_it_is(raw: bytes) -> None:
    sent = members_of(raw)
    frame = frames.parse(raw)
    assert frame.is_request == ("method" in sent and "id" in sent)
    assert frame.is_answer == ("method" not in sent)
    assert frame.is_error == ("error" in sent)
    assert frame.method == sent.get("method")
    if "id" in sent:
        assert members_of(frame.key) == sent["id"]
    else:
        assert frame.key == b""


@given(messages(), ids)
def test_another_id_leaves_every_other_member_as_it_was(raw: bytes, key: bytes) -> None:
    renamed = frames.with_id(raw, key)
    assert {**members_of(raw), "id": members_of(key)} == members_of(renamed)
    assert frames.parse(renamed).key == key
    assert b"\n" not in renamed
    assert b"\r" not in renamed


@given(messages(), ids)
def test_an_id_survives_the_way_there_and_back(raw: bytes, key: bytes) -> None:
    mine = frames.with_id(raw, key)
    assert frames.with_id(frames.with_id(mine, b"12"), frames.parse(mine).key) == mine


@given(messages())
def test_one_line_is_the_same_message(raw: bytes) -> None:
    assert members_of(frames.one_line(raw)) == members_of(raw)
    assert b"\n" not in frames.one_line(raw.replace(b" ", b"\r\n"))


@given(ids)
def test_ids_are_kept_byte_by_byte(key: bytes) -> None:
    raw = b'{"jsonrpc":"2.0","method":"session/new","id":  %b ,"params":{}}' % key
    assert frames.parse(raw).key == key
    assert frames.is_valid_id(key)


@pytest.mark.parametrize("key", [b"{}", b"[1]", b"true", b"false", b""])
def test_ids_of_other_kinds_are_not_valid(key: bytes) -> None:
    assert not frames.is_valid_id(key)


def test_numbers_and_text_pass_byte_by_byte() -> None:
    raw = rb'{"jsonrpc":"2.0","id":1,"result":{"a":1.0,"b":1E+2,"c":12345678901234567890123,"d":"\u00e9\/"}}'
    assert frames.with_id(raw, b'"x"') == raw.replace(b'"id":1', b'"id":"x"')


def test_session_and_update_are_read_from_params() -> None:
    params = b'{"sessionId":"s","update":{"sessionUpdate":"plan","x":[]}}'
    raw = b'{"jsonrpc":"2.0","method":"session/update","params":%b}' % params
    frame = frames.parse(raw)
    assert frame.session == "s"
    assert frame.params is not None
    assert frame.params.update is not None
    assert frame.params.update.kind == "plan"


@pytest.mark.parametrize("params", [b"[1,2]", b'{"sessionId":7}', b'"text"', b"null", b"3"])
def test_params_of_odd_shapes_pass_without_a_session(params: bytes) -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"method":"_vendor/x","params":%b}' % params
    frame = frames.parse(raw)
    assert (frame.method, frame.key, frame.session) == ("_vendor/x", b"1", None)
    assert frames.params_of(raw) == params


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"hello",
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"m"}]',
        b"1",
        b"{}",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","result":1}',
        b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"1.0","id":1,"method":"m"}',
        b'{"id":1,"method":"m"}',
        b'{"jsonrpc":2.0,"id":1,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b'{"jsonrpc":"2.0","id":1,"method":"m"} {}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}',
    ],
)
def test_what_is_no_single_message_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        frames.parse(raw)


@pytest.mark.parametrize("where", [b'"method":"%b"', b'"method":"m","x":"%b"', b'"method":"m","params":["%b"]'])
def test_bytes_that_are_not_utf8_are_malformed_wherever_they_are(where: bytes) -> None:
    with pytest.raises(MalformedMessage):
        frames.parse(b'{"jsonrpc":"2.0","id":1,' + where % b"\xff\xfe" + b"}")


@pytest.mark.parametrize("member", [b'"result":', b'"method":"m","params":', b'"method":"m","x":'])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")])
def test_json_a_hundred_thousand_levels_deep_is_malformed(member: bytes, brackets: tuple[bytes, bytes]) -> None:
    left, right = brackets
    with pytest.raises(MalformedMessage, match="nested too deeply"):
        frames.parse(b'{"jsonrpc":"2.0","id":1,' + member + left * 100_000 + b"1" + right * 100_000 + b"}")


HALF = [rb"\ud83d", rb"\uDE00", rb"x\ud83d\u0041", rb"\ude00\ud83d", rb"\\\ud83d"]


@pytest.mark.parametrize("text", HALF)
def test_half_a_surrogate_pair_does_not_make_a_message_malformed(text: bytes) -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"method":"session/update","params":{"sessionId":"s","t":"%b"}}' % text
    frame = frames.parse(raw)
    assert (frame.session, frame.key) == ("s", b"1")
    passed = frames.with_id(raw, b"2")
    assert frames.parse(passed).key == b"2"
    assert b"fffd" in passed


@pytest.mark.parametrize("text", [rb"\ud83d\ude00", rb"\\ud83d", rb"\\\\ud83d", rb"\u0041"])
def test_whole_characters_are_not_mended(text: bytes) -> None:
    assert frames.mended(text) == text


def test_the_last_of_two_equal_keys_counts_throughout() -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"a","method":"b","params":{"sessionId":"s","sessionId":"t"}}'
    frame = frames.parse(raw)
    assert (frame.key, frame.method, frame.session) == (b"2", "b", "t")
    assert members_of(frames.with_id(raw, b"9")) == {**members_of(raw), "id": 9}


def test_params_are_replaced_one_by_one() -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"sessionId":"alias","n":1.0}}'
    changed = frames.with_params(raw, {"sessionId": "real"}, method="b")
    assert changed == b'{"jsonrpc":"2.0","id":1,"method":"b","params":{"sessionId":"real","n":1.0}}'
    assert members_of(frames.with_params(b'{"jsonrpc":"2.0","method":"a"}', {"x": 1}))["params"] == {"x": 1}


def test_members_are_found_by_name() -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"a": 1.0}}'
    assert frames.member(raw, "result") == b'{"a": 1.0}'
    assert frames.member(raw, "error") is None
    assert frames.params_of(raw) == b"{}"


def test_what_we_make_ourselves_parses() -> None:
    made: list[tuple[bytes, Frame]] = [
        (line, frames.parse(line))
        for line in (
            frames.request(b'"r"', "m", {"a": 1}),
            frames.notification("n", {"sessionId": "s"}),
            frames.result(b"0", None),
            frames.failure(b"-3", SessionBusy("full", waiting=2)),
        )
    ]
    assert [frame.key for _, frame in made] == [b'"r"', b"", b"0", b"-3"]
    assert members_of(made[3][0])["error"] == {
        "code": -32001,
        "message": "full",
        "data": {
            "type": "urn:sandbox-agent:error:session_busy",
            "retryable": True,
            "waiting": 2,
            "_meta": {"sandboxagent.dev": {"errorType": "conflict"}},
        },
    }


@pytest.mark.parametrize("update", [b'"text"', b"true", b"[1]", b'{"sessionUpdate":5}'])
def test_an_update_of_another_shape_still_belongs_to_its_session(update: bytes) -> None:
    raw = b'{"jsonrpc":"2.0","method":"_vendor/x","params":{"sessionId":"s","update":%b}}' % update
    assert frames.parse(raw).session == "s"


def test_half_a_surrogate_pair_in_params_of_an_odd_shape_passes() -> None:
    raw = rb'{"jsonrpc":"2.0","id":1,"method":"_vendor/x","params":["\ud83d"]}'
    assert frames.parse(raw).method == "_vendor/x"


@pytest.mark.parametrize(
    ("members", "is_error"),
    [(b'"result":{},"error":null', False), (b'"error":null,"result":null', False), (b'"result":null,"error":{}', True)],
)
def test_an_answer_with_a_null_beside_it_is_what_is_not_null(members: bytes, *, is_error: bool) -> None:
    frame = frames.parse(b'{"jsonrpc":"2.0","id":1,%b}' % members)
    assert frame.is_answer
    assert frame.is_error == is_error


def nested(depth: int) -> bytes:
    """A message of that many levels, the outermost included."""
    return (
        b'{"jsonrpc":"2.0","id":1,"result":'
        + b'[{"]":' * ((depth - 1) // 2)
        + rb'"\\\"[{"'
        + b"}]" * ((depth - 1) // 2)
        + b"}"
    )


def test_what_parses_can_be_decoded_from_far_down_the_stack() -> None:
    def renamed(raw: bytes, levels: int) -> bytes:
        return renamed(raw, levels - 1) if levels else frames.with_id(raw, b"2")

    deepest = 0
    for depth in range(1, 1200, 2):
        try:
            frames.parse(nested(depth))
        except MalformedMessage:
            break
        deepest = depth
        assert frames.parse(renamed(nested(depth), 300)).key == b"2"
    assert deepest == frames.MAX_DEPTH - 1


def test_brackets_in_text_are_not_depth() -> None:
    text = json.dumps('[{"\\' * 10_000).encode()
    assert frames.parse(b'{"jsonrpc":"2.0","id":1,"result":[%b,%b]}' % (text, b"[]," * 999 + b"[]")).key == b"1"
    assert frames.parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":[%b]}' % text).key == b"1"
