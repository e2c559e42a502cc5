"""The processes of a hub: run, start, log, input, stop, limits, and what a restart keeps."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox_agent.errors import Conflict, Forbidden, InvalidParams, NotFound, TooLarge
from sandbox_agent.files import FileService
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.processes.processes import Processes
from sandbox_agent.hub.processes.views import ProcessInfo, RunProcess, StartProcess, TerminalSize
from support.limits import HUB_OPTIONS, file_limits, hub_options_under
from support.processes import gone

DEADLINE = 30.0


def made(home: Path, *, roots: tuple[Path, ...] = (), feed: Feed | None = None, **options: Any) -> Processes:
    limits = msgspec.structs.replace(HUB_OPTIONS.processes.limits, **options.pop("limits", {}))
    chosen = dataclasses.replace(hub_options_under(home).processes, limits=limits, **options)
    files = FileService(roots, home, file_limits(), data_dir=None)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "SECRET_TOKEN": "hidden"}
    return Processes(environ, files, feed or Feed(kept_bytes=1 << 20), chosen)


def shell(script: str, **more: Any) -> StartProcess:
    return StartProcess(command="sh", args=["-c", script], **more)


async def output(processes: Processes, info: ProcessInfo) -> bytes:
    """All that it printed, once it has exited."""
    process = processes.get(info.id)
    async with asyncio.timeout(DEADLINE):
        await process.exited.wait()
        reader, content = process.log.read_from(0), b""
        while not reader.is_over:
            content += b"".join(entry.content for entry in (await reader.take()).entries)
    return content


async def said(processes: Processes, info: ProcessInfo, text: bytes) -> None:
    reader, content = processes.get(info.id).log.read_from(0), b""
    async with asyncio.timeout(DEADLINE):
        while text not in content:
            content += b"".join(entry.content for entry in (await reader.take(wait=DEADLINE)).entries)


async def test_a_command_is_run_to_its_end(tmp_path: Path) -> None:
    processes = made(tmp_path)
    result = await processes.run(RunProcess(command="sh", args=["-c", "echo out; echo err >&2; exit 3"]))
    assert (result.exit_code, result.signal, result.timed_out) == (3, None, False)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    killed = await processes.run(RunProcess(command="sh", args=["-c", "kill -TERM $$"]))
    assert (killed.exit_code, killed.signal) == (None, "SIGTERM")
    assert processes.listed() == []


async def test_a_command_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    processes = made(tmp_path)
    script = f"echo $$ > {tmp_path}/pid; sleep 1000 & echo begun; wait"
    result = await processes.run(RunProcess(command="sh", args=["-c", script], timeout_ms=500))
    assert (result.timed_out, result.exit_code, result.signal, result.stdout) == (True, None, "SIGKILL", "begun\n")
    await gone(int((tmp_path / "pid").read_text()))


async def test_output_of_a_command_is_bounded_and_says_so(tmp_path: Path) -> None:
    processes = made(tmp_path)
    result = await processes.run(RunProcess(command="sh", args=["-c", "seq 100000"], max_output_bytes=10))
    assert (result.stdout, result.stdout_truncated, result.stderr_truncated) == ("1\n2\n3\n4\n5\n", True, False)


async def test_a_command_whose_client_has_gone_is_killed(tmp_path: Path) -> None:
    processes = made(tmp_path)
    script = f"echo $$ > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/begun; sleep 1000"
    running = asyncio.create_task(processes.run(RunProcess(command="sh", args=["-c", script])))
    async with asyncio.timeout(DEADLINE):
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await gone(int((tmp_path / "begun").read_text()))


async def test_a_process_has_both_streams_in_one_numbered_log_and_its_exit_code(tmp_path: Path) -> None:
    processes = made(tmp_path)
    info = await processes.start(shell("echo one; sleep 0.05; echo two >&2; exit 5"))
    assert info.status == "running"
    assert await output(processes, info) == b"one\ntwo\n"
    entries = (await processes.get(info.id).log.read_from(0).take()).entries
    assert [(entry.sequence, entry.stream) for entry in entries] == [(1, "stdout"), (2, "stderr")]
    assert (info.status, info.exit_code, info.signal, info.pid) == ("exited", 5, None, None)
    assert info.exited_at_ms is not None


@pytest.mark.promise("P-process-1")
@pytest.mark.parametrize("is_tty", [False, True])
async def test_stop_and_kill_end_the_whole_group(tmp_path: Path, *, is_tty: bool) -> None:
    processes = made(tmp_path)
    polite = await processes.start(shell("sleep 1000 & sleep 1000 & echo up; wait", tty=is_tty))
    stubborn = await processes.start(
        shell("trap '' TERM HUP; sleep 1000 & echo up; while :; do sleep 1; done", tty=is_tty)
    )
    groups = [polite.pid or 0, stubborn.pid or 0]
    for info in (polite, stubborn):
        await said(processes, info, b"up")
    assert (await processes.stop(polite.id, wait=DEADLINE)).signal in ("SIGTERM", "SIGHUP")
    assert (await processes.stop(stubborn.id, wait=0.1)).status == "running"
    assert (await processes.kill(stubborn.id, wait=DEADLINE)).signal == "SIGKILL"
    for group in groups:
        await gone(group)


async def test_what_a_process_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    processes = made(tmp_path)
    info = await processes.start(shell("sleep 1000 & exit 0"))
    group = info.pid or 0
    assert await output(processes, info) == b""
    assert info.exit_code == 0
    await gone(group)


async def test_input_goes_in_and_ends(tmp_path: Path) -> None:
    processes = made(tmp_path)
    info = await processes.start(StartProcess(command="cat", interactive=True))
    assert await processes.write(info.id, b"hello\n") == 6
    assert await processes.write(info.id, b"", is_last=True) == 0
    assert await output(processes, info) == b"hello\n"
    assert info.exit_code == 0
    with pytest.raises(Conflict, match="not running"):
        await processes.write(info.id, b"more")


async def test_input_is_refused_where_there_is_none_or_too_much(tmp_path: Path) -> None:
    processes = made(tmp_path, limits={"max_input_bytes_per_request": 10})
    info = await processes.start(shell("sleep 1000"))
    with pytest.raises(Conflict, match="has no input"):
        await processes.write(info.id, b"x")
    with pytest.raises(TooLarge, match="over the limit of 10"):
        await processes.write(info.id, b"x" * 11)
    with pytest.raises(Conflict, match="no terminal"):
        processes.resize(info.id, TerminalSize(80, 24))
    await processes.close()


async def test_a_terminal_is_resized_and_typed_into(tmp_path: Path) -> None:
    processes = made(tmp_path)
    info = await processes.start(shell("read line; stty size; echo got $line", tty=True, cols=90, rows=20))
    processes.resize(info.id, TerminalSize(100, 30))
    await processes.write(info.id, b"keys\n")
    assert await output(processes, info) == b"keys\r\n30 100\r\ngot keys\r\n"


async def test_ten_megabytes_pasted_into_a_terminal_arrive_whole(tmp_path: Path) -> None:
    processes = made(tmp_path)
    line = b"0123456789abcdef" * 8 + b"\n"
    pasted = line * (10_000_000 // len(line))
    info = await processes.start(shell(f"stty -echo; echo ready; cat > {tmp_path}/file", tty=True))
    await said(processes, info, b"ready")
    process = processes.get(info.id)
    async with asyncio.timeout(50):
        assert await process.write(pasted) == len(pasted)
        await process.write(b"\x04")
        await process.exited.wait()
    assert (tmp_path / "file").read_bytes() == pasted


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (RunProcess(command=""), "command must not be empty"),
        (RunProcess(command="no-such-program-here"), "no-such-program-here"),
        (RunProcess(command="/etc/passwd"), "/etc/passwd"),
        (RunProcess(command="sh", args=["a\0b"]), "args"),
        (RunProcess(command="sh", args=["\ud800"]), "args"),
        (RunProcess(command="sh", env={"A=B": "x"}), "A=B"),
        (RunProcess(command="sh", cwd="/no/such/place"), "cwd"),
        (RunProcess(command="sh", cwd="/etc/passwd"), "not a directory"),
    ],
)
async def test_what_cannot_be_started_is_named(tmp_path: Path, wanted: RunProcess, names: str) -> None:
    with pytest.raises(InvalidParams, match=names):
        await made(tmp_path).run(wanted)


async def test_the_working_directory_stays_within_the_roots(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (root / "out").symlink_to("/")
    processes = made(tmp_path, roots=(root,))
    result = await processes.run(RunProcess(command="sh", args=["-c", "pwd; echo $PWD"], cwd=str(root / "in")))
    assert result.stdout.split() == [str(root / "in")] * 2
    for outside in ("/", str(root / "out"), str(root / ".."), str(tmp_path)):
        with pytest.raises(Forbidden):
            await processes.run(RunProcess(command="pwd", cwd=outside))


async def test_the_environment_is_the_scrubbed_one(tmp_path: Path) -> None:
    processes = made(tmp_path)
    result = await processes.run(RunProcess(command="env", env={"MINE": "yes"}))
    assert "MINE=yes" in result.stdout
    assert "hidden" not in result.stdout


async def test_more_processes_than_the_limit_are_refused(tmp_path: Path) -> None:
    processes = made(tmp_path, limits={"max_concurrent_processes": 2})
    first = await processes.start(shell("sleep 1000"))
    waiting = asyncio.create_task(processes.run(RunProcess(command="sleep", args=["1000"])))
    await asyncio.sleep(0)
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                info = await processes.start(shell("exit 0"))
            except Conflict as error:
                assert "process limit (2) reached" in error.detail  # noqa: PT017
                break
            await output(processes, info)
    await processes.kill(first.id, wait=DEADLINE)
    await output(processes, await processes.start(shell("exit 0")))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_process_that_has_exited_can_be_deleted_and_one_that_runs_not(tmp_path: Path) -> None:
    processes = made(tmp_path)
    info = await processes.start(shell("echo bye; sleep 1000"))
    with pytest.raises(Conflict, match="running"):
        await processes.delete(info.id)
    await processes.kill(info.id, wait=DEADLINE)
    await processes.delete(info.id)
    with pytest.raises(NotFound):
        processes.get(info.id)
    assert list((tmp_path / "processes").iterdir()) == []


async def test_only_the_newest_that_have_exited_are_kept(tmp_path: Path) -> None:
    processes = made(tmp_path, exited=2)
    for number in range(4):
        await output(processes, await processes.start(shell(f"echo {number}")))
    async with asyncio.timeout(DEADLINE):
        while len(processes.listed()) > 2:
            await asyncio.sleep(0.01)
    assert [info.args[1] for info in processes.listed()] == ["echo 2", "echo 3"]
    assert len(list((tmp_path / "processes").iterdir())) == 2


async def test_processes_can_be_turned_off(tmp_path: Path) -> None:
    processes = made(tmp_path, is_allowed=False)
    with pytest.raises(Forbidden, match="processes = false"):
        await processes.run(RunProcess(command="true"))
    with pytest.raises(Forbidden, match="processes = false"):
        await processes.start(shell("true"))


async def test_the_feed_tells_what_processes_do(tmp_path: Path) -> None:
    feed = Feed(kept_bytes=1 << 20)
    told: list[dict[str, Any]] = []
    feed.follow(None, lambda change: told.append(msgspec.json.decode(change.body)))
    processes = made(tmp_path, feed=feed)
    info = await processes.start(shell("exit 4"))
    await output(processes, info)
    await processes.delete(info.id)
    assert [change["type"] for change in told] == ["process.started", "process.exited", "process.deleted"]
    assert told[1]["process"]["exitCode"] == 4
    assert told[2]["processId"] == info.id


async def test_closing_ends_all_at_once(tmp_path: Path) -> None:
    processes = made(tmp_path, stop_grace=0.3)
    started = [
        await processes.start(shell("trap '' TERM; echo up; sleep 1000", tty=number % 2 == 0)) for number in range(6)
    ]
    groups = [info.pid or 0 for info in started]
    for info in started:
        await said(processes, info, b"up")
    async with asyncio.timeout(DEADLINE):
        await processes.close()
    assert {info.status for info in started} == {"exited"}
    for group in groups:
        await gone(group)


async def test_a_restart_lists_what_ran_with_its_log(tmp_path: Path) -> None:
    before = made(tmp_path)
    done = await before.start(shell("echo done; exit 2"))
    await output(before, done)
    running = await before.start(shell("echo begun; sleep 1000"))
    await said(before, running, b"begun")
    note = tmp_path / "processes" / running.id / "process.json"
    note.write_bytes(note.read_bytes().replace(b'"run":"', b'"run":"9'))  # as if another process had written it

    after = made(tmp_path)
    await after.restore()
    assert [info.id for info in after.listed()] == [running.id]  # `done` is of a server that runs: of this one
    lost = after.get(running.id).info
    assert (lost.status, lost.signal, lost.lost) == ("exited", "SIGKILL", True)
    assert await output(after, lost) == b"begun\n"
    await before.close()


async def test_a_process_waits_for_one_who_wants_all_of_its_output(tmp_path: Path) -> None:
    processes = made(tmp_path, limits={"max_log_bytes_per_process": 1 << 20})
    info = await processes.start(shell("head -c 8000000 /dev/zero", hold=True))
    process = processes.get(info.id)
    async with asyncio.timeout(DEADLINE):
        while process.log.bytes_kept <= 1 << 19:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert (process.log.first, info.status) == (1, "running")
    reader, size = process.log.read_from(0), 0
    with process.hold.reading(reader):
        async with asyncio.timeout(DEADLINE):
            while not reader.is_over:
                piece = await reader.take(wait=DEADLINE)
                process.hold.check()
                assert piece.cut is None
                size += sum(len(entry.content) for entry in piece.entries)
    assert size == 8_000_000


async def test_a_terminal_that_prints_without_end_holds_little_and_its_log_has_the_end(tmp_path: Path) -> None:
    processes = made(tmp_path, limits={"max_log_bytes_per_process": 1 << 20})
    info = await processes.start(shell("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo the end", tty=True))
    reader, content = processes.get(info.id).log.read_from(0), b""
    first = await reader.take(wait=DEADLINE)  # and then it is slow
    async with asyncio.timeout(50):
        await processes.get(info.id).exited.wait()
        cuts = []
        while not reader.is_over:
            piece = await reader.take()
            cuts.append(piece.cut)
            content += b"".join(entry.content for entry in piece.entries)
    assert first.entries[0].sequence == 1
    assert content.endswith(b"the end\r\n")
    assert len(content) <= (1 << 20) + 70_000
    assert [cut for cut in cuts if cut] == [(first.entries[-1].sequence + 1, processes.get(info.id).log.first - 1)]
