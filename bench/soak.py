"""`python -m bench.soak`: clients that come and go, agents that are killed, cancels and permissions at random.

It ends with a verdict: no event lost or doubled, no process or file descriptor left, memory flat after a warm-up. With
`--hostile`, agents and clients that do all they should not run beside the good ones, at moderate rates, and the times
of health are compared with those of an idle server of the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench import chart
from bench.report import PLOTS, replace_part
from bench.servers import Ours, process_tree
from bench.soak_client import Connection, Ledger, Wrong
from bench.soak_health import measured, percentile
from bench.soak_hostile import PAUSES, CarelessClient, HostileOurs, provoke

FLAT = 0.5
"""Megabytes per minute that still count as flat: what allocators do over ten minutes."""

LONG_ENOUGH = 5.0
"""Minutes before memory is judged."""


SLOW_HEALTH = 100.0
"""Milliseconds at the 99th percentile. On a machine that is busy otherwise, three times what an idle server takes."""

PIPES_OF_AN_AGENT = 4
CARELESS_CLIENTS = 4


@dataclass(frozen=True)
class Manner:
    """How hard the good ones work: seconds between two acts of a session, and between two kills of all agents."""

    pause: float = 0.5
    kills: tuple[float, float] = (8, 20)
    largest_flood: int = 2000


CALM = Manner(pause=4.0, kills=(45, 90), largest_flood=300)
"""Beside hostile ones: it is not about load."""


@dataclass
class Tally:
    acts: Counter[str] = field(default_factory=Counter)
    events: int = 0
    samples: list[tuple[float, float, int]] = field(default_factory=list)
    """Seconds, megabytes, file descriptors."""
    wrongs: list[str] = field(default_factory=list)
    """What was lost, doubled or not answered; whoever met it began anew."""


class Actor:
    """One session, and whoever happens to be its client."""

    def __init__(self, port: int, seed: int, tally: Tally, manner: Manner) -> None:
        self._port = port
        self._manner = manner
        self._random = random.Random(seed)
        self._tally = tally
        self._ledger = Ledger()
        self._session = ""
        self._connection = Connection(port, self._ledger)

    async def run(self, until: float) -> None:
        await self._connection.open()
        answer, _ = await self._connection.request("session/new", {"cwd": "/tmp", "mcpServers": []})
        self._session = answer["result"]["sessionId"]
        self._connection.listen()
        acts = {self._flood: 6, self._ask: 2, self._cancel: 2, self._blink: 2, self._replace_client: 1}
        while time.monotonic() < until:
            act = self._random.choices(list(acts), list(acts.values()))[0]
            await act()
            self._tally.acts[act.__name__.strip("_")] += 1
            await asyncio.sleep(self._random.random() * self._manner.pause)
        self._tally.events += self._ledger.events
        await self._connection.close()

    async def _prompt(self, text: str) -> str:
        """The stop reason, or "died" when the agent was killed. Everything before the answer has been read then."""
        content = [{"type": "text", "text": text}]
        params = {"sessionId": self._session, "prompt": content}
        answer, headers = await self._connection.request("session/prompt", params)
        await self._connection.reached(int(headers["x-acp-last-event-id"]))
        if "error" in answer:
            if answer["error"]["code"] == -32602:
                raise Wrong(f"{answer}")
            return "died"
        return str(answer["result"]["stopReason"])

    async def _flood(self) -> None:
        wanted = self._random.randrange(1, self._manner.largest_flood)
        before = self._ledger.events
        reason = await self._prompt(f"flood {wanted} 100")
        came = self._ledger.events - before
        if reason != "died" and came != wanted:
            raise Wrong(f"{came} updates instead of {wanted}")

    async def _ask(self) -> None:
        turn = asyncio.create_task(self._prompt("ask"))
        asking = asyncio.create_task(self._connection.asked())
        await asyncio.wait({turn, asking}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done() and not turn.done():
            request = asking.result()
            if self._random.random() < 0.7:
                outcome = {"outcome": {"outcome": "selected", "optionId": "yes"}}
                await self._connection.tell({"id": request["id"], "result": outcome})
            else:
                await self._connection.tell({"method": "session/cancel", "params": {"sessionId": self._session}})
        asking.cancel()
        await turn
        self._connection.permission = None

    async def _cancel(self) -> None:
        turn = asyncio.create_task(self._prompt("hang"))
        await asyncio.sleep(self._random.random() * 0.3)
        while not turn.done():
            await self._connection.tell({"method": "session/cancel", "params": {"sessionId": self._session}})
            await asyncio.wait({turn}, timeout=1.0)
        await turn

    async def _blink(self) -> None:
        """Leave the stream in the middle of a turn, and come back for the rest."""
        turn = asyncio.create_task(self._prompt(f"flood {self._manner.largest_flood} 100"))
        await asyncio.sleep(self._random.random() * 0.05)
        await self._connection.leave()
        await asyncio.sleep(self._random.random() * 0.2)
        self._connection.listen()
        await turn

    async def _replace_client(self) -> None:
        await self._connection.close()
        self._connection = Connection(self._port, self._ledger)
        await self._connection.open()
        self._connection.listen()


async def kill_agents(server: Ours, until: float, tally: Tally, manner: Manner) -> None:
    while time.monotonic() < until - 5:
        await asyncio.sleep(random.uniform(*manner.kills))
        for pid in process_tree(server.pid)[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                tally.acts["agents killed"] += 1


async def take_samples(server: Ours, tally: Tally) -> None:
    began = time.monotonic()
    while True:
        tally.samples.append((time.monotonic() - began, server.memory(), count_files(server)))
        await asyncio.sleep(1.0)


def count_files(server: Ours) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


async def soak(server: Ours, *, minutes: float, sessions: int, is_hostile: bool) -> Tally:
    tally = Tally()
    manner = CALM if is_hostile else Manner()
    until = time.monotonic() + minutes * 60
    sampling = asyncio.create_task(take_samples(server, tally))

    async def persist(run: Callable[[], Awaitable[None]]) -> None:
        while time.monotonic() < until:
            try:
                await run()
            except (Wrong, OSError) as error:
                tally.wrongs.append(f"{type(error).__name__}: {error}")
                print(f"after {tally.samples[-1][0]:.0f} s: {tally.wrongs[-1][:500]}", flush=True)

    async with asyncio.TaskGroup() as group:
        for seed in range(sessions):
            group.create_task(persist(lambda seed=seed: Actor(server.port, seed, tally, manner).run(until)))  # type: ignore[misc]
        group.create_task(kill_agents(server, until, tally, manner))
        if is_hostile:
            for kind in PAUSES:
                group.create_task(persist(lambda kind=kind: provoke(server.port, kind, until, tally.acts)))  # type: ignore[misc]
            for seed in range(CARELESS_CLIENTS):
                group.create_task(
                    persist(lambda seed=seed: CarelessClient(server.port, seed, tally.acts).run(until))  # type: ignore[misc]
                )
    sampling.cancel()
    return tally


def growth(samples: list[tuple[float, float, int]]) -> float:
    """Megabytes per minute, by least squares, over the last two thirds."""
    later = samples[len(samples) // 3 :]
    xs, ys = [at / 60 for at, _, _ in later], [memory for _, memory, _ in later]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle_x) ** 2 for x in xs) or 1.0
    return sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / spread


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--sessions", type=int, help="good ones  [50, or 10 with --hostile]")
    parser.add_argument("--hostile", action="store_true", help="hostile agents and clients beside the good ones")
    wanted = parser.parse_args()
    server, idle = (HostileOurs() if wanted.hostile else Ours()), Ours()
    sessions = wanted.sessions or (10 if wanted.hostile else 50)
    with idle.running():
        server.start()
        try:
            files = count_files(server)
            with measured(idle.folder / "health", server.port, idle.port) as (health, idle_health):
                tally = asyncio.run(soak(server, minutes=wanted.minutes, sessions=sessions, is_hostile=wanted.hostile))
            time.sleep(1.0)
            left = count_files(server) - files
            started = process_tree(server.pid)
            busy = server.cpu() / (wanted.minutes * 60)
            server.terminate(10.0)
            orphans = [pid for pid in started if is_alive(pid)]
        finally:
            server.stop()
    slope = growth(tally.samples)
    problems = [*tally.wrongs]
    if left > PIPES_OF_AN_AGENT * (1 + (len(PAUSES) if wanted.hostile else 0)) + 1:  # and what a store opens once
        problems.append(f"{left} file descriptors are left")
    if orphans:
        problems.append(f"processes are left: {orphans}")
    if slope > FLAT and wanted.minutes >= LONG_ENOUGH:
        problems.append(f"memory grows by {slope:.2f} MB a minute")
    if -1.0 in health:
        problems.append(f"health was not answered {health.count(-1.0)} times")
    if percentile(health, 0.99) > max(SLOW_HEALTH, 3 * percentile(idle_health, 0.99)):
        problems.append("health is slow")
    text = describe(tally, wanted.minutes, sessions, slope, left, problems)
    text += f" Health: {times(health)}; an idle server beside it: {times(idle_health)}. "
    text += f"The server used {busy:.0%} of a core."
    print(text)
    if wanted.minutes >= 2 and not wanted.hostile:
        write_page(tally, text)
    if problems:
        raise SystemExit(1)


def write_page(tally: Tally, text: str) -> None:
    PLOTS.mkdir(parents=True, exist_ok=True)
    lines = {
        "memory, MB": [(at, memory) for at, memory, _ in tally.samples],
        "open files": [(at, float(files)) for at, _, files in tally.samples],
    }
    (PLOTS / "soak.svg").write_text(chart.lines("Soak", lines, unit="", across="seconds"))
    replace_part("soak", text + "\n\n![Soak: memory and open files](performance/soak.svg)")


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def times(health: list[float]) -> str:
    p50, p99 = percentile(health, 0.5), percentile(health, 0.99)
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, at most {max(health):.0f} ms of {len(health):,}"


def describe(tally: Tally, minutes: float, sessions: int, slope: float, left: int, problems: list[str]) -> str:
    acts = ", ".join(f"{number:,} {name}" for name, number in tally.acts.most_common())
    memory = "memory flat" if minutes >= LONG_ENOUGH else f"memory not judged in under {LONG_ENOUGH:g} minutes"
    verdict = "; ".join(problems) or f"no event lost or doubled, no process left, {memory}"
    warm = tally.samples[len(tally.samples) // 3][1]
    return (
        f"{minutes:g} minutes, {sessions} sessions, {tally.events:,} events, all counted: {acts}. "
        f"Memory grows by {slope:+.2f} MB a minute after the warm-up ({warm:.0f} MB "
        f"then, {tally.samples[-1][1]:.0f} MB at the end); {left:+d} file descriptors at the end. Verdict: {verdict}."
    )


if __name__ == "__main__":
    main()
