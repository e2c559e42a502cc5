"""Which scenarios run, at which sizes, against which servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.load import Figures
from bench.scenarios import crowds, felt, files, processes, round_trips, starting, streams, versions
from bench.servers import Ours, OursAsPeer, OursAtAcp, OursPlain, Peer, Server

OURS: Callable[[], Server] = Ours
MEMORY: Callable[[], Server] = partial(Ours, "memory")
PEER: Callable[[], Server] = Peer
QUIET: Callable[[], Server] = partial(Peer, is_quiet=True)
ALL = (OURS, MEMORY, PEER, QUIET)
DOORS: tuple[Callable[[], Server], ...] = (OursPlain, OursAtAcp, OursAsPeer)


@dataclass(frozen=True)
class Case:
    """One scenario at one size. `name` is what results and the report know it by."""

    name: str
    run: Callable[..., Figures]
    servers: tuple[Callable[[], Server], ...] = ALL
    rounds: int | None = None
    """Fewer than the others have, for what takes long."""


def quick() -> list[Case]:
    """Under two minutes with two rounds."""
    trip = partial(partial, round_trips.post_round_trips, seconds=0.8)
    trips = ((1, ALL), (16, ALL + DOORS), (64, ALL))
    flood = partial(partial, streams.flood)
    pair = (OURS, PEER)
    return [
        Case("start", starting.start, pair),
        *(Case(f"post-{clients}", trip(clients=clients), servers) for clients, servers in trips),
        Case("flood", flood(events=100_000), (OURS, MEMORY, PEER, *DOORS)),
        Case("flood-8", flood(sessions=8, events=20_000), pair),
        Case("slow", flood(events=100_000, bytes_per_s=16_000_000), pair, rounds=1),
        Case("stalled", flood(events=100_000, stall_ms=1000), pair, rounds=1),
        Case("latency", partial(streams.single_events, events=300), ALL + DOORS),
        Case("replay", partial(streams.replay, events=50_000), pair, rounds=1),
        Case("versions", partial(versions.translate, events=100_000), (OURS,)),
        Case("sessions-50", partial(crowds.open_sessions, sessions=50), pair, rounds=1),
        Case("run", partial(processes.run_commands, times=200), pair),
        Case("output", partial(processes.follow_output, lines=100_000), pair),
        Case("get", partial(files.get_file, mebibytes=256), pair),
        Case("put", partial(files.put_file, mebibytes=256), pair, rounds=1),
        Case("tar", partial(files.upload_tar, files=2000), pair),
        *_felt(history=10_000, sessions=500),
    ]


def _felt(*, history: int, sessions: int) -> list[Case]:
    """What people feel; the peer has no such commands, histories or lists, but it can have an audience."""
    return [
        Case("commands", felt.run_commands, (OURS,), rounds=1),
        Case("first", felt.first_answer, (OURS,)),
        Case("websocket", partial(felt.over_websocket, times=1000), (OURS,)),
        *(
            Case(f"audience-{n}", partial(felt.audience, clients=n, events=5_000), (OURS, PEER), rounds=1)
            for n in (1, 10, 100)
        ),
        Case(f"history-{history}", partial(felt.open_history, events=history), (OURS,), rounds=1),
        Case(f"list-{sessions}", partial(felt.list_sessions, sessions=sessions), (OURS,), rounds=1),
    ]


def full() -> list[Case]:
    """Everything, and three sizes of what may grow."""
    trip = partial(partial, round_trips.post_round_trips, seconds=2.0)
    flood = partial(partial, streams.flood)
    pair = (OURS, PEER)
    return [
        Case("start", starting.start, pair),
        *(Case(f"post-{clients}", trip(clients=clients), ALL + DOORS) for clients in (1, 4, 16, 64, 256)),
        *(
            Case(f"flood{tag}", flood(events=events), servers)
            for tag, events, servers in (
                ("-10k", 10_000, ALL),
                ("", 100_000, ALL + DOORS),
                ("-1m", 1_000_000, pair),
            )
        ),
        *(Case(f"flood-{n}", flood(sessions=n, events=20_000), (OURS, MEMORY, PEER)) for n in (2, 8, 32)),
        Case("slow", flood(events=100_000, bytes_per_s=8_000_000), (OURS, MEMORY, PEER), rounds=1),
        Case("stalled", flood(events=100_000, stall_ms=2000), (OURS, MEMORY, PEER), rounds=1),
        Case("latency", partial(streams.single_events, events=1000), ALL + DOORS),
        *(
            Case(f"replay{tag}", partial(streams.replay, events=n), (OURS, MEMORY, PEER), rounds=2)
            for tag, n in (("-5k", 5_000), ("", 50_000), ("-500k", 500_000))
        ),
        Case("versions", partial(versions.translate, events=300_000), (OURS,)),
        *(
            Case(f"sessions-{n}", partial(crowds.open_sessions, sessions=n), (OURS, MEMORY, PEER), rounds=1)
            for n in (50, 500)
        ),
        Case("sessions-2000", partial(crowds.open_sessions, sessions=2000), (OURS, MEMORY), rounds=1),
        *(Case(f"idle-{n}", partial(crowds.idle_streams, streams=n), (OURS,), rounds=1) for n in (100, 1000, 2000)),
        *(
            Case(
                f"active-{n}",
                partial(streams.many_streams, streams=n, events=100, seconds=3.0),
                pair if n <= 50 else (OURS,),
                rounds=1,
            )
            for n in (20, 50, 200)
        ),
        Case("run", partial(processes.run_commands, times=1000), pair),
        Case("output", partial(processes.follow_output, lines=100_000), pair),
        *(
            Case(f"get{tag}", partial(files.get_file, mebibytes=n), pair)
            for tag, n in (("-64", 64), ("", 256), ("-1024", 1024))
        ),
        *(
            Case(f"put{tag}", partial(files.put_file, mebibytes=n), pair)
            for tag, n in (("-64", 64), ("", 256), ("-1024", 1024))
        ),
        *(
            Case(f"tar{tag}", partial(files.upload_tar, files=n), pair)
            for tag, n in (("-500", 500), ("", 2000), ("-8000", 8000))
        ),
        *_felt(history=100_000, sessions=10_000),
        Case("history-10000", partial(felt.open_history, events=10_000), (OURS,), rounds=1),
        *(Case(f"list-{n}", partial(felt.list_sessions, sessions=n), (OURS,), rounds=1) for n in (100, 1_000)),
        Case("flood-500", flood(sessions=500, events=200, idle_ms=5000), (OURS,), rounds=1),
    ]
