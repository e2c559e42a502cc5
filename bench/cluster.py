"""`python -m bench.cluster`: what PostgreSQL, a second hop and sessions that live elsewhere cost, side by side.

The database is one of its own, with fsync. Each figure is a median, measured in turns with what it is compared to.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.cluster import Nodes
from support.postgres import PostgresServer, require_programs
from support.rpc import RpcClient, connected
from support.server import Server, running_server


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--sessions", type=int, default=1000)
    wanted = parser.parse_args()
    postgres = PostgresServer(require_programs(), fsync=True)
    try:
        postgres.make()
        postgres.start()
        with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder:
            asyncio.run(_run(postgres, Path(folder), wanted))
    finally:
        postgres.remove()


async def _run(postgres: PostgresServer, home: Path, wanted: argparse.Namespace) -> None:
    async with AsyncExitStack() as stack:
        nodes = Nodes(stack, home, postgres.new_database())
        settings = {"log_level": "error", "lease_ms": 30_000}
        first, second = await nodes.start("a", **settings), await nodes.start("b", **settings)
        plain = await stack.enter_async_context(running_server(home / "sqlite", "--no-token"))
        owner, other = await nodes.client(first), await nodes.client(second)
        alone = await stack.enter_async_context(connected(plain.url))
        session, kept = await owner.new_session(), await alone.new_session()
        await other.prompt(session, "chunks 1 1")
        ways: dict[str, Callable[[str], Awaitable[float]]] = {
            "sqlite": lambda text: _turn(alone, kept, text),
            "postgresql": lambda text: _turn(owner, session, text),
            "another node": lambda text: _turn(other, session, text),
        }
        hops: dict[str, Callable[[str], Awaitable[float]]] = {
            "at the owner": lambda text: _ask(owner, session),
            "at another node": lambda text: _ask(other, session),
        }
        await _compare("a request that writes nothing, ms", hops, "", wanted.rounds * 100, lambda took: took * 1000)
        await _compare("one small turn, ms", ways, "chunks 1 1", wanted.rounds * 20, lambda took: took * 1000)
        text = f"chunks {wanted.events} 50"
        await _compare("a stream, events/s", ways, text, wanted.rounds, lambda took: wanted.events / took)
        await _memory(second, owner, other, wanted.sessions)


async def _compare(
    title: str,
    ways: dict[str, Callable[[str], Awaitable[float]]],
    text: str,
    rounds: int,
    figure: Callable[[float], float],
) -> None:
    took: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            seconds = await way(text)
            if turn:  # the first is for caches
                took[name].append(figure(seconds))
    print(title, "· ".join(f"{name}: {statistics.median(found):,.2f} " for name, found in took.items()), flush=True)
    print("  best:", "· ".join(f"{name}: {min(found):,.2f} " for name, found in took.items()), flush=True)


async def _turn(client: RpcClient, session: str, text: str) -> float:
    """Seconds until the answer, which comes after the last event of the turn was put onto the client's stream."""
    began = time.perf_counter()
    answer = await client.prompt(session, text)
    took = time.perf_counter() - began
    assert answer["result"]["stopReason"] == "end_turn", answer
    return took


async def _ask(client: RpcClient, session: str) -> float:
    began = time.perf_counter()
    await client.call("_sandboxagent/session/take_back", {"sessionId": session, "promptId": "none"})
    return time.perf_counter() - began


async def _memory(node: Server, owner: RpcClient, other: RpcClient, count: int) -> None:
    """What a node holds for a client that follows sessions of another."""
    sessions = [await owner.new_session() for _ in range(2 * count)]
    for session in sessions[count:]:  # for caches and buffers
        await other.call("_sandboxagent/session/follow", {"sessionId": session, "after": 0})
    before = _resident(node.pid)
    for session in sessions[:count]:
        await other.call("_sandboxagent/session/follow", {"sessionId": session, "after": 0})
    grown = _resident(node.pid) - before
    print(f"memory for {count} followed sessions that live elsewhere: {grown / count / 1024:.1f} KB each", flush=True)


def _resident(pid: int) -> int:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
