"""`python -m bench.placement`: a fleet of nodes on one database, simulated: who asks the database what, and how often.

What a commit costs the database is measured first, on a PostgreSQL of its own; the fleet itself is simulated, with
nodes that work as ours do: one commit at a time for all that waits, one renewal for all leases, and the owner of a
session looked up once per client.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import math
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from bench.cluster_growth import database_cpu, log_bytes
from bench.growth import short
from sandbox_agent.core.ids import StreamKey
from sandbox_agent.store.postgres.store import PostgresStore
from support.postgres import PostgresServer, require_programs
from support.store_words import postgres_store

_RENEWALS = 6
"""Per lease, as in store/postgres/upkeep.py."""
_CONNECTIONS = 4
"""Of a node to its database, at most."""
_WARMING = 20
"""Commits before those that count."""
_LINE = b'{"jsonrpc":"2.0","method":"session/update","params":{"text":"%b"}}'


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.placement", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10, 100, 300, 1000])
    parser.add_argument("--sessions", type=int, default=1000, help="per node")
    parser.add_argument("--streaming", type=int, default=50, help="of them, per node")
    parser.add_argument("--events", type=float, default=20.0, help="per second and streaming session")
    parser.add_argument("--cores", type=int, default=16, help="of the database")
    parser.add_argument("--seconds", type=float, default=20.0, help="simulated")
    wanted = parser.parse_args()
    cost = measure()
    print(
        f"measured: a commit takes {cost.alone * 1e3:.2f} ms alone; the database's processor works "
        f"{cost.commit * 1e6:.0f} µs for it and {cost.row * 1e6:.1f} µs for each stream in it, "
        f"for which it writes {cost.bytes:.0f} bytes into its log\n"
    )
    columns = []
    for nodes in wanted.nodes:
        fleet = Fleet(nodes, wanted.sessions, wanted.streaming, wanted.events, wanted.cores)
        columns.append({**commits(fleet, cost, wanted.seconds), **lookups(fleet, wanted.seconds)})
    print("| nodes | " + " | ".join(f"{nodes:,}" for nodes in wanted.nodes) + " |")
    print("|---|" + "---:|" * len(wanted.nodes))
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(short(column[name]) for column in columns) + " |")


@dataclass(frozen=True)
class Cost:
    """Seconds: of a commit until it is done, and of the database's processors for it and for each stream in it."""

    alone: float
    commit: float
    row: float
    bytes: float
    """Of the database's log, for each stream in a commit."""


@dataclass(frozen=True)
class Fleet:
    nodes: int
    sessions: int
    streaming: int
    events: float
    cores: int
    lease: float = 30.0
    turn: float = 60.0
    """How long a turn streams; then a prompt of somebody else's begins another."""
    visit: float = 600.0
    """How long a client keeps its connection. The balancer chooses the node of each anew."""


def measure() -> Cost:
    postgres = PostgresServer(require_programs(), fsync=True)
    try:
        postgres.make()
        postgres.start()
        with tempfile.TemporaryDirectory(prefix="bench-placement-") as folder:
            return asyncio.run(_measure(postgres, Path(folder)))
    finally:
        postgres.remove()


async def _measure(postgres: PostgresServer, home: Path, rounds: int = 300, wide: int = 50) -> Cost:
    store = postgres_store(postgres.new_database(), home)
    await store.open()
    try:
        alone, narrow = await _commit(postgres, store, rounds, 1)
        written = log_bytes(postgres)
        _, broad = await _commit(postgres, store, rounds, wide)
        written = log_bytes(postgres) - written
    finally:
        await store.close()
    row = (broad - narrow) / (wide - 1)
    return Cost(alone, narrow - row, row, written / (rounds + _WARMING) / wide)


