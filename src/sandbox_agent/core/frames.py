"""The JSON-RPC envelope: what routing needs is decoded, everything else stays the bytes that came in."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from sandbox_agent.core.ids import SessionId
from sandbox_agent.errors import MalformedMessage, SandboxAgentError

META = "sandboxagent.dev"
"""Our key under `_meta`."""
MAX_DEPTH = 256
"""Levels of nesting. The decoder has no limit of its own but what is left of the stack, and who decodes a message
again further down must not run out of it."""
_SHALLOW = 2 * MAX_DEPTH
"""Bytes that cannot be nested deeper: each level is closed, too."""


LINE_FEED, CARRIAGE_RETURN, _BACKSLASH = b"\n\r\\"
"""As numbers: to look for one in bytes takes a ninth of the time that it takes to look for bytes in bytes."""


class Update(msgspec.Struct, gc=False):
    kind: str | None = msgspec.field(name="sessionUpdate", default=None)
    tool_call: str | None = msgspec.field(name="toolCallId", default=None)
    tool_kind: str | None = msgspec.field(name="kind", default=None)


class Scope(msgspec.Struct, gc=False):
    """The parts of `params` that say where a message belongs."""

    session: SessionId | None = msgspec.field(name="sessionId", default=None)
    update: Update | None = None


class Frame(msgspec.Struct, gc=False):
    """The head of one JSON-RPC message; its payload stays in the raw bytes it was parsed from."""

    jsonrpc: str = ""
    id: Raw | UnsetType = UNSET
    method: str | None = None
    params: Scope | None = None
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def is_request(self) -> bool:
        return self.method is not None and self.id is not UNSET

    @property
    def is_answer(self) -> bool:
        return self.method is None

    @property
    def is_error(self) -> bool:
        return self.error is not UNSET

    @property
    def key(self) -> bytes:
        """The id as it was sent: opaque, compared byte by byte."""
        return b"" if self.id is UNSET else bytes(self.id)

    @property
    def session(self) -> SessionId | None:
        return None if self.params is None else self.params.session


class _OddFrame(msgspec.Struct):
    """A frame whose params are not shaped as ours are: an array, or an `update` or sessionId of another kind."""

    jsonrpc: str = ""
    id: Raw | UnsetType = UNSET
    method: str | None = None
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Cancelled(msgspec.Struct):
    request_id: Raw = msgspec.field(name="requestId")


class _SessionOnly(msgspec.Struct):
    session: SessionId | None = msgspec.field(name="sessionId", default=None)


_decode = msgspec.json.Decoder(Frame).decode
_decode_odd = msgspec.json.Decoder(_OddFrame).decode
_decode_session = msgspec.json.Decoder(_SessionOnly).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


def parse(raw: bytes) -> Frame:
    """The frame in `raw`. Raises MalformedMessage for anything that is not one JSON-RPC 2.0 message."""
    try:
        frame = _decode(raw)
        if not raw.isascii():
            raw.decode()  # msgspec does not look inside the strings that it skips
        if len(raw) > _SHALLOW and raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
            raise RecursionError
    except msgspec.ValidationError:
        frame = _parse_odd(raw)
    except RecursionError:
        raise MalformedMessage("JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        frame = _parse_mended(raw, error)
    if frame.method is None:
        if frame.result is not UNSET and frame.error is not UNSET:
            _drop_null(frame)
        if frame.id is UNSET or (frame.result is UNSET) == (frame.error is UNSET):
            raise MalformedMessage("neither a request, a notification nor an answer")
    if frame.jsonrpc != "2.0":
        raise MalformedMessage(f'"jsonrpc" must be "2.0", not {frame.jsonrpc!r}')
    return frame


def _depth(raw: bytes) -> int:
    """How deep valid JSON is nested."""
    outside = (
        raw.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NEITHER_BRACKET_NOR_QUOTE).split(b'"')[::2]
    )
    return max(accumulate(map(_STEPS.__getitem__, b"".join(outside))), default=0)


_STEPS = [{"[": 1, "{": 1, "]": -1, "}": -1}.get(chr(byte), 0) for byte in range(256)]
_NEITHER_BRACKET_NOR_QUOTE = bytes(byte for byte in range(256) if chr(byte) not in '[]{}"')


def _drop_null(frame: Frame) -> None:
    """Some agents send both `result` and `error`, one of them null: then it is the other that they mean."""
    if bytes(frame.error) == b"null":  # type: ignore[arg-type]  # both are there
        frame.error = UNSET
    elif bytes(frame.result) == b"null":  # type: ignore[arg-type]
        frame.result = UNSET


def _parse_mended(raw: bytes, error: Exception) -> Frame:
    """The head of a line that is sound but for half surrogate pairs; the line itself passes as it is."""
    whole = mended(raw)
    if whole == raw or isinstance(error, UnicodeDecodeError):
        raise MalformedMessage(str(error)) from None
    return parse(whole)


def mended(raw: bytes) -> bytes:
    """`raw` with half surrogate pairs, as agents make them when they split a text, replaced by U+FFFD."""
    return _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], raw)


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def members(raw: bytes) -> dict[str, Raw]:
    """The members of a JSON object, each as its bytes. Raises msgspec.ValidationError for anything else."""
    try:
        return _decode_members(raw)
    except msgspec.DecodeError:
        return _decode_members(mended(raw))


def _parse_odd(raw: bytes) -> Frame:
    try:
        odd = _decode_odd(raw)
        raw.decode()
        if _depth(raw) > MAX_DEPTH:
            raise RecursionError
    except (msgspec.ValidationError, UnicodeDecodeError) as error:
        raise MalformedMessage(str(error)) from None
    except RecursionError:
        raise MalformedMessage("JSON is nested too deeply") from None
    except msgspec.DecodeError as error:
        return _parse_mended(raw, error)
    return Frame(odd.jsonrpc, odd.id, odd.method, _session_in(odd.params), odd.result, odd.error)


def _session_in(params: Raw | UnsetType) -> Scope | None:
    """Where a message belongs whose other params mean nothing to us."""
    try:
        return Scope(_decode_session(params).session) if isinstance(params, Raw) else None
    except msgspec.ValidationError:
        return None


def one_line(raw: bytes) -> bytes:
    """`raw` without line breaks. In valid JSON they stand between tokens only, so a space is the same."""
    if LINE_FEED in raw or CARRIAGE_RETURN in raw:
        return raw.replace(b"\n", b" ").replace(b"\r", b" ")
    return raw


def is_valid_id(key: bytes) -> bool:
    """Whether a request id is a string, a number or null, as JSON-RPC demands."""
    return key[:1] not in (b"{", b"[", b"t", b"f", b"")


def with_id(raw: bytes, key: bytes, *, was: bytes = b"") -> bytes:
    """The same message under another id; every other member keeps its bytes. Saying what it `was` makes it quicker."""
    if was and _BACKSLASH not in raw and raw.count(b'"id"') == 1:  # so it is the member, written plainly
        before, found, after = raw.partition(b'"id":' + was)
        if found and after[:1] in (b",", b"}"):
            return one_line(b'%b"id":%b%b' % (before, key, after))
    changed = members(raw)
    changed["id"] = Raw(key)
    return one_line(_encode(changed))


def with_params(raw: bytes, changes: dict[str, Any], *, method: str | None = None) -> bytes:
    """The same message with some members of `params` replaced, and perhaps another method."""
    changed = members(raw)
    params: dict[str, Any] = dict(members(changed["params"])) if "params" in changed else {}
    params.update(changes)
    changed["params"] = Raw(_encode(params))
    if method is not None:
        changed["method"] = Raw(_encode(method))
    return one_line(_encode(changed))


def cancelled_key(raw: bytes) -> bytes | None:
    """The id of the request that a `$/cancel_request` takes back; None if it names none."""
    try:
        return bytes(msgspec.json.decode(params_of(raw), type=_Cancelled).request_id)
    except msgspec.MsgspecError:
        return None


def member(raw: bytes, name: str) -> bytes | None:
    """The bytes of one top-level member, or None."""
    value = members(raw).get(name)
    return None if value is None else bytes(value)


def error_message(error: bytes) -> str:
    """What the `error` of an answer says."""
    try:
        return str(decode(error, _Error).message)
    except msgspec.MsgspecError:
        return "failed"


class _Error(msgspec.Struct):
    message: Any = "failed"


def params_of(raw: bytes) -> bytes:
    return member(raw, "params") or b"{}"


def decode(raw: bytes, shape: Any = Any) -> Any:
    """The value in `raw`, half surrogate pairs mended. Raises msgspec.MsgspecError."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.json.decode(mended(raw), type=shape)


def to_json(value: Any) -> bytes:
    return _encode(value)


def request(key: bytes, method: str, params: Any) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (key, _encode(method), _encode(params))


def notification(method: str, params: Any) -> bytes:
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), _encode(params))


def result(key: bytes, value: Any) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (key, _encode(value))


def failure(key: bytes, error: SandboxAgentError, *, agent: str | None = None, session: str | None = None) -> bytes:
    """The JSON-RPC answer for one of our own errors. `agent` and `session` say where it happened, if that is known."""
    where = {"agent": agent, "sessionId": session, "errorType": error.legacy_type}
    data = {
        "type": f"urn:sandbox-agent:error:{error.kind}",
        "retryable": error.retryable,
        **error.data,
        "_meta": {META: {name: value for name, value in where.items() if value is not None}},
    }
    body = {"code": error.code, "message": error.detail, "data": data}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (key, _encode(body))
