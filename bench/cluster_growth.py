"""`python -m bench.cluster_growth`: how cost grows from 1 to 4 nodes, and from 100 to 10,000 sessions.

All nodes and their PostgreSQL (its own, with fsync) share this machine: what matters is processor time per event and
what the database is asked, not the rate that the machine reaches with all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from bench.growth import short, slope
from support.cluster import Nodes
from support.postgres import PostgresServer, require_programs
from support.rpc import RpcClient
from support.server import Server

_SETTINGS = {"log_level": "error", "lease_ms": 30_000}
_IDLE = 10.0
_TOGETHER = 16
"""How many sessions are made at the same time."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster_growth", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 2, 3, 4])
    parser.add_argument("--sessions", type=int, nargs="*", default=[100, 1_000, 10_000])
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args()
    postgres = PostgresServer(require_programs(), fsync=True)
    try:
        postgres.make()
        postgres.start()
        with tempfile.TemporaryDirectory(prefix="bench-growth-") as folder:
            asyncio.run(_run(Bench(postgres, Path(folder), wanted.events, wanted.rounds), wanted))
    finally:
        postgres.remove()


async def _run(bench: Bench, wanted: argparse.Namespace) -> None:
    await _table("nodes", wanted.nodes, bench.with_nodes)
    await _table("sessions", wanted.sessions, bench.with_sessions)


async def _table(title: str, sizes: list[int], measure: Callable[[int], Awaitable[dict[str, float]]]) -> None:
    """One line per figure, with the slope of its growth."""
    figures: dict[str, list[tuple[float, float]]] = {}
    for size in sizes:
        for name, value in (await measure(size)).items():
            figures.setdefault(name, []).append((size, value))
            print(f"  {size} {title}: {name} {short(value)}", file=sys.stderr, flush=True)
    print(f"\n| by {title} | " + " | ".join(f"{size:,}" for size in sizes) + " | slope |")
    print("|---|" + "---:|" * (len(sizes) + 1))
    for name, points in figures.items():
        known = dict(points)
        cells = [short(known[size]) if size in known else "" for size in sizes]
        grown = f"{slope(points):.2f}" if len(points) > 1 else ""
        print(f"| {name} | " + " | ".join(cells) + f" | {grown} |", flush=True)


