"""A deterministic LLM on loopback, for real agents in tests: four provider APIs, no network, no keys.

Any path prefix is accepted, so that base URLs with and without /v1 work. See `llm_replies.decide` for the directives
that a prompt may hold.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.llm_dialects import Body, Dialect, dialect_of
from support.llm_replies import Failure, Reply, Turn, decide

_MODEL = {"id": "fake-model", "object": "model", "type": "model", "display_name": "Fake", "created": 1}


@dataclass
class Seen:
    """One request to the model. `aborted` turns true when the agent hangs up before the end of the answer."""

    dialect: str
    turn: Turn
    reply: Reply
    request: str = ""
    """Path and body as they came: the model's name and the whole conversation are in it."""
    aborted: bool = False
    finished: bool = False


class FakeLLM:
    """Use as a context manager; `url` is the base without /v1."""

    def __init__(self) -> None:
        self._seen: list[Seen] = []
        self._changed = threading.Condition()
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.llm = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> FakeLLM:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def seen(self) -> list[Seen]:
        with self._changed:
            return list(self._seen)

    def wait_for(self, matches: Callable[[Seen], bool], timeout: float = 30.0) -> Seen:
        """The first request that matches, once it does. Raises TimeoutError. Blocks: call it in a thread."""
        with self._changed:
            if not self._changed.wait_for(lambda: any(map(matches, self._seen)), timeout):
                raise TimeoutError(f"no such request among {[(s.dialect, s.turn.text[-80:]) for s in self._seen]}")
            return next(filter(matches, self._seen))

    def note(self, seen: Seen) -> None:
        with self._changed:
            self._seen.append(seen)
            self._changed.notify_all()

    def settle(self, seen: Seen, *, aborted: bool) -> None:
        with self._changed:
            seen.aborted, seen.finished = aborted, not aborted
            self._changed.notify_all()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    llm: FakeLLM

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Agents hang up as they like; anything else shows in what the test waits for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.endswith("/models"):
            gemini = {"name": "models/fake-model", "supportedGenerationMethods": ["generateContent"]}
            models = [gemini] if "/v1beta" in path else []
            self._send_json({"object": "list", "data": [_MODEL], "has_more": False, "models": models})
        else:
            self._send_json({"error": {"message": f"nothing at {path}"}}, 404)

    def do_POST(self) -> None:
        path, body = self.path.partition("?")[0], self._read_body()
        if path.endswith("/count_tokens"):
            self._send_json({"input_tokens": 10})
        elif path.endswith(":countTokens"):
            self._send_json({"totalTokens": 10})
        elif found := dialect_of(path):
            dialect, streams = found
            self._converse(path, dialect, body, streams=streams or bool(body.get("stream")))
        else:
            self._send_json({"error": {"message": f"nothing at {path}"}}, 404)

    def _converse(self, path: str, dialect: Dialect, body: Body, *, streams: bool) -> None:
        turn = dialect.read(body)
        reply = decide(turn)
        seen = Seen(dialect.name, turn, reply, f"{path} {json.dumps(body)}")
        self.server.llm.note(seen)
        try:
            if isinstance(reply, Failure):
                self._send_json(dialect.error(reply.status), reply.status)
            elif streams:
                self._send_events(dialect.stream(reply, body), reply.pause)
            else:
                self._send_json(dialect.whole(reply, body))
        except OSError:
            self.close_connection = True
            self.server.llm.settle(seen, aborted=True)
        else:
            self.server.llm.settle(seen, aborted=False)

    def _read_body(self) -> Body:
        if "chunked" in (self.headers.get("transfer-encoding") or "").lower():
            raw = b"".join(self._read_chunks())
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body: Body = json.loads(raw or b"{}")
        return body

    def _read_chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().strip() or b"0", 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _send_json(self, document: Body, status: int = 200) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_events(self, events: Iterator[tuple[str | None, Body | str]], pause: float) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, payload in events:
            text = payload if isinstance(payload, str) else json.dumps(payload)
            event = (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event.encode()), event.encode()))
            self.wfile.flush()
            if self.server.llm.stopping.is_set():
                raise BrokenPipeError
            time.sleep(pause)
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
