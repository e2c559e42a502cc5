"""Two source trees of ours side by side, by instructions: these are the same on a busy machine as on a quiet one.

python -m bench.instructions BEFORE/src [AFTER] [--requests 1600] [--events 20000]

The server runs under valgrind's callgrind, which is asked for its count before and after each kind of work: of the
thread that serves, and of all (the others write what was journaled to the database). What the kernel does is not seen.
"""

from __future__ import annotations

import argparse
import compileall
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench import load
from bench.prompts import begin_prompts
from bench.servers import Conversation, Ours
from bench.workshop import ROOT

_IDLE_MS = 60_000
_START = "start"


class Counts(NamedTuple):
    loop: float
    """Of the thread that serves."""
    all: float


class Counted(Ours):
    """Ours under valgrind, some fifty times slower."""

    start_patience = 300.0

    def command(self) -> list[str]:
        quiet = ["--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={self.folder / 'valgrind'}"]
        return ["valgrind", *quiet, sys.executable, *super().command()]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "PYTHONHASHSEED": "0", "SANDBOX_AGENT_LOG_LEVEL": "error"}

    def count(self) -> Counts:
        """Instructions until now."""
        asked = ["callgrind_control", "-e", str(self.pid)]
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        threads = [int(found.replace(",", "")) for found in re.findall(r"Th \d+ +([\d,]+)", said)]
        if not threads:
            raise RuntimeError(f"valgrind has not counted: {said}")
        return Counts(threads[0], sum(threads))


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


def measure(source: Path, works: dict[str, tuple[Work, int, int]]) -> Iterator[tuple[str, Counts]]:
    """Instructions for the start, then for each unit of each work, which is done a little before it counts."""
    compileall.compile_dir(source, quiet=2)  # else the first start alone would do that
    server = Counted(source=source)
    server.start()
    try:
        yield _START, server.count()
        for name, (work, few, many) in works.items():
            work(server, server.converse(), few)
            conversation = server.converse()
            before = server.count()
            work(server, conversation, many)
            after = server.count()
            yield name, Counts((after.loop - before.loop) / many, (after.all - before.all) / many)
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=ROOT / "src")
    parser.add_argument("--requests", type=int, default=1600)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--only", help="beginning of a line's name")
    wanted = parser.parse_args()
    requests, events = wanted.requests, wanted.events
    works: dict[str, tuple[Work, int, int]] = {
        "POST, 1 client": (post(1), 160, requests),
        "POST, 16 clients": (post(16), 160, requests),
        "stream, an event": (stream, 5_000, events),
        "single event": (single, 50, 300),
    }
    chosen = {name: work for name, work in works.items() if name.startswith(wanted.only or "")}
    before, after = (dict(measure(tree.resolve(), chosen)) for tree in (wanted.before, wanted.after))
    for name, old in before.items():
        new = after[name]
        print(
            f"{name:18} {old.loop:13,.0f} {new.loop:13,.0f}  x {new.loop / old.loop:.3f}"
            f"   all threads {old.all:13,.0f} {new.all:13,.0f}  x {new.all / old.all:.3f}"
        )


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as missing:
        raise SystemExit(f"{missing.filename} is not installed") from None