async def _commit(postgres: PostgresServer, store: PostgresStore, rounds: int, streams: int) -> tuple[float, float]:
    """The median time of a commit with one event for each of so many streams, and what the database worked for it."""
    took = []
    used = 0.0
    for turn in range(rounds + _WARMING):
        if turn == _WARMING:
            used = database_cpu(postgres)
        for number in range(streams):
            text = random.randbytes(60).hex().encode()
            store.append(StreamKey(f"session:mock:{streams}-{number}"), "agent", [_LINE % text])
        began = time.perf_counter()
        await store.safe()
        took.append(time.perf_counter() - began)
    return statistics.median(took[_WARMING:]), (database_cpu(postgres) - used) / rounds


@dataclass
class _Tally:
    commits: int = 0
    rows: float = 0.0
    events: float = 0.0
    busy: float = 0.0
    delays: list[float] = field(default_factory=list)
    """Of the oldest event of each commit, from the agent to whoever may be told."""


def commits(fleet: Fleet, cost: Cost, seconds: float) -> dict[str, float]:
    """Nodes that commit all that waits as soon as the last commit is done, at a database with so many processors.

    What a processor does not work for a commit is waiting for the disk, which commits do together."""
    tally = _Tally()
    flush = max(cost.alone - cost.commit - cost.row, 0.0)
    cores = [0.0] * fleet.cores
    rate = fleet.streaming * fleet.events
    starts = [(first, first) for first in (random.expovariate(rate) for _ in range(fleet.nodes))]
    """When each node begins its next commit, and when the oldest event in it came."""
    heapq.heapify(starts)
    while starts[0][0] < seconds:
        began, oldest = starts[0]
        rows = 1 - (fleet.streaming - 1) * math.expm1(-fleet.events * (began - oldest))
        work = cost.commit + cost.row * rows
        worked = max(heapq.heappop(cores), began) + work
        heapq.heappush(cores, worked)
        done = worked + flush
        if began > seconds / 2:  # it has settled by then
            tally.commits += 1
            tally.rows += rows
            tally.events += 1 + rate * (began - oldest)
            tally.busy += work
            tally.delays.append(done - oldest)
        following = began + random.expovariate(rate)
        heapq.heapreplace(starts, (max(done, following), following))
    span = seconds / 2
    return {
        "streaming sessions": fleet.nodes * fleet.streaming,
        "events per second": tally.events / span,
        "commits per second": tally.commits / span,
        "rows of history per second": tally.rows / span,
        "events per commit": tally.events / tally.commits,
        "MB of the database's log per second": tally.rows * cost.bytes / span / 1e6,
        "busy processors of the database": tally.busy / span,
        "ms until the oldest event of a commit may be told, p50": statistics.median(tally.delays) * 1000,
        "ms until the oldest event of a commit may be told, p99": statistics.quantiles(tally.delays, n=100)[98] * 1000,
        "connections to the database": fleet.nodes * _CONNECTIONS,
        "renewals per second, one per node": fleet.nodes * _RENEWALS / fleet.lease,
        "renewals per second, were it one per session": fleet.nodes * fleet.sessions * _RENEWALS / fleet.lease,
    }


def lookups(fleet: Fleet, seconds: float) -> dict[str, float]:
    """Clients that come to nodes by chance and prompt sessions that live where they were made, by chance too."""
    clients = fleet.nodes * fleet.streaming
    home = [random.randrange(fleet.nodes) for _ in range(clients)]
    place = [random.randrange(fleet.nodes) for _ in range(clients)]
    is_known = [random.random() > fleet.turn / fleet.visit for _ in range(clients)]
    """Whether the client's node has found its session before."""
    links = {(at, to) for at, to in zip(place, home, strict=True) if at != to}
    requests = asked = 0
    now = 0.0
    while now < seconds:
        now += random.expovariate(clients / fleet.turn)
        client = random.randrange(clients)
        if random.random() < fleet.turn / fleet.visit:
            place[client], is_known[client] = random.randrange(fleet.nodes), False
            links.add((place[client], home[client]))
        if place[client] == home[client]:
            continue
        requests += 1
        if not is_known[client]:
            asked += 1
            is_known[client] = True
    return {
        "prompts per second for sessions of other nodes": requests / seconds,
        "of them, owner looked up in the database": asked / seconds,
        "links per node, both directions": 2 * len(links) / fleet.nodes,
    }


if __name__ == "__main__":
    main()
