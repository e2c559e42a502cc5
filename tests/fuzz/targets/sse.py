"""However an event stream arrives, the same events come out, and no bytes are an error."""

from __future__ import annotations

from fuzz.pieces import pieces
from sandbox_agent.client.rpc.sse import EventParser, ServerEvent


def check(data: bytes) -> None:
    whole = EventParser().feed(data)
    parser = EventParser()
    found: list[ServerEvent] = []
    for piece in pieces(data):
        found += parser.feed(piece)
    assert [(event, event.position) for event in found] == [(event, event.position) for event in whole]
    message = b'{"jsonrpc":"2.0"}'
    parser = EventParser()
    parser.feed(data + b"\n\n")
    assert parser.feed(b"event: message\nid: 7\ndata: %b\n\n" % message) == [ServerEvent(7, message)]
