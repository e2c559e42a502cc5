"""Commands in the sandbox: how long one takes to be run, and how fast the output of one comes."""

from __future__ import annotations

import base64
import json
import statistics
import time
from http.client import HTTPConnection

from bench.load import Figures
from bench.servers import Server

_JSON = {"content-type": "application/json"}
_DATA = b'"data":"'


def run_commands(server: Server, *, times: int) -> Figures:
    """`/bin/true`, one after the other, on one connection."""
    with server.running():
        connection = _connect(server)
        body = json.dumps({"command": "/bin/true"})
        took: list[float] = []
        before = 0.0
        for number in range(times + 10):
            if number == 10:
                before = server.cpu()
            began = time.perf_counter()
            answer = _asked(connection, server, "POST", "/v1/processes/run", body)
            took.append(time.perf_counter() - began)
            if json.loads(answer)["exitCode"] != 0:
                raise RuntimeError(f"{server.name}: {answer!r}")
        return {
            "p50_us": statistics.median(took[10:]) * 1e6,
            "p99_us": sorted(took[10:])[int(times * 0.99)] * 1e6,
            "cpu_us": (server.cpu() - before) / times * 1e6,
        }


def follow_output(server: Server, *, lines: int) -> Figures:
    """So many lines of a process, from its start to the last of them in the hands of one who follows its log."""
    with server.running():
        connection = _connect(server)
        expected = sum(len(f"{number}\n") for number in range(1, lines + 1))
        before = server.cpu()
        began = time.perf_counter()
        body = json.dumps({"command": "sh", "args": ["-c", f"seq {lines}; sleep 30"]})
        info = json.loads(_asked(connection, server, "POST", "/v1/processes", body))
        connection.request("GET", f"/v1/processes/{info['id']}/logs?follow=true", headers=server.auth)
        answer = connection.getresponse()
        read = bytearray()
        size = seen = 0
        while size < expected:  # counted only, so that the reader is not what is measured
            piece = answer.read1(1 << 20)
            if not piece:
                raise RuntimeError(f"{server.name}: the log ended after {size} of {expected} bytes")
            read += piece
            while (begin := read.find(_DATA, seen)) >= 0 and (end := read.find(b'"', begin + len(_DATA))) >= 0:
                size += (end - begin - len(_DATA)) * 3 // 4 - read.count(b"=", end - 2, end)
                seen = end
        took = time.perf_counter() - began
        whole = b"".join(base64.b64decode(part.split(b'"', 1)[0]) for part in bytes(read).split(_DATA)[1:])
        if whole != b"".join(b"%d\n" % number for number in range(1, lines + 1)):
            raise RuntimeError(f"{server.name}: the log is not what was printed")
        return {"rate": lines / took, "cpu_ms": (server.cpu() - before) * 1000}


def _connect(server: Server) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", server.port, timeout=60)


def _asked(connection: HTTPConnection, server: Server, verb: str, path: str, body: str) -> bytes:
    connection.request(verb, path, body, {**_JSON, **server.auth})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{server.name}: {answer.status} {content!r}")
    return content
