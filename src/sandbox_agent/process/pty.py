"""A terminal for a program: we hold one end of it, the program and all that it starts have the other."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Sequence

from sandbox_agent.process.child import PolledOutput

_READ = 1 << 16
_PIECE = 1 << 12
"""What the kernel gives of a terminal in one read, at most."""
_ADOPT = 'exec "$@" <>"$0" >&0 2>&0'
"""A session's leader that opens a terminal gets it as its own: then Ctrl-C and job control work."""


class Pty:
    """Open until `close`. The program's end stays open here too, so that its last words can be read after its exit."""

    def __init__(self, cols: int, rows: int) -> None:
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self.path = os.ttyname(self.slave)
        self._is_open = True
        self.resize(cols, rows)

    def command(self, command: Sequence[str]) -> list[str]:
        """What to launch, with `slave` as all three ends, so that the program has this terminal as its own."""
        return ["/bin/sh", "-c", _ADOPT, self.path, *command]

    def resize(self, cols: int, rows: int) -> None:
        """The foreground program is told by SIGWINCH if that changes anything."""
        if self._is_open:
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.slave)
            os.close(self.master)


class PtyOutput(PolledOutput):
    """What is printed on a terminal, gathered to large chunks: a terminal gives little in one read."""

    def _read_some(self) -> bool:
        """Hand on what is there, up to a bound; whether there may be more."""
        pieces: list[bytes] = []
        size = 0
        with contextlib.suppress(OSError):  # it is empty, or hung up
            while size < _READ and (piece := os.read(self._fd, _PIECE)):
                pieces.append(piece)
                size += len(piece)
        if pieces:
            self._on_chunk(b"".join(pieces))
        return size >= _READ
