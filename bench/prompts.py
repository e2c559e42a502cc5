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
