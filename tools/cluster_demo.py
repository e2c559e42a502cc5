"""`make cluster-demo`: three servers share one PostgreSQL database; one of them dies in the middle of a turn.

Needs PostgreSQL's programs (Debian: `postgresql`). Everything runs on this machine, and is removed in the end.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rich.console import Console

from support.cluster import Nodes, chunks, history
from support.postgres import PostgresServer, find_programs
from support.rpc import Events, RpcClient
from support.server import Server

_LEASE = 3
_console = Console(highlight=False)
_began = time.monotonic()


def main() -> int:
    programs = find_programs()
    if programs is None:
        _console.print("PostgreSQL is not installed: on Debian and Ubuntu, install the package postgresql")
        return 1
    postgres = PostgresServer(programs, fsync=True)
    try:
        postgres.make()
        postgres.start()
        say("database", f"PostgreSQL on port {postgres.port}, in a temporary directory")
        with tempfile.TemporaryDirectory(prefix="sandbox-agent-cluster-") as home:
            return asyncio.run(_run(postgres, Path(home)))
    finally:
        postgres.remove()


def say(who: str, what: str) -> None:
    _console.print(f"[dim]{time.monotonic() - _began:5.1f} s[/]  [bold]{who:<9}[/] {what}", soft_wrap=True)


async def _run(postgres: PostgresServer, home: Path) -> int:
    async with AsyncExitStack() as stack:
        nodes = Nodes(stack, home, postgres.new_database())
        settings = {"lease_ms": _LEASE * 1000, "log_level": "error"}
        servers = await asyncio.gather(*(nodes.start(name, **settings) for name in ("a", "b", "c")))
        for name, server in zip("abc", servers, strict=True):
            say(f"node {name}", f"listens on {server.url}")
        first, second, third = [await nodes.client(server) for server in servers]
        await _show_nodes(third)
        session = await first.new_session(title="cluster demo")
        say("node a", f"a client starts the session {session}: node a owns it")
        watched = await nodes.stream(second)
        await second.call("session/resume", {"sessionId": session, "cwd": str(home), "mcpServers": []})
        say("node b", "another client watches the same session from here")
        printing = asyncio.create_task(_print_as_it_comes("node b", watched))
        try:
            return await _kill_and_go_on(nodes, servers[0], first, third, watched, session)
        finally:
            printing.cancel()


async def _kill_and_go_on(
    nodes: Nodes, owner: Server, first: RpcClient, third: RpcClient, watched: Events, session: str
) -> int:
    say("node a", "a prompt: count slowly")
    prompting = asyncio.create_task(first.prompt(session, "slow 200", turnId="counting"))
    await watched.wait_until(lambda events: len(chunks(events)) >= 8)
    killed = time.monotonic()
    owner.kill()
    say("node a", "[red]killed (kill -9) in the middle of the turn[/]")
    await asyncio.gather(prompting, return_exceptions=True)
    say("node c", "a third client asks what became of the turn, with the same turnId")
    lost = await third.prompt(session, "slow 200", turnId="counting")
    say("node c", f"answer: {lost['error']['message']}")
    say(
        "node c",
        f"took the session over {time.monotonic() - killed:.1f} s after the kill (leases last {_LEASE} s here)",
    )
    answer = await third.prompt(session, "chunks 3 1")
    say("node c", f"a new prompt runs here: {answer['result']['stopReason']}")
    await watched.wait_until(lambda events: chunks(events)[-3:] == ["1", "2", "3"])
    await _show_nodes(third)
    kept = [text for entry in await history(third, session) if (text := _text(entry)) is not None]
    is_same = kept == chunks(watched)
    say("check", f"history has {len(kept)} messages of the agent; the client at node b saw {len(chunks(watched))}")
    say("check", "[green]the same, in the same order[/]" if is_same else "[red]they differ[/]")
    return 0 if is_same else 1


async def _print_as_it_comes(who: str, events: Events) -> None:
    shown: list[str] = []

    def has_more(now: Events) -> bool:
        return len(chunks(now)) > len(shown)

    while True:
        await events.wait_until(has_more, deadline=600)
        fresh = chunks(events)[len(shown) :]
        shown.extend(fresh)
        say(who, f"[cyan]sees: {' · '.join(fresh)}[/]")


async def _show_nodes(client: RpcClient) -> None:
    listed = (await client.http.get("/v1/nodes")).json()["nodes"]
    words = [f"{node['id']} is {node['state']} and owns {node['sessions']}" for node in listed]
    say("nodes", " · ".join(words))


def _text(entry: dict[str, Any]) -> str | None:
    update = (entry["envelope"].get("params") or {}).get("update") or {}
    return str(update["content"]["text"]).strip() if update.get("sessionUpdate") == "agent_message_chunk" else None


if __name__ == "__main__":
    sys.exit(main())
