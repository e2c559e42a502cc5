"""Rule 10, also for a server that was killed: nothing that it started lives on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox_agent.process.roster import RUN_VARIABLE, Roster, end_leftovers
from support.proc_table import processes_at_home
from support.rpc import connected
from support.server import running_server
from support.waiting import until

MOCK = f"exec {sys.executable} -m sandbox_agent.mock_agent"
DETACHING = str(Path(__file__).parents[1] / "support" / "detaching_agent.py")
WANDERER = "setsid sh -c 'echo $$ > {home}/wanderer; exec sleep 300' & "


def agent(script: str) -> str:
    return f"[agents.m]\ncommand = {['sh', '-c', script]!r}\nenv_passthrough = ['SANDBOX_AGENT_MOCK_STATE']\n"


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def wandered_off(home: Path) -> int:
    note = home / "wanderer"
    await until(lambda: note.exists() and note.read_text().endswith("\n"))
    return int(note.read_text())


@contextmanager
def sleeper(env: dict[str, str] | None = None) -> Iterator[int]:
    with subprocess.Popen(["sleep", "300"], env={**os.environ, **(env or {})}, start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.mark.promise("P-shutdown-1")
async def test_a_child_in_a_session_of_its_own_ends_with_an_orderly_stop(tmp_path: Path) -> None:
    config = agent(WANDERER.format(home=tmp_path) + MOCK)
    async with running_server(tmp_path, "--no-token", config=config) as server, connected(server.url, "m") as client:
        await client.new_session()
        wanderer = await wandered_off(tmp_path)
        assert lives(wanderer)
        assert await server.stop() == 0
        assert not lives(wanderer)


async def test_a_child_that_drops_its_environment_and_its_session_ends_with_an_orderly_stop(tmp_path: Path) -> None:
    config = agent(f"env -i setsid sh -c 'echo $$ > {tmp_path}/wanderer; exec sleep 300' & {MOCK}")
    async with running_server(tmp_path, "--no-token", config=config) as server, connected(server.url, "m") as client:
        await client.new_session()
        wanderer = await wandered_off(tmp_path)
        assert await server.stop() == 0
        assert not lives(wanderer)


def detaching(home: Path, *how: str) -> str:
    """An agent that leaves a daemon behind, with a process for each session, as agents have that nobody checked."""
    command = [sys.executable, DETACHING, str(home / "wanderer"), *how]
    return f"[agents.m]\ncommand = {command!r}\nenv_passthrough = ['SANDBOX_AGENT_MOCK_STATE']\nisolation = 'session'\n"


@pytest.mark.parametrize("how", [(), ("bare",)], ids=["marked", "bare"])
async def test_a_daemon_that_an_agent_has_detached_outlives_its_session_and_not_the_server(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    async with (
        running_server(tmp_path, "--no-token", config=detaching(tmp_path, *how)) as server,
        connected(server.url, "m") as client,
    ):
        session = await client.new_session()
        daemon = await wandered_off(tmp_path)
        await client.call("session/close", {"sessionId": session})
        assert lives(daemon), "another session of the agent may use it"
        assert await server.stop() == 0
        assert not lives(daemon)


async def test_a_daemon_that_an_agent_has_detached_is_ended_by_the_start_after_a_kill(tmp_path: Path) -> None:
    config = detaching(tmp_path)
    async with running_server(tmp_path, "--no-token", config=config) as server, connected(server.url, "m") as client:
        await client.new_session()
        daemon = await wandered_off(tmp_path)
        server.kill()
        await server.process.wait()
    assert lives(daemon)
    async with running_server(tmp_path, "--no-token", config=config):
        assert not lives(daemon)


async def test_dead_processes_that_were_left_to_the_server_do_not_pile_up(tmp_path: Path) -> None:
    config = agent(f"for i in 1 2 3; do (setsid sh -c 'sleep 0.2; echo done >> {tmp_path}/strays' &); done; {MOCK}")
    async with running_server(tmp_path, "--no-token", config=config) as server, connected(server.url, "m") as client:
        await client.new_session()
        strays = tmp_path / "strays"
        await until(lambda: strays.exists() and strays.read_text().count("done") == 3)
        await until(lambda: len(own_children(server.pid)) == 1)


def own_children(pid: int) -> list[str]:
    return [child for listing in Path(f"/proc/{pid}/task").glob("*/children") for child in listing.read_text().split()]


@pytest.mark.promise("P-restart-2")
async def test_what_a_killed_server_leaves_is_ended_by_the_next_start(tmp_path: Path) -> None:
    config = agent(WANDERER.format(home=tmp_path) + MOCK + " --ignore-eof")
    async with running_server(tmp_path, "--no-token", config=config) as server, connected(server.url, "m") as client:
        session = await client.new_session()
        turn = asyncio.create_task(client.prompt(session, "terminal sleep 300"))
        await until(lambda: sum(command_of(pid).startswith("sleep") for pid in processes_at_home(tmp_path)) == 2)
        left = set(processes_at_home(tmp_path)) - {server.pid}
        server.kill()
        await server.process.wait()
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
    assert len([pid for pid in left if lives(pid)]) >= 3  # the agent, its terminal, and the one that wandered off
    async with running_server(tmp_path, "--no-token", config=config) as server:
        assert [pid for pid in left if lives(pid)] == []
        assert "ended what an earlier server had left" in server.log_text()


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


_NOBODY = f"4194300-{os.getpid()}"
"""A server that is gone, one for each process that runs tests: they must not end each other's."""


