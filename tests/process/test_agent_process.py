from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.lines import OversizedLine
from sandbox_agent.errors import AgentStartFailed
from sandbox_agent.process import AgentProcess, ExitStatus
from sandbox_agent.process.agent_process import Lines
from support.processes import DEADLINE, ENV, Watched, gone, launched, members, python
from support.waiting import until

ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line); sys.stdout.flush()"
DEAF = "import time; print('up', flush=True); time.sleep(300)"


def mock(*flags: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "sandbox_agent.mock_agent", *flags)


def children() -> set[int]:
    """Our own children, dead ones that nobody has waited for included."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


async def new_session(agent: Watched, cwd: Path) -> str:
    version: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": {}}
    agent.send({"id": 1, "method": "initialize", "params": version})
    agent.send({"id": 2, "method": "session/new", "params": {"cwd": str(cwd), "mcpServers": []}})
    made = await agent.until(lambda: next((m for m in map(json.loads, agent.lines) if m.get("id") == 2), None))
    return str(made["result"]["sessionId"])


async def test_lines_go_in_and_come_out_in_order() -> None:
    async with launched(*python(ECHO)) as agent:
        sent = [b"line %d" % number for number in range(1000)]
        for line in sent:
            agent.running.write(line)
        await agent.until(lambda: len(agent.lines) == 1000)
        assert agent.lines == sent
        assert agent.running.is_running


async def test_the_owner_is_told_once_when_the_lines_of_a_turn_have_left() -> None:
    heard: list[bytes] = []
    told: list[bool] = []
    process = await AgentProcess.start(
        LaunchSpec(agent=AgentId("echo"), command=tuple(python(ECHO))),
        ENV,
        on_lines=lambda lines: heard.extend(line for line in lines if isinstance(line, bytes)),
        on_exit=lambda status: None,
        after_write=lambda: told.append(True),
        line_cap=1000,
    )
    try:
        process.write(b"one")
        process.write(b"two")
        assert told == []
        await until(lambda: heard == [b"one", b"two"])
        assert told == [True]
        process.write(b"three")
        await until(lambda: heard == [b"one", b"two", b"three"])
        assert told == [True, True]
    finally:
        await process.stop()


async def test_the_process_has_a_group_and_a_session_of_its_own() -> None:
    async with launched(*python(DEAF)) as agent:
        pid = agent.running.pid
        assert os.getpgid(pid) == os.getsid(pid) == pid
        assert os.getpgid(pid) != os.getpgrp()


async def test_the_process_sees_the_environment_it_was_given_and_its_directory(tmp_path: Path) -> None:
    program = "import os, json; print(json.dumps([os.environ.get('MARK'), os.environ.get('HOME'), os.getcwd()]))"
    async with launched(*python(program), env={"MARK": "1"}, cwd=tmp_path) as agent:
        await agent.exit()
        assert json.loads(agent.lines[0]) == ["1", None, str(tmp_path.resolve())]


@pytest.mark.parametrize("code", [0, 3, 255])
async def test_an_exit_is_told_once_with_its_code_after_the_last_output(code: int) -> None:
    program = f"import os; os.write(1, b'x\\n' * 200000 + b'the end'); os._exit({code})"
    async with launched(*python(program)) as agent:
        assert await agent.exit() == ExitStatus(code)
        assert agent.seen[-2:] == [b"the end", ExitStatus(code)]
        assert len(agent.seen) == 200_002
        assert not agent.running.is_running
    assert len(agent.seen) == 200_002


async def test_a_signal_is_told_as_the_shell_says_it() -> None:
    async with launched(*python(DEAF)) as agent:
        await agent.until(lambda: agent.lines)
        os.kill(agent.running.pid, signal.SIGKILL)
        status = await agent.exit()
        assert status.code == 137
        assert status.words == "was ended by SIGKILL"
    assert ExitStatus(3).words == "exited with code 3"
    assert ExitStatus(255).words == "exited with code 255"


async def test_an_exit_is_noticed_while_a_grandchild_in_the_group_holds_stdout_and_takes_it_along() -> None:
    program = "import subprocess, os; subprocess.Popen(['sleep', '300']); print('up', flush=True); os._exit(7)"
    async with launched(*python(program)) as agent:
        assert await agent.exit() == ExitStatus(7)
        assert agent.lines == [b"up"]
        await gone(agent.running.pid)


async def test_an_exit_is_noticed_while_a_grandchild_outside_the_group_holds_all_pipes() -> None:
    program = (
        "import subprocess, os; p = subprocess.Popen(['sleep', '300'], start_new_session=True);"
        "print(p.pid, flush=True); os._exit(7)"
    )
    async with launched(*python(program)) as agent:
        try:
            assert await agent.exit() == ExitStatus(7)
        finally:
            os.kill(int(agent.lines[0]), signal.SIGKILL)


async def test_stderr_is_drained_and_does_not_reach_the_protocol() -> None:
    program = "import sys; sys.stderr.write('noise\\n' * 300000); print('done')"
    async with launched(*python(program)) as agent:
        await agent.exit()
        assert agent.lines == [b"done"]


async def test_a_full_pipe_holds_writers_back_until_the_agent_reads(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    program = f"import sys; open({str(gate)!r}).read(); print(sum(map(len, sys.stdin.buffer)))"
    async with launched(*python(program)) as agent:
        for _ in range(16):
            agent.running.write(b"x" * ((1 << 20) - 1))
        waiting = asyncio.ensure_future(agent.running.drained())
        await asyncio.sleep(0)
        assert not waiting.done()
        await asyncio.to_thread(gate.write_text, "go")
        async with asyncio.timeout(DEADLINE):
            await waiting
        await agent.running.stop(grace=DEADLINE)
        assert agent.seen == [b"%d" % (16 << 20), ExitStatus(0)]


async def test_a_line_over_the_cap_is_dropped_with_its_size_and_hash_and_the_next_comes_through() -> None:
    program = "import sys; w = sys.stdout.buffer.write; w(b'a\\n' + b'x' * 3000000 + b'\\nb\\n')"
    async with launched(*python(program), line_cap=1 << 20) as agent:
        await agent.exit()
        big = hashlib.sha256(b"x" * 3_000_000).hexdigest()
        assert agent.lines == [b"a", OversizedLine(3_000_000, big), b"b"]


async def test_the_default_cap_is_64_mebibytes() -> None:
    program = (
        "import sys; w = sys.stdout.buffer.write; w(b'x' * (64 << 20)); w(b'\\n'); w(b'y' * (64 << 20)); w(b'y\\nb\\n')"
    )
    async with launched(*python(program)) as agent:
        await agent.exit()
        assert [len(one) if isinstance(one, bytes) else one.size for one in agent.lines] == [
            64 << 20,
            (64 << 20) + 1,
            1,
        ]
        assert isinstance(agent.lines[1], OversizedLine)


async def test_reading_can_be_paused_and_nothing_is_lost() -> None:
    program = "import sys\nsys.stdin.readline()\nfor n in range(400000): print(n)\nsys.stdout.flush()\nsys.stdin.read()"
    first = asyncio.Event()

    def pause(lines: Lines) -> None:
        if not first.is_set():
            agent.running.pause_reading()
            first.set()

    async with launched(*python(program), on_lines=pause) as agent:
        agent.running.write(b"go")
        await agent.until(lambda: agent.lines)
        held = len(agent.lines)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(agent.lines) == held < 400_000
        agent.running.resume_reading()
        await agent.until(lambda: len(agent.lines) == 400_000)
        assert agent.lines == [b"%d" % number for number in range(400_000)]


async def test_a_fault_in_handling_lines_is_logged_and_the_next_lines_are_read() -> None:
    program = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    faults = [ValueError("handled badly")]

    def stumble(lines: Lines) -> None:
        if faults:
            raise faults.pop()

    async with launched(*python(program), on_lines=stumble) as agent:
        agent.running.write(b"first")
        await until(lambda: not faults)
        agent.running.write(b"second")
        await agent.until(lambda: agent.lines == [b"second"])


async def test_a_well_behaved_agent_ends_with_its_input(tmp_path: Path) -> None:
    async with launched(*mock(), env={"SANDBOX_AGENT_MOCK_STATE": str(tmp_path)}) as agent:
        await new_session(agent, tmp_path)
        await agent.running.stop(grace=DEADLINE)
        assert agent.seen[-1] == ExitStatus(0)


async def test_an_agent_that_ignores_the_end_of_its_input_is_ended_with_term(tmp_path: Path) -> None:
    async with launched(*mock("--ignore-eof"), env={"SANDBOX_AGENT_MOCK_STATE": str(tmp_path)}) as agent:
        await new_session(agent, tmp_path)
        await agent.running.stop(grace=3.0)
        assert (await agent.exit()).code in {0, 128 + signal.SIGTERM}
        await gone(agent.running.pid)


async def test_an_agent_that_ignores_term_too_is_killed_with_its_children(tmp_path: Path) -> None:
    flags = ("--ignore-eof", "--ignore-term")
    async with launched(*mock(*flags), env={"SANDBOX_AGENT_MOCK_STATE": str(tmp_path)}) as agent:
        session = await new_session(agent, tmp_path)
        block = {"type": "text", "text": "spawn"}
        agent.send({"id": 3, "method": "session/prompt", "params": {"sessionId": session, "prompt": [block]}})
        await agent.until(lambda: any(re.search(rb"spawned \d", line) for line in agent.lines))
        assert len(members(agent.running.pid)) == 2
        await agent.running.stop(grace=0.2)
        assert (await agent.exit()).code == 128 + signal.SIGKILL
        await gone(agent.running.pid)


async def test_a_crash_takes_the_children_along(tmp_path: Path) -> None:
    async with launched(*mock(), env={"SANDBOX_AGENT_MOCK_STATE": str(tmp_path)}) as agent:
        session = await new_session(agent, tmp_path)
        block = {"type": "text", "text": "spawn\ncrash 9"}
        agent.send({"id": 3, "method": "session/prompt", "params": {"sessionId": session, "prompt": [block]}})
        assert await agent.exit() == ExitStatus(9)
        assert any(re.search(rb"spawned \d", line) for line in agent.lines)
        await gone(agent.running.pid)


async def test_stop_may_be_called_again_and_after_the_end() -> None:
    async with launched(*python(ECHO)) as agent:
        await asyncio.gather(agent.running.stop(grace=DEADLINE), agent.running.stop(grace=DEADLINE))
        await agent.running.stop(grace=DEADLINE)
        assert agent.seen == [ExitStatus(0)]


async def test_writing_to_a_dead_agent_is_no_error_and_never_blocks() -> None:
    async with launched(*python("pass")) as agent:
        await agent.exit()
        agent.running.write(b"x" * (8 << 20))
        agent.running.pause_reading()
        agent.running.resume_reading()
        async with asyncio.timeout(DEADLINE):
            await agent.running.drained()


async def test_an_agent_that_dies_with_a_full_pipe_frees_its_writers() -> None:
    async with launched(*python(DEAF)) as agent:
        await agent.until(lambda: agent.lines)
        agent.running.write(b"x" * (16 << 20))
        waiting = asyncio.ensure_future(agent.running.drained())
        await asyncio.sleep(0)
        assert not waiting.done()
        os.kill(agent.running.pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE):
            await waiting


@pytest.mark.parametrize("command", [("/no/such/agent",), ("no-such-agent-on-path", "x"), ("/",), ("a\0b",)])
async def test_a_command_that_cannot_be_run_says_which(command: tuple[str, ...]) -> None:
    with pytest.raises(AgentStartFailed) as failed:
        async with launched(*command):
            pass
    assert repr(command[0]) in str(failed.value)
    assert failed.value.data["command"] == list(command)


async def test_a_directory_that_is_not_there_is_a_failed_start(tmp_path: Path) -> None:
    with pytest.raises(AgentStartFailed, match="gone"):
        async with launched(*python("pass"), cwd=tmp_path / "gone"):
            pass


@pytest.mark.parametrize("ending", ["", "\\n"])
async def test_the_last_words_on_stderr_are_known_when_the_exit_is_told(ending: str) -> None:
    program = f"import os; os.write(2, b'x' * 60 * 1000 + b'\\n' + b'boom{ending}'); os._exit(3)"
    for _ in range(5):
        async with launched(*python(program)) as agent:
            await agent.exit()
            assert agent.stderr_at_exit[-1:] == ["boom"]


async def test_unfinished_lines_come_before_the_exit_also_when_somebody_else_holds_the_pipes() -> None:
    program = (
        "import subprocess, os; p = subprocess.Popen(['sleep', '300'], start_new_session=True);"
        "os.write(1, b'%d\\nlast' % p.pid); os.write(2, b'boom'); os._exit(7)"
    )
    async with launched(*python(program)) as agent:
        try:
            assert await agent.exit() == ExitStatus(7)
            assert agent.seen[1:] == [b"last", ExitStatus(7)]
            assert agent.stderr_at_exit == ["boom"]
        finally:
            os.kill(int(agent.lines[0]), signal.SIGKILL)
    assert agent.seen[1:] == [b"last", ExitStatus(7)]


async def test_output_that_we_were_too_slow_to_read_is_not_lost() -> None:
    program = "import os; os.write(1, b'12345\\n' * 150000 + b'the end'); os._exit(3)"
    async with launched(*python(program), on_lines=lambda lines: time.sleep(0.4)) as agent:
        await agent.exit()
        assert len(agent.lines) == 150_001
        assert agent.seen[-2:] == [b"the end", ExitStatus(3)]


async def test_a_process_that_dies_at_once_has_an_exit_and_last_words_like_any_other() -> None:
    for _ in range(20):
        async with launched("sh", "-c", "echo word; echo why >&2; exit 3") as agent:
            assert await agent.exit() == ExitStatus(3)
            await agent.until(lambda: agent.stderr_at_exit)
            assert agent.seen == [b"word", ExitStatus(3)]
            assert agent.stderr_at_exit == ["why"]


async def test_a_process_that_is_dead_before_its_pipes_are_connected_is_no_failed_start() -> None:
    """The loop is held until it has died."""
    asyncio.get_running_loop().call_soon(time.sleep, 0.3)
    async with launched("sh", "-c", "exit 3") as agent:
        assert await agent.exit() == ExitStatus(3)


async def test_a_start_that_is_given_up_leaves_no_process() -> None:
    spec = LaunchSpec(agent=AgentId("test"), command=python("import time; time.sleep(300)"))
    before = children()
    start = AgentProcess.start(spec, ENV, on_lines=lambda lines: None, on_exit=lambda status: None, line_cap=100)
    task = asyncio.ensure_future(start)
    await asyncio.sleep(0)
    (pid,) = children() - before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(pid)
    assert children() == before
