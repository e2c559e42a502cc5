"""How bytes may arrive: cut anywhere, but for the same bytes always in the same places."""

from __future__ import annotations

import random
import zlib


def pieces(data: bytes, *, most: int = 5) -> list[bytes]:
    choice = random.Random(zlib.crc32(data))
    cuts = sorted(choice.randrange(len(data) + 1) for _ in range(choice.randrange(most)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
