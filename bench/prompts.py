"""Prompts that are sent and left to run, while something else reads what comes of them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence

from bench.servers import Conversation, Server


@contextlib.contextmanager
def begin_prompts(server: Server, conversations: Sequence[Conversation], text: str) -> Iterator[Callable[[], None]]:
    """Gives a function that sends `text` to every conversation at once; the sockets are closed at the end."""
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in conversations]

    def begin() -> None:
        for each, conversation in zip(sockets, conversations, strict=True):
            each.sendall(conversation.prompt(text))

    try:
        yield begin
    finally:
        for each in sockets:
            each.close()


def run_prompt(server: Server, conversation: Conversation, text: str, *, timeout: float = 120.0) -> None:
    """Send a prompt and wait for the end of its turn."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=timeout) as each:
        each.sendall(conversation.prompt(text))
        received = b""
        while b"stopReason" not in received:
            chunk = each.recv(65536)
            if not chunk:
                raise RuntimeError(f"{server.name}: the prompt was not answered: {received[:500]!r}")
            received += chunk
