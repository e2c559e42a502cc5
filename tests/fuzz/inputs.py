"""The kept corpus, and new inputs made of it where no coverage guides: bytes changed, doubled, swapped and joined."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
_LONGEST = 1 << 14
_ODD = (
    b"\0",
    b"\xff",
    b"\n",
    b"\r\n",
    b"\r",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b":",
    b"-1",
    b"1e999",
    b"\\ud800",
    b"data",
)


def corpus(name: str) -> list[Path]:
    return sorted(path for path in (CORPUS / name).iterdir() if path.is_file())


def mutations(seeds: list[bytes], choice: random.Random) -> Iterator[bytes]:
    """Without end."""
    while True:
        data = bytearray(choice.choice(seeds))
        for _ in range(choice.randrange(1, 6)):
            _change(data, seeds, choice)
        yield bytes(data[:_LONGEST])


def _change(data: bytearray, seeds: list[bytes], choice: random.Random) -> None:
    start = choice.randrange(len(data) + 1)
    end = min(len(data), start + choice.randrange(1, 40))
    match choice.randrange(7):
        case 0 if data:
            data[start % len(data)] ^= 1 << choice.randrange(8)
        case 1:
            data[start:end] = b""
        case 2:
            data[start:start] = data[start:end] * choice.randrange(1, 4)
        case 3:
            data[start:start] = choice.choice(_ODD)
        case 4:
            data[start:end] = choice.randbytes(end - start)
        case 5:
            other = choice.choice(seeds)
            data[start:] = other[choice.randrange(len(other) + 1) :]
        case _:
            del data[start:]
