"""A session's record as the bytes that a store keeps: checked on the way in, and told apart from ruins on the way out.

What a record holds comes from clients and agents, who may say anything. A value that does not fit its field would
make the whole record unreadable, so that it is left out before the record is kept.
"""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from sandbox_agent.store.base import SessionRecord

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SessionRecord).decode
_UNFIT = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)
_FIELDS = msgspec.structs.fields(SessionRecord)


class DamagedRecord(Exception):
    """The bytes are not those that were written."""


def encode_record(record: SessionRecord) -> tuple[bytes, list[str]]:
    """The record's bytes, and the names of those fields that were left out because their values do not fit."""
    try:
        encoded = _encode(record)
        _decode(encoded)
    except _UNFIT:
        fitting, unfit = _sift(record)
        return _encode(fitting), unfit
    return encoded, []


def decode_record(encoded: bytes | None, checksum: int | None) -> SessionRecord:
    """Raise DamagedRecord. Records of earlier versions have no checksum; a ruined page may leave nothing of one."""
    if encoded is None:
        raise DamagedRecord("it is empty")
    if checksum is not None and zlib.crc32(encoded) != checksum:
        raise DamagedRecord("wrong checksum")
    try:
        return _decode(encoded)
    except msgspec.MsgspecError as error:
        raise DamagedRecord(str(error)) from error


def _sift(record: SessionRecord) -> tuple[SessionRecord, list[str]]:
    fitting: dict[str, Any] = {}
    unfit: list[str] = []
    for field in _FIELDS:
        try:
            value = msgspec.json.decode(_encode(getattr(record, field.name)))
            fitting[field.name] = msgspec.convert(value, field.type)
        except _UNFIT:
            unfit.append(field.name)
    for name in ("agent", "session_id"):  # ours, and the key to everything: they are never wrong
        fitting.setdefault(name, str(getattr(record, name)))
    return SessionRecord(**fitting), unfit
