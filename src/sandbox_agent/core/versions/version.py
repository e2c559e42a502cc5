"""The versions of ACP that we speak."""

from __future__ import annotations

import enum
from typing import Any

Object = dict[str, Any]


class Version(enum.IntEnum):
    """A protocol version, as `initialize` numbers it."""

    V1 = 1
    V2 = 2


LATEST = max(Version)