@dataclass(frozen=True)
class Bench:
    postgres: PostgresServer
    home: Path
    events: int
    rounds: int

    async def with_nodes(self, count: int) -> dict[str, float]:
        """Every node streams at the same time, each to a client of its own."""
        async with AsyncExitStack() as stack:
            nodes = Nodes(stack, self.home / f"nodes-{count}", self.postgres.new_database())
            servers = [await nodes.start(f"n{number}", **_SETTINGS) for number in range(count)]
            clients = [await nodes.client(server) for server in servers]
            sessions = [await client.new_session() for client in clients]
            found = {"transactions per second, idle": await self._idle_transactions(nodes)}
            found["ms of a small turn"] = await _median_turn(clients[0], sessions[0], self.rounds * 20)
            if count > 1:
                found["ms of a small turn, asked of another node"] = await _median_turn(
                    clients[1], sessions[0], self.rounds * 20
                )
            text = f"chunks {self.events} 50"
            rates, costs, database, log = [], [], [], []
            for _ in range(self.rounds):
                written, asked = log_bytes(self.postgres), database_cpu(self.postgres)
                used, began = cpu(server.pid for server in servers), time.perf_counter()
                await asyncio.gather(*(_turn(*each, text) for each in zip(clients, sessions, strict=True)))
                total = count * self.events
                rates.append(total / (time.perf_counter() - began))
                costs.append((cpu(server.pid for server in servers) - used) * 1e6 / total)
                database.append((database_cpu(self.postgres) - asked) * 1e6 / total)
                log.append((log_bytes(self.postgres) - written) / total)
            found["events per second in all"] = statistics.median(rates)
            found["µs of a node per event"] = statistics.median(costs)
            found["µs of the database per event"] = statistics.median(database)
            found["bytes of the database's log per event"] = statistics.median(log)
        return found

    async def with_sessions(self, count: int) -> dict[str, float]:
        """All at one node, seen from a second, and taken over by it in the end."""
        async with AsyncExitStack() as stack:
            nodes = Nodes(stack, self.home / f"sessions-{count}", self.postgres.new_database())
            first, second = await nodes.start("a", **_SETTINGS), await nodes.start("b", **_SETTINGS)
            owner, other = await nodes.client(first, deadline=60.0), await nodes.client(second, deadline=60.0)
            await owner.new_session()
            resident, began = _resident(first), time.perf_counter()
            sessions = await _make(owner, count)
            found = {"ms of a new session": (time.perf_counter() - began) * 1000 / count}
            found["KB of the owner per session"] = (_resident(first) - resident) / 1024 / count
            found["transactions per second, idle"] = await self._idle_transactions(nodes)
            found["ms of a small turn"] = await _median_turn(owner, sessions[0], self.rounds * 20)
            found["ms of a small turn, asked of another node"] = await _median_turn(
                other, sessions[-1], self.rounds * 20
            )
            found["ms of a page of the list, at another node"] = await _median(
                lambda: other.call("session/list", {}), self.rounds * 4
            )
            found["ms of `GET /v1/nodes`"] = await _median(lambda: other.http.get("/v1/nodes"), self.rounds * 4)
            began = time.perf_counter()
            await nodes.start("c", **_SETTINGS)
            found["seconds until a third node is there"] = time.perf_counter() - began
            began = time.perf_counter()
            stopping = asyncio.create_task(first.stop(signal.SIGTERM, deadline=120))
            await other.prompt(sessions[0], "chunks 1 1")
            found["seconds until a turn is answered when the owner is told to stop"] = time.perf_counter() - began
            await stopping
        return found

    async def _idle_transactions(self, nodes: Nodes) -> float:
        await asyncio.sleep(11.0)  # a connection of PostgreSQL that rests says within 10 s what it has done
        before, began = self._transactions(nodes), time.perf_counter()
        await asyncio.sleep(_IDLE)
        return max(self._transactions(nodes) - before - 1, 0) / (time.perf_counter() - began)

    def _transactions(self, nodes: Nodes) -> int:
        counted = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        return int(self.postgres.sql(counted, nodes.database_name))


async def _make(owner: RpcClient, count: int) -> list[str]:
    gate = asyncio.Semaphore(_TOGETHER)

    async def one() -> str:
        async with gate:
            return await owner.new_session()

    return await asyncio.gather(*(one() for _ in range(count)))


async def _median_turn(client: RpcClient, session: str, rounds: int) -> float:
    return await _median(lambda: _turn(client, session, "chunks 1 1"), rounds)


async def _median(call: Callable[[], Awaitable[object]], rounds: int) -> float:
    """In milliseconds."""
    took = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        await call()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took[1:])  # the first is for caches


async def _turn(client: RpcClient, session: str, text: str) -> None:
    answer = await client.prompt(session, text)
    assert answer["result"]["stopReason"] == "end_turn", answer


def database_cpu(postgres: PostgresServer) -> float:
    """Of all who work for the database, in seconds."""
    pids = postgres.sql("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()").split()
    return cpu(map(int, pids))


def log_bytes(postgres: PostgresServer) -> int:
    """How much the database has written into its log so far."""
    return int(postgres.sql("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"))


def cpu(pids: Iterable[int]) -> float:
    """Seconds of processor time that processes have used, in the threads that they still have."""
    threads = (thread for pid in pids for thread in Path(f"/proc/{pid}/task").iterdir())
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def _resident(server: Server) -> int:
    line = next(
        line for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if line.startswith("VmRSS")
    )
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
