"""A process's terminal over a WebSocket: typing, sizes, several people, resuming, a slow reader, who may come in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from support.server import Server, running_server
from support.terminal import DEADLINE, start_terminal, watching

FLOOD = 100_000_000


async def test_keys_go_in_and_the_screen_comes_out_until_the_exit(server: Server) -> None:
    process = await start_terminal(server, "sh", "-c", "read line; echo got $line; exit 9")
    async with watching(server, process) as screen:
        assert await screen.frame("ready") == {
            "type": "ready",
            "processId": process,
            "after": 0,
            "last": 0,
            "cols": 80,
            "rows": 24,
        }
        await screen.send(type="input", data="aGVsbG8K", encoding="base64")
        await screen.until(b"got hello\r\n")
        assert await screen.frame("exit") == {"type": "exit", "exitCode": 9, "signal": None}
        async with asyncio.timeout(DEADLINE):
            await screen.socket.wait_closed()
        assert screen.socket.close_code == 1000


@pytest.mark.promise("P-process-6")
async def test_two_people_see_the_same_and_who_typed_last_decides_about_the_size(server: Server) -> None:
    process = await start_terminal(server, "sh")
    async with watching(server, process) as ada, watching(server, process) as bob:
        await ada.send(type="resize", cols=100, rows=30)
        await ada.type("stty size\n")
        await ada.until(b"30 100\r\n")
        await bob.send(type="resize", cols=60, rows=20)
        await bob.until(b"30 100\r\n")
        await ada.type("echo still; stty size\n")
        await ada.until(b"still\r\n30 100\r\n")
        await bob.type("echo bobs; stty size\n")
        await bob.until(b"bobs\r\n20 60\r\n")
        await ada.until(b"bobs\r\n20 60\r\n")
        await ada.type("exit\n")
        await ada.frame("exit")
        await bob.frame("exit")
        assert ada.output == bob.output


async def test_one_who_comes_later_sees_the_last_screen_and_one_who_comes_back_goes_on(server: Server) -> None:
    process = await start_terminal(server, "sh")
    async with watching(server, process) as screen:
        await screen.type("echo first; echo done\n")
        await screen.until(b"first\r\ndone\r\n")
        at = screen.binary
    async with watching(server, process) as later:
        await later.until(b"first\r\ndone\r\n")
        await later.type("echo meanwhile; echo over\n")
        await later.until(b"meanwhile\r\nover\r\n")
    async with watching(server, process, f"?after={at}") as back:
        assert (await back.frame("ready"))["after"] == at
        await back.until(b"meanwhile\r\nover\r\n")
        assert b"first" not in back.output
        assert (screen.output + back.output).startswith(later.output)
        await back.type("exit 3\n")
        assert (await back.frame("exit"))["exitCode"] == 3
    async with watching(server, process) as after:
        assert (await after.frame("exit"))["exitCode"] == 3
        assert b"first" in after.output


async def test_what_cannot_be_used_is_told_and_does_not_end_the_terminal(server: Server) -> None:
    process = await start_terminal(server, "sh")
    async with watching(server, process) as screen:
        for wrong in ("nonsense", '{"type":"dance"}', '{"type":"resize","cols":0,"rows":1}', '{"type":"input"}', "[]"):
            await screen.socket.send(wrong)
            assert "message" in await screen.frame("error")
            screen.frames.clear()
        await screen.send(type="input", data="x" * 70_000)
        assert "limit" in (await screen.frame("error"))["message"]
        await screen.type("exit\n")
        await screen.frame("exit")


async def _healthy_until_cancelled(http: httpx.AsyncClient) -> None:
    while True:
        assert (await http.get("/v1/health", timeout=DEADLINE)).status_code == 200
        await asyncio.sleep(0.05)


@pytest.mark.timeout(180)
@pytest.mark.promise("P-process-5")
async def test_a_slow_reader_of_a_flood_sees_the_end_and_delays_nobody(tmp_path: Path) -> None:
    async with running_server(tmp_path / "home") as server:
        process = await start_terminal(
            server, "sh", "-c", f"read x; head -c {FLOOD} /dev/zero | tr '\\0' y; echo; echo the end"
        )
        async with watching(server, process, max_queue=1) as slow, watching(server, process) as quick:
            await slow.frame("ready")
            before = server.peak_memory
            await slow.type("\n")
            async with asyncio.timeout(150), httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
                healthy = asyncio.create_task(_healthy_until_cancelled(http))
                while b"the end" not in quick.output[-4000:]:
                    await quick.step()
                    quick.output = quick.output[-4000:]
                assert not healthy.done(), healthy
                healthy.cancel()
            grown = server.peak_memory - before
            await slow.frame("exit")
            cut = [frame["cut"] for frame in slow.frames if "cut" in frame]
            assert slow.output.endswith(b"the end\r\n")
            assert cut, "it was not slow"
            assert len(slow.output) < FLOOD // 2
            assert grown < 60_000_000


async def test_a_terminal_needs_token_and_origin_before_the_upgrade(tmp_path: Path) -> None:
    async with running_server(tmp_path / "home", "--token", "t0ken") as server:
        bearer = {"Authorization": "Bearer t0ken"}
        async with httpx.AsyncClient(base_url=server.url, trust_env=False, headers=bearer) as http:
            started = await http.post("/v1/processes", json={"command": "cat", "tty": True})
            process = started.json()["id"]
            plain = (await http.post("/v1/processes", json={"command": "cat", "interactive": True})).json()["id"]
            ticket = (await http.post("/v1/tickets")).json()["ticket"]

        async def refused(query: str = "", name: str = process, **options: Any) -> int:
            with pytest.raises(InvalidStatus) as error:
                async with watching(server, name, query, **options):
                    pass
            return error.value.response.status_code

        assert await refused() == 401
        assert await refused("?access_token=wrong") == 401
        assert await refused("?access_token=t0ken", origin=Origin("https://evil.example")) == 403
        assert await refused("?access_token=t0ken", name="proc_none") == 404
        assert await refused("?access_token=t0ken", name=plain) == 409
        assert await refused("?access_token=t0ken&after=-1") == 400
        async with watching(server, process, "?access_token=t0ken") as screen:
            await screen.frame("ready")
        async with watching(server, process, f"?ticket={ticket}") as screen:
            await screen.frame("ready")
        assert await refused(f"?ticket={ticket}") == 401
        own = Origin(server.url)
        async with watching(server, process, origin=own, subprotocols=[Subprotocol("bearer.t0ken")]) as screen:
            await screen.frame("ready")
            await screen.send(type="close")
            async with asyncio.timeout(DEADLINE):
                await screen.socket.wait_closed()
        assert "t0ken" not in server.log_text()


async def test_those_who_ask_for_it_are_told_of_the_size_and_who_decides_about_it(server: Server) -> None:
    process = await start_terminal(server, "cat")
    async with watching(server, process, "?resizes=true") as ada, watching(server, process) as bob:
        await ada.send(type="resize", cols=100, rows=30)
        assert await ada.frame("resize") == {"type": "resize", "cols": 100, "rows": 30, "yours": True}
        await bob.send(type="resize", cols=60, rows=20)
        await bob.type("x\n")
        async with asyncio.timeout(DEADLINE):
            while ada.frames[-1].get("yours"):
                await ada.step()
        assert ada.frames[-1] == {"type": "resize", "cols": 60, "rows": 20, "yours": False}
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            await http.post(f"/v1/processes/{process}/terminal/resize", json={"cols": 50, "rows": 12})
            async with asyncio.timeout(DEADLINE):
                while ada.frames[-1]["cols"] != 50:
                    await ada.step()
            await http.post(f"/v1/processes/{process}/kill")
        await bob.frame("exit")
    assert "resize" not in {frame["type"] for frame in bob.frames}
