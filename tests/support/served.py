"""One server for all tests of a module that only look at it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from support.server import Server, running_server

TOKEN = "correct-horse-battery"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def served(home: Path, *flags: str, **more: Any) -> Iterator[Server]:
    """As `running_server`, for tests that are not coroutines: it runs in a loop and a thread of its own."""
    started: list[Server] = []
    failed: list[BaseException] = []
    is_up = threading.Event()
    loop = asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        try:
            async with running_server(home, *flags, **more) as server:
                started.append(server)
                is_up.set()
                await done.wait()
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            is_up.set()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert is_up.wait(60), "the server did not start"
    assert started, failed
    try:
        yield started[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(30)
        loop.close()


def empty_registry(home: Path) -> dict[str, str]:
    """Settings for a server that finds no agent to install, and asks nobody else."""
    home.mkdir(parents=True, exist_ok=True)
    index = home / "registry.json"
    index.write_text('{"version":"1.0.0","agents":[]}')
    return {"SANDBOX_AGENT_ACP_REGISTRY_URL": index.as_uri()}


def client(server: Server, **headers: str) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers=headers, timeout=60, trust_env=False)


def problem(answer: httpx.Response) -> str:
    """The kind of problem that an answer is."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    return str(body["type"]).removeprefix("urn:sandbox-agent:error:")
