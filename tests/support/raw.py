"""HTTP by hand, for requests that no decent client would send."""

from __future__ import annotations

import socket
from dataclasses import dataclass

DEADLINE = 30.0


@dataclass(frozen=True)
class RawAnswer:
    status: int
    headers: dict[str, str]
    body: bytes


def ask(port: int, request: bytes, *, host: str = "127.0.0.1") -> RawAnswer:
    """Send bytes, and read one answer until its end."""
    with socket.create_connection((host, port), timeout=DEADLINE) as connection:
        connection.sendall(request)
        return read_answer(connection, has_body=not request.startswith(b"HEAD "))


def request(method: str, path: str, *headers: tuple[str, str], host: str | None = "127.0.0.1") -> bytes:
    """A request without a body; `host=None` leaves that header out."""
    lines = [f"{method} {path} HTTP/1.1"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def read_answer(connection: socket.socket, *, has_body: bool = True) -> RawAnswer:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65536)
        assert piece, f"the server closed without an answer: {head!r}"
        head += piece
    head, _, body = head.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    status = int(first.split()[1])
    length = int(headers.get("content-length", "0"))
    while has_body and len(body) < length and status not in {101, 204, 304}:
        piece = connection.recv(65536)
        if not piece:
            break
        body += piece
    return RawAnswer(status, headers, body)


def upgrade(path: str, *headers: tuple[str, str], host: str = "127.0.0.1") -> bytes:
    """A WebSocket handshake."""
    return request(
        "GET",
        path,
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        *headers,
        host=host,
    )
