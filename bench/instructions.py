"""Two source trees of ours side by side, by instructions: these are the same on a busy machine as on a quiet one.

python -m bench.instructions BEFORE/src [AFTER] [--requests 1600] [--events 20000]

The server runs under valgrind's callgrind. Each kind of work is done at two sizes, and what the larger needs more is
divided by how much larger it is, so that neither the start nor the end counts; these are a line of their own. What the
kernel does is not seen.
"""

from __future__ import annotations

import argparse
import compileall
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from bench import load
from bench.prompts import begin_prompts
from bench.servers import Conversation, Ours
from bench.workshop import ROOT

_IDLE_MS = 60_000
_ONCE = (0, 1)
"""For what is done once in the life of a server."""


class Counted(Ours):
    """Ours under valgrind, some fifty times slower."""

    start_patience = 300.0

    def command(self) -> list[str]:
        program = super().command()
        quiet = ["--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={self.folder / 'counts'}"]
        return ["valgrind", *quiet, sys.executable, *program]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "PYTHONHASHSEED": "0", "SANDBOX_AGENT_LOG_LEVEL": "error"}

    def instructions(self) -> int:
        """Of the whole run; the server has ended."""
        found = re.search(r"Collected : (\d+)", (self.folder / "counts").read_text())
        if found is None:
            raise RuntimeError("valgrind has not counted")
        return int(found[1])


Work = Callable[[Ours, Conversation, int], None]


def post(clients: int) -> Work:
    def work(server: Ours, conversation: Conversation, times: int) -> None:
        sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(clients)]
        requests = [conversation.echo(key) for key in range(clients)]
        try:
            for _ in range(times // clients):
                for each, request in zip(sockets, requests, strict=True):
                    each.sendall(request)
                for each in sockets:
                    _read_answer(each)
        finally:
            for each in sockets:
                each.close()

    return work


def stream(server: Ours, conversation: Conversation, events: int) -> None:
    _read(server, conversation, f"flood {events} 100", events)


def single(server: Ours, conversation: Conversation, events: int) -> None:
    _read(server, conversation, f"tick {events} 20000", events)


def _read(server: Ours, conversation: Conversation, prompt: str, events: int) -> None:
    with begin_prompts(server, [conversation], prompt) as begin:
        figures = load.read_streams(
            server.port, [conversation.stream()], expected=events, begin=begin, idle_ms=_IDLE_MS
        )
    if figures["missing"] or figures["doubled"]:
        raise RuntimeError(f"events lost or doubled: {figures}")


def _read_answer(each: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += each.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    if length is None or not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"not answered: {received[:500]!r}")
    missing = int(length[1]) - len(body)
    while missing > 0:
        missing -= len(each.recv(65536))


def _run(source: Path, work: Work, size: int) -> int:
    server = Counted(source=source)
    server.start()
    try:
        work(server, server.converse(), size)
        if not server.terminate(120):
            raise RuntimeError("the server did not end")
        return server.instructions()
    finally:
        server.stop()


def start(server: Ours, conversation: Conversation, times: int) -> None:
    """Nothing more than a start, a first session and the end."""


def per_unit(source: Path, work: Work, sizes: tuple[int, int]) -> float:
    if sizes == _ONCE:
        return float(_run(source, work, 1))
    small, large = (_run(source, work, size) for size in sizes)
    return (large - small) / (sizes[1] - sizes[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=ROOT / "src")
    parser.add_argument("--requests", type=int, default=1600)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--only", help="beginning of a line's name")
    wanted = parser.parse_args()
    requests, events = wanted.requests, wanted.events
    works: dict[str, tuple[Work, tuple[int, int]]] = {
        "POST, 1 client": (post(1), (160, 160 + requests)),
        "POST, 16 clients": (post(16), (160, 160 + requests)),
        "stream, an event": (stream, (5_000, 5_000 + events)),
        "single event": (single, (50, 250)),
        "start and end": (start, _ONCE),
    }
    for tree in (wanted.before, wanted.after):
        compileall.compile_dir(tree, quiet=2)  # else the first run alone would do that
    for name, (work, sizes) in works.items():
        if name.startswith(wanted.only or ""):
            before, after = (per_unit(tree.resolve(), work, sizes) for tree in (wanted.before, wanted.after))
            print(f"{name:20} {before:12,.0f} {after:12,.0f}   x {after / before:.3f}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as missing:
        raise SystemExit(f"{missing.filename} is not installed") from None
