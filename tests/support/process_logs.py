"""Reading the logs of processes over HTTP."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx


def printed(entries: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(entry["data"]) for entry in entries)


def followed(
    http: httpx.Client, process: str, *, after: int | None = None, hold: bool = False
) -> Iterator[dict[str, Any]]:
    """The events of a followed log, each with `event`, `id` and `data`; closed when one stops asking."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    query = {"follow": "true", **({"hold": "true"} if hold else {})}
    with http.stream("GET", f"/v1/processes/{process}/logs", params=query, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        event: dict[str, Any] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name in {"event", "id", "data"}:
                event[name] = value
            elif not line and "data" in event:
                yield {"event": event["event"], "id": int(event["id"]), "data": json.loads(event["data"])}
                event = {}


def ending(http: httpx.Client, process: str) -> dict[str, Any]:
    """The process, once it has exited."""
    *_, last = followed(http, process)
    info: dict[str, Any] = last["data"]
    return info
