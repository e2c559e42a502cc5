"""JSON-RPC 2.0 lines: taken apart with ids and params left as bytes, and put together."""

from __future__ import annotations

from typing import Any

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002

ABSENT = msgspec.Raw(b"")
NULL = msgspec.Raw(b"null")


class RpcError(Exception):
    """A JSON-RPC error, raised to be sent to the client."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def body(self) -> dict[str, Any]:
        body = {"code": self.code, "message": self.message}
        return body if self.data is None else {**body, "data": self.data}


class Refusal(RpcError):
    """A request to the client was answered with an error, or with nothing usable."""


class Envelope(msgspec.Struct, frozen=True):
    """One message. Fields that were not sent are empty bytes, so that no id differs from 0 and null."""

    id: msgspec.Raw = ABSENT
    method: str | None = None
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT

    @property
    def has_id(self) -> bool:
        return bytes(self.id) != b""


_envelope_decoder = msgspec.json.Decoder(Envelope)
_encoder = msgspec.json.Encoder()
encode = _encoder.encode


def parse_line(line: bytes) -> Envelope:
    """The message in `line`. Raises RpcError."""
    try:
        if not line.isascii():
            line.decode()  # msgspec does not look into fields that it leaves as bytes
        envelope = _envelope_decoder.decode(line)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_REQUEST, f"Not a JSON-RPC message: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"Not JSON: {error}") from None
    if bytes(envelope.id)[:1] in (b"{", b"[", b"t", b"f"):
        raise RpcError(INVALID_REQUEST, "Not a JSON-RPC message: id must be a string, a number or null")
    return envelope


def parse_refusal(raw: msgspec.Raw) -> Refusal:
    """The error object of an answer, however malformed."""
    try:
        fields = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return Refusal(INTERNAL_ERROR, "an error that is not an object")
    code = fields.get("code")
    return Refusal(code if isinstance(code, int) else INTERNAL_ERROR, str(fields.get("message")), fields.get("data"))


def result_line(request_id: msgspec.Raw, result: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_line(request_id: msgspec.Raw, error: RpcError) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "error": error.body()})


def request_line(request_id: int | str, method: str, params: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification_line(method: str, params: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "method": method, "params": params})
