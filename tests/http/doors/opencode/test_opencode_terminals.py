"""Terminals at `/opencode/pty`: the same processes as `/v1/processes`, in OpenCode's words and over its WebSocket."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from support.opencode import OpenCode, following, opencode
from support.served import TOKEN, served
from support.server import Server, running_server

DEADLINE = 40.0
LINES = ["sh", "-c", "stty -echo; echo ready; while read line; do echo got $line; done"]


class Screen:
    """One who watches: `text` is what was printed, `cursor` where they are, counted as OpenCode's web UI does."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.text = ""
        self.cursor: int | None = None

    async def until(self, text: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while text not in self.text:
                await self._step()

    async def at_the_end(self) -> None:
        """Everything earlier has come."""
        async with asyncio.timeout(DEADLINE):
            while self.cursor is None:
                await self._step()

    async def closed(self) -> int:
        async with asyncio.timeout(DEADLINE):
            try:
                while True:
                    await self._step()
            except ConnectionClosed as closing:
                return closing.rcvd.code if closing.rcvd is not None else 0

    async def _step(self) -> None:
        message = await self.socket.recv()
        if isinstance(message, bytes):
            assert message[:1] == b"\0"
            self.cursor = msgspec.json.decode(message[1:])["cursor"]
            return
        self.text += message
        if self.cursor is not None:
            self.cursor += len(message.encode("utf-16-le")) // 2


@asynccontextmanager
async def watching(url: str, pty: str, query: str = "", api: str = "", **options: Any) -> AsyncIterator[Screen]:
    address = url.replace("http://", "ws://") + f"/opencode{api}/pty/{pty}/connect{query}"
    async with connect(address, proxy=None, max_size=None, **options) as socket:
        yield Screen(socket)


async def started(client: OpenCode, *command: str, **more: Any) -> str:
    made = await client.post("/pty", {"command": command[0], "args": command[1:], **more})
    return str(made["id"])


async def test_a_terminal_is_made_listed_renamed_resized_and_deleted(client: OpenCode, tmp_path: Path) -> None:
    here = {"directory": str(tmp_path)}
    async with following(client) as heard:
        made = await client.post("/pty", {"command": "sh", "args": ["-c", "sleep 600"], "title": "Mine"}, **here)
        pty = made["id"]
        assert made == {
            "id": pty,
            "title": "Mine",
            "command": "sh",
            "args": ["-c", "sleep 600"],
            "cwd": str(tmp_path),
            "status": "running",
            "pid": made["pid"],
        }
        assert (await heard.first("pty.created"))["info"] == made
        assert await client.get("/pty", **here) == [made]
        assert await client.get("/pty", directory="/") == []
        assert (await client.get("/api/pty", **{"location[directory]": str(tmp_path)}))["data"] == [made]
        changed = await client.http.put(f"/opencode/pty/{pty}", json={"title": "New", "size": {"rows": 40, "cols": 90}})
        assert changed.json() == {**made, "title": "New"}
        assert (await heard.first("pty.updated"))["info"]["title"] == "New"
        assert (await client.http.delete(f"/opencode/pty/{pty}")).json() is True
        assert (await heard.first("pty.deleted")) == {"id": pty}
        assert not Path(f"/proc/{made['pid']}").exists()
        assert (await client.http.get(f"/opencode/pty/{pty}")).json()["_tag"] == "PtyNotFoundError"
        assert heard.of("pty.exited") == []
        assert len(heard.of("pty.created")) == 1


async def test_a_shell_starts_where_no_command_is_given(client: OpenCode, server: Server) -> None:
    made = await client.post("/pty", {})
    assert made["title"] == f"Terminal {made['id'][-4:]}"
    assert made["command"] in [shell["path"] for shell in await client.get("/pty/shells")]
    async with watching(server.url, made["id"]) as screen:
        await screen.socket.send("echo $((6 * 7))-; tty; exit 5\r")
        await screen.until("42-")
        await screen.until("/dev/pts/")
        assert await screen.closed() == 1000


@pytest.mark.parametrize("api", ["", "/api"])
async def test_what_is_typed_goes_in_and_one_who_was_away_misses_nothing(
    client: OpenCode, server: Server, api: str
) -> None:
    pty = await started(client, *LINES)
    async with watching(server.url, pty, api=api) as first, watching(server.url, pty) as second:
        await first.until("ready")
        await first.socket.send("grüße 🙂\r")
        await first.until("got grüße 🙂\r\n")
        await second.socket.send(b"bytes\r")
        await first.until("got bytes\r\n")
        await second.until("got bytes\r\n")
        cursor = first.cursor
        await second.socket.send("more\r")
        await second.until("got more\r\n")
    async with watching(server.url, pty, f"?cursor={cursor}") as back:
        await back.at_the_end()
        assert first.text + back.text == second.text
        async with watching(server.url, pty, "?cursor=-1") as late:
            await late.at_the_end()
            assert (late.text, late.cursor) == ("", back.cursor)
            await late.socket.send("last\r")
            await late.until("got last\r\n")
    async with watching(server.url, pty, "?cursor=nonsense") as whole:
        await whole.at_the_end()
        assert whole.text == second.text + "got last\r\n"


async def test_much_output_is_followed_and_replayed_from_any_cursor(client: OpenCode, server: Server) -> None:
    pty = await started(client, "sh", "-c", "seq -f 'ä%06g' 40000; echo end; read line")
    async with watching(server.url, pty) as live:
        await live.until("end\r\n")
        for cursor in (0, 100_001, 250_000, live.cursor):
            async with watching(server.url, pty, f"?cursor={cursor}") as again:
                await again.at_the_end()
                assert again.text == live.text[cursor:]
                assert again.cursor == live.cursor


async def test_terminals_begun_elsewhere_are_there_and_the_reverse(client: OpenCode, server: Server) -> None:
    async with following(client) as heard:
        body = {"command": "sh", "args": ["-c", "read line; exit 3"], "tty": True}
        info = (await client.http.post("/v1/processes", json=body)).json()
        told = (await heard.first("pty.created"))["info"]
        assert (told["pid"], told["title"]) == (info["pid"], "sh -c read line; exit 3")
        assert told["id"] in [one["id"] for one in await client.get("/pty")]
        async with watching(server.url, told["id"]) as screen:
            await screen.socket.send("\r")
            assert await screen.closed() == 1000
        assert await heard.first("pty.exited") == {"id": told["id"], "exitCode": 3}
        mine = await client.post("/pty", {"command": "cat"})
        listed = (await client.http.get("/v1/processes")).json()["processes"]
        process = next(one["id"] for one in listed if one.get("pid") == mine["pid"])
        await client.http.post(f"/v1/processes/{process}/kill")
        assert await heard.first("pty.exited", 2) == {"id": mine["id"], "exitCode": 137}
        await client.http.post("/v1/processes", json={"command": "sleep", "args": ["0"]})  # no terminal: not told
        await client.post("/tui/append-prompt", {"text": "x"})
        await heard.first("tui.prompt.append")
        assert len(heard.of("pty.created")) == 2


@pytest.mark.parametrize("pty", ["pty_x", "pty_", "pty", "pty_proc_x", "pty_" + "0" * 3000, "pty_%00", "pty_..%2F.."])
async def test_terminals_that_are_none(client: OpenCode, server: Server, pty: str) -> None:
    for method, path in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/connect")]:
        for api in ("", "/api"):
            answer = await client.http.request(method, f"/opencode{api}/pty/{pty}{path}", json={})
            assert (answer.status_code, answer.json()["_tag"]) == (404, "PtyNotFoundError"), answer.text
    asked = await client.http.post(f"/opencode/pty/{pty}/connect-token", headers={"x-opencode-ticket": "1"})
    assert asked.status_code == 404
    with pytest.raises(InvalidStatus) as refused:
        async with watching(server.url, pty):
            pass
    assert refused.value.response.status_code == 404


async def test_ids_of_another_kind_and_processes_without_a_terminal(client: OpenCode) -> None:
    session = await client.new_session()
    for wrong in (session, "nonsense", "proc_x"):
        assert (await client.http.get(f"/opencode/pty/{wrong}")).status_code == 400
    info = (await client.http.post("/v1/processes", json={"command": "sleep", "args": ["600"]})).json()
    plain = f"/opencode/pty/pty_{info['id'].removeprefix('proc_')}"
    assert (await client.http.get(plain)).status_code == 404
    assert (await client.http.delete(plain)).status_code == 404
    await client.http.post(f"/v1/processes/{info['id']}/kill")


@pytest.mark.parametrize(
    "body",
    [
        {"command": 5},
        {"command": "no-such-program"},
        {"command": "a\0b"},
        {"args": "x"},
        {"env": {"A": 1}},
        {"env": {"A=B": "x"}},
        {"cwd": "/no/such/directory"},
        {"title": []},
        [],
    ],
)
async def test_bodies_that_start_nothing(client: OpenCode, body: Any) -> None:
    before = await client.get("/pty")
    for path, (member, name) in {"/pty": ("name", "BadRequest"), "/api/pty": ("_tag", "InvalidRequestError")}.items():
        answer = await client.http.post(f"/opencode{path}", json=body)
        assert answer.status_code == 400, answer.text
        assert answer.json()[member] == name
    assert await client.get("/pty") == before


async def test_changes_that_are_none_change_nothing(client: OpenCode) -> None:
    pty = await started(client, "cat")
    before = await client.get(f"/pty/{pty}")
    for size in ({"rows": 0, "cols": 80}, {"rows": 1 << 30, "cols": 80}, {"rows": "x", "cols": 80}, {"rows": 24}, 5):
        answer = await client.http.put(f"/opencode/pty/{pty}", json={"title": "changed", "size": size})
        assert answer.status_code == 400, answer.text
    assert await client.get(f"/pty/{pty}") == before
    gone = await asyncio.gather(*(client.http.delete(f"/opencode/pty/{pty}") for _ in range(4)))
    assert {answer.status_code for answer in gone} <= {200, 404}
    assert 200 in [answer.status_code for answer in gone]


async def test_input_that_is_too_long_ends_the_socket_and_not_the_terminal(client: OpenCode, server: Server) -> None:
    pty = await started(client, *LINES)
    async with watching(server.url, pty) as rude:
        await rude.socket.send("x" * 100_000)
        assert await rude.closed() == 1009
    async with watching(server.url, pty) as screen:
        await screen.until("ready")
        await screen.socket.send("still\r")
        await screen.until("got still")


async def test_a_reader_that_does_not_read_delays_nobody(client: OpenCode, server: Server) -> None:
    pty = await started(client, "sh", "-c", "stty -echo; read line; seq 300000; echo done; read line")
    async with watching(server.url, pty, max_queue=1), watching(server.url, pty) as screen:
        await screen.socket.send("\r")
        await screen.until("done\r\n")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    origin = ("--cors-allow-origin", "https://app.example")
    with served(tmp_path_factory.mktemp("guarded"), "--token", TOKEN, *origin) as running:
        yield running


async def test_a_page_comes_in_with_a_ticket_that_counts_once(guarded: Server) -> None:
    async with opencode(guarded.url, Authorization=f"Bearer {TOKEN}") as client:
        pty = await started(client, *LINES)
        address = f"/opencode/pty/{pty}/connect-token"
        assert (await client.http.post(address)).json()["_tag"] == "PtyForbiddenError"
        issued = (await client.http.post(address, headers={"x-opencode-ticket": "1"})).json()
        assert issued["expires_in"] > 0
        page: dict[str, Any] = {"origin": Origin("https://app.example")}
        async with watching(guarded.url, pty, f"?ticket={issued['ticket']}", **page) as screen:
            await screen.until("ready")
        async with watching(guarded.url, pty, f"?auth_token={TOKEN}", **page) as screen:
            await screen.until("ready")
        refused: list[tuple[str, dict[str, Any], int]] = [
            (f"?ticket={issued['ticket']}", page, 401),
            ("?ticket=wrong", page, 401),
            ("", page, 401),
            (f"?auth_token={TOKEN}", {"origin": Origin("https://evil.example")}, 403),
        ]
        for query, options, status in refused:
            with pytest.raises(InvalidStatus) as answer:
                async with watching(guarded.url, pty, query, **options):
                    pass
            assert answer.value.response.status_code == status


async def test_terminals_are_refused_where_processes_are_turned_off(tmp_path: Path) -> None:
    env = {"SANDBOX_AGENT_PROCESSES": "false"}
    async with running_server(tmp_path, env=env) as server, opencode(server.url) as client:
        assert (await client.http.get("/opencode/pty")).status_code == 403
        assert (await client.http.post("/opencode/pty", json={})).status_code == 403
        assert (await client.http.get("/opencode/config")).status_code == 200


async def test_a_terminal_that_ends_with_the_server_ends_its_sockets(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, opencode(server.url) as client:
        made = await client.post("/pty", {"command": "cat"})
        async with watching(server.url, made["id"]) as screen:
            await screen.at_the_end()
            assert await server.stop() == 0
            await screen.closed()
        with pytest.raises(ProcessLookupError):
            os.kill(made["pid"], 0)
