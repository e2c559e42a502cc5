"""Many sessions, and many who only listen."""

from __future__ import annotations

import resource
import selectors
import socket
import time

from bench.load import Figures
from bench.servers import Ours, Server


def open_sessions(server: Server, *, sessions: int) -> Figures:
    """Sessions one after the other, each on a connection of its own: time and memory for each."""
    with server.running():
        server.converse()
        before, own = server.all_memory(), server.memory()
        began = time.perf_counter()
        for _ in range(sessions):
            server.converse()
        seconds = time.perf_counter() - began
        time.sleep(0.3)
        return {
            "ms_each": seconds / sessions * 1000,
            "kb_each": (server.all_memory() - before) / sessions * 1024,
            "own_kb_each": (server.memory() - own) / sessions * 1024,
            "processes": server.process_count(),
        }


def idle_streams(server: Server, *, streams: int) -> Figures:
    """Readers to whom nothing is said: memory for each, and CPU while nothing happens."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    with server.running():
        first = server.converse()
        before = server.memory()
        sockets = []
        for _ in range(streams):
            # The peer needs a process for each; ours needs a connection for each.
            conversation = (
                type(first)(first.path, server.connect(), "") if isinstance(server, Ours) else server.converse()
            )
            each = socket.create_connection(("127.0.0.1", server.port))
            each.sendall(conversation.stream())
            sockets.append(each)
        _wait_for_answers(sockets)
        memory, cpu = server.memory(), server.cpu()
        time.sleep(2.0)
        busy = (server.cpu() - cpu) / 2.0
        for each in sockets:
            each.close()
        return {"kb_each": (memory - before) / streams * 1024, "cpu_share": busy}


def _wait_for_answers(sockets: list[socket.socket]) -> None:
    deadline = time.monotonic() + 30
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(selector.get_map())} streams were not answered")
            for key, _ in selector.select(1.0):
                selector.unregister(key.fileobj)
