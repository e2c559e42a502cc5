"""`sandbox.processes`: run, start, iterate, type, and the same without async."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sandbox_agent.client import SandboxAgent
from sandbox_agent.client.blocking import BlockingSandboxAgent
from sandbox_agent.errors import Conflict, InvalidParams, NotFound
from support.cutting_proxy import cutting_proxy
from support.server import Server, running_server

DEADLINE = 40.0


async def test_a_command_is_run_and_its_result_told(server: Server, tmp_path: Path) -> None:
    async with SandboxAgent.connect(server.url) as sandbox:
        result = await sandbox.processes.run("sh", "-c", "pwd; echo $A >&2; exit 3", cwd=str(tmp_path), env={"A": "b"})
        assert (result.exit_code, result.stdout, result.stderr) == (3, f"{tmp_path}\n", "b\n")
        assert (await sandbox.processes.run("sleep", "100", timeout=0.2)).timed_out
        with pytest.raises(InvalidParams, match="no-such-program"):
            await sandbox.processes.run("no-such-program")


async def test_output_is_iterated_to_the_exit(server: Server) -> None:
    async with SandboxAgent.connect(server.url) as sandbox:
        process = await sandbox.processes.start("sh", "-c", "echo one; sleep 0.1; echo two >&2; exit 5")
        async with asyncio.timeout(DEADLINE):
            seen = [(output.stream, output.text) async for output in process]
        assert seen == [("stdout", "one\n"), ("stderr", "two\n")]
        assert (process.info.exit_code, process.info.is_running) == (5, False)
        assert process.id in [info.id for info in await sandbox.processes.list(owner="user")]
        again = await sandbox.processes.get(process.id)
        assert [output.sequence async for output in again] == [1, 2]
        await again.delete()
        with pytest.raises(NotFound):
            await sandbox.processes.get(process.id)


async def test_input_stop_and_wait(server: Server) -> None:
    async with SandboxAgent.connect(server.url) as sandbox:
        process = await sandbox.processes.start("cat", interactive=True)
        await process.write("hello\n" * 20_000)
        await process.close_input()
        async with asyncio.timeout(DEADLINE):
            content = b"".join([output.data async for output in process])
        assert content == b"hello\n" * 20_000
        sleeper = await sandbox.processes.start("sleep", "1000")
        with pytest.raises(Conflict):
            await sleeper.write("x")
        assert (await sleeper.stop(wait=DEADLINE)).signal == "SIGTERM"
        assert (await sleeper.wait()).signal == "SIGTERM"
        limits = await sandbox.processes.set_config(maxConcurrentProcesses=63)
        assert limits["maxConcurrentProcesses"] == 63


async def test_a_terminal_is_used(server: Server) -> None:
    async with SandboxAgent.connect(server.url) as sandbox:
        process = await sandbox.processes.start("sh", tty=True, size=(90, 30))
        screen = b""
        async with asyncio.timeout(DEADLINE), process.terminal() as terminal:
            await terminal.send(b"stty size; exit 6\n")
            async for output in terminal:
                screen += output
            assert terminal.exit is not None
            assert terminal.exit.exit_code == 6
        assert b"30 90\r\n" in screen


async def test_nothing_is_lost_or_doubled_when_connections_break(server: Server) -> None:
    script = "for i in $(seq 300); do echo $i; sleep 0.005; done"
    async with cutting_proxy(server.port) as proxy, SandboxAgent.connect(proxy.url) as sandbox:
        process = await sandbox.processes.start("sh", "-c", script, hold=True)
        text = ""
        async with asyncio.timeout(DEADLINE):
            async for output in process:
                assert output.missed == 0
                text += output.text
                if text.count("\n") // 60 > proxy.cuts:
                    proxy.cut()
        assert text.split() == [str(number) for number in range(1, 301)]
        assert proxy.cuts > 2


def test_processes_without_async(tmp_path: Path) -> None:
    with BlockingSandboxAgent.start(data_dir=tmp_path) as sandbox:
        assert sandbox.processes.run("echo", "hi").stdout == "hi\n"
        process = sandbox.processes.start("cat", interactive=True)
        process.write("typed\n")
        process.close_input()
        assert [output.text for output in process] == ["typed\n"]
        assert process.wait().exit_code == 0
        assert [info.id for info in sandbox.processes.list()] == [process.id]
        assert sandbox.processes.get(process.id).info.exit_code == 0
        process.delete()


async def test_they_end_with_the_server(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, SandboxAgent.connect(server.url) as sandbox:
        process = await sandbox.processes.start("sleep", "1000")
        waiting = asyncio.create_task(process.wait())
        await asyncio.sleep(0.1)
        assert await server.stop() == 0
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert not Path(f"/proc/{process.info.pid}").exists()