def left_run(data_dir: Path, *notes: tuple[int, int], server: str = _NOBODY) -> str:
    """The record of a server that is gone: pids and start times of its children, among lines that are free or torn."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    folder = data_dir / "running" / f"{server}-{boot}"
    folder.mkdir(parents=True)
    lines = ["", *(f"{pid} {when}" for pid, when in notes), "what is this", "17"]
    (folder / "children").write_text("\n".join(lines))
    return folder.name


def started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def noted(data_dir: Path) -> list[tuple[int, int]]:
    (file,) = data_dir.glob("running/*/children")
    fields = (line.split() for line in file.read_text().splitlines())
    return [(int(pid), int(when)) for pid, when in filter(None, fields)]


def test_a_noted_child_is_ended_and_a_process_that_only_has_its_number_is_not(tmp_path: Path) -> None:
    with sleeper() as ours, sleeper() as stranger:
        left_run(tmp_path, (ours, started(ours)), (stranger, started(stranger) - 1))
        end_leftovers(tmp_path)
        assert (lives(ours), lives(stranger)) == (False, True)
        assert list((tmp_path / "running").iterdir()) == []


def test_the_children_of_a_server_that_is_alive_are_left_alone(tmp_path: Path) -> None:
    with sleeper() as server:
        run = left_run(tmp_path, server=f"{server}-{started(server)}")
        with sleeper({RUN_VARIABLE: run}) as child:
            end_leftovers(tmp_path)
            assert lives(child)
            os.kill(server, signal.SIGKILL)
            os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
            end_leftovers(tmp_path)
            assert not lives(child)


def test_a_server_that_was_started_by_what_an_earlier_one_left_spares_itself(tmp_path: Path) -> None:
    run = left_run(tmp_path)
    script = "import sys, pathlib; from sandbox_agent.process.roster import end_leftovers; "
    script += f"end_leftovers(pathlib.Path({str(tmp_path)!r})); print('alive')"
    nested = ["sh", "-c", f"{sys.executable} -c {script!r}; true"]
    done = subprocess.run(nested, env={**os.environ, RUN_VARIABLE: run}, capture_output=True, text=True, timeout=30)
    assert done.stdout == "alive\n"


def test_a_note_goes_with_its_child_and_the_folder_with_the_roster(tmp_path: Path) -> None:
    roster = Roster()
    roster.open(tmp_path)
    with sleeper() as first, sleeper() as second, sleeper() as third:
        roster.add(first)
        roster.add(second)
        assert noted(tmp_path) == [(first, started(first)), (second, started(second))]
        roster.remove(first)
        assert noted(tmp_path) == [(second, started(second))]
        roster.add(third)  # in the line of the first
        assert noted(tmp_path) == [(third, started(third)), (second, started(second))]
        roster.remove(second)
        roster.remove(third)
    assert noted(tmp_path) == []
    roster.close()
    assert list(tmp_path.glob("running/*")) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_disk_that_takes_no_note_costs_no_child(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    roster = Roster()
    roster.open(tmp_path / "data")
    with sleeper() as pid:
        roster.add(pid)
        roster.remove(pid)
    assert roster.mark == {}
