"""Requests that repeat on a socket, and everything that must not be taken for one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import uvicorn

from sandbox_agent.http.asgi.messages import Abandon, Push, Respond
from sandbox_agent.http.server.direct import BODY_LIMIT, DirectProtocol
from sandbox_agent.http.server.wire import Sockets, bounded
from support.raw_http import post_request as post
from support.raw_http import raw_client
from support.waiting import until


class Site:
    """Answers with who has seen the body: the plain path or the direct one. `hold` delays, `leave` declines."""

    def __init__(self) -> None:
        self.port = 0
        self.plain: list[bytes] = []
        self.direct: list[bytes] = []
        self.held: list[Respond] = []
        self.abandoned = 0
        self.server: uvicorn.Server | None = None
        self.streams = False
        self.push: Push | None = None
        self.go_on = asyncio.Event()
        self.gone = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.streams:
            await self._stream(scope, receive, send)
            return
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        self.plain.append(body)
        answer = b"plain:" + body[:20]
        headers = [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})
        if "repeat" in scope:
            scope["repeat"](self.repeat)

    async def _stream(self, scope: Any, receive: Any, send: Any) -> None:
        """A body in pieces, with a pause in which `push` may add some."""
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun ", "more_body": True})
        self.push = scope["push"]
        leaving = asyncio.ensure_future(receive())
        going = asyncio.ensure_future(self.go_on.wait())
        done, pending = await asyncio.wait({leaving, going}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        self.gone = leaving in done
        await send({"type": "http.response.body", "body": b"sent"})

    def repeat(self, body: bytes, respond: Respond) -> Abandon | None:
        if body == b"leave":
            return None
        self.direct.append(body)
        if body == b"hold":
            self.held.append(respond)
        else:
            respond(200, b"x-path: direct\r\n", b"direct:" + body[:20])
        return partial(self.abandon, respond)

    def abandon(self, respond: Respond) -> None:
        """Knows whom it would have answered, as a door's does."""
        self.abandoned += 1


@asynccontextmanager
async def site(keep_alive: int = 60) -> AsyncIterator[Site]:
    app = Site()
    config = uvicorn.Config(
        app,
        http=bounded(Sockets(100), DirectProtocol),
        port=0,
        lifespan="off",
        log_config=None,
        timeout_keep_alive=keep_alive,
        ws="none",
    )
    server = app.server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    app.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield app
    finally:
        server.should_exit = True
        async with asyncio.timeout(30):
            await running


async def test_the_first_request_takes_the_plain_path_and_those_like_it_the_direct_one() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        assert (await client.read_reply()).body == b"plain:one"
        for body in (b"two", b"", b"a longer one", b"x" * 50_000):
            await client.send(post(body))
            reply = await client.read_reply()
            assert (reply.status, reply.body) == (200, b"direct:" + body[:20])
            assert reply.headers["x-path"] == "direct"
            assert "date" in reply.headers


async def test_a_head_that_differs_takes_the_plain_path() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one", "Authorization: Bearer good"))
        await client.read_reply()
        await client.send(post(b"two", "Authorization: Bearer evil"))
        assert (await client.read_reply()).body == b"plain:two"
        await client.send(post(b"three", "Authorization: Bearer evil", path="/other"))
        assert (await client.read_reply()).body == b"plain:three"


async def test_another_socket_begins_on_the_plain_path() -> None:
    async with site() as app:
        for _ in range(2):
            async with raw_client(app.port) as client:
                await client.send(post(b"one"))
                assert (await client.read_reply()).body == b"plain:one"


async def test_what_a_browser_sends_is_never_remembered() -> None:
    async with site() as app:
        for line in ("Cookie: a=b", "Origin: http://127.0.0.1", "cOOKIE:a=b", "Connection: close, keep-alive"):
            async with raw_client(app.port) as client:
                await client.send(post(b"one", line))
                await client.read_reply()
                if "close" not in line:
                    await client.send(post(b"two", line))
                    assert (await client.read_reply()).body == b"plain:two"
    assert app.direct == []


async def test_a_request_in_pieces_is_put_together() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        whole = post(b"0123456789")
        for cut in (len(whole) - 10, len(whole) - 3):
            await client.send(whole[:cut])
            await asyncio.sleep(0.05)  # so that it comes in two pieces; the claim holds either way
            await client.send(whole[cut:])
            assert (await client.read_reply()).body == b"direct:0123456789"
        await client.send(whole[:30])
        await asyncio.sleep(0.05)
        await client.send(whole[30:])
        assert (await client.read_reply()).body.endswith(b":0123456789")


async def test_a_body_over_the_limit_that_comes_in_pieces_takes_the_plain_path() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        large = b"y" * (BODY_LIMIT + 1)
        whole = post(large)
        await client.send(whole[:-1000])
        await asyncio.sleep(0.05)
        await client.send(whole[-1000:])
        assert (await client.read_reply()).body == b"plain:" + large[:20]
        assert app.plain[-1] == large


async def test_a_slow_body_goes_over_to_the_plain_path() -> None:
    async with site(keep_alive=1) as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        await client.send(post(b"sl", length=4))
        await asyncio.sleep(2.5)  # past the keep-alive time, after which nothing may be closed
        await client.send(b"ow")
        assert (await client.read_reply()).body == b"plain:slow"


async def test_an_idle_socket_is_closed_also_after_direct_answers() -> None:
    async with site(keep_alive=1) as app, raw_client(app.port) as client:
        for body in (b"one", b"two"):
            await client.send(post(body))
            await client.read_reply()
        assert await client.read_end() == b""


async def test_what_the_repeat_declines_reaches_the_plain_path_whole() -> None:
    async with site() as app, raw_client(app.port) as client:
        for body in (b"one", b"leave", b"two"):
            await client.send(post(body))
            await client.read_reply()
        assert (app.plain, app.direct) == ([b"one", b"leave"], [b"two"])


async def test_expect_100_continue_is_answered_as_ever() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        await client.send(post(b"", "Expect: 100-continue", length=5))
        assert (await client.read_reply()).status == 100
        await client.send(b"later")
        assert (await client.read_reply()).body == b"plain:later"


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        await client.send(post(b"hold"))
        await until(lambda: len(app.held) == 1)
        await client.send(post(b"second") + post(b"third"))
        await asyncio.sleep(0.05)
        assert app.plain == [b"one"]
        app.held.pop()(200, b"", b"held")
        bodies = [(await client.read_reply()).body for _ in range(3)]
        assert bodies == [b"held", b"plain:second", b"plain:third"]


async def test_several_in_one_piece_are_answered_in_order() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        await client.send(post(b"two") + post(b"three") + post(b"four"))
        bodies = [(await client.read_reply()).body for _ in range(3)]
        assert [body.partition(b":")[2] for body in bodies] == [b"two", b"three", b"four"]


async def test_a_peer_that_leaves_abandons_its_request() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        await client.send(post(b"hold"))
        await until(lambda: len(app.held) == 1)
        client.close()
        await until(lambda: app.abandoned == 1)
        app.held.pop()(200, b"", b"too late")


async def test_a_request_under_way_is_answered_when_the_server_stops_and_the_socket_is_closed() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        await client.send(post(b"hold"))
        await until(lambda: len(app.held) == 1)
        assert app.server is not None
        app.server.should_exit = True
        await until(lambda: not app.server or not app.server.servers[0].is_serving())
        await until(lambda: all(not p.cycle.keep_alive for p in app.server.server_state.connections))  # type: ignore[union-attr]
        app.held.pop()(200, b"", b"last")
        reply = await client.read_reply()
        assert (reply.body, reply.headers["connection"]) == (b"last", "close")
        assert await client.read_end() == b""


async def test_garbage_after_a_repeated_request_is_refused() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        await client.send(b"\x00\x01 nonsense\r\n\r\n")
        assert (await client.read_reply()).status == 400


async def test_a_piece_of_a_body_can_be_pushed_between_those_that_are_sent() -> None:
    async with site() as app, raw_client(app.port) as client:
        app.streams = True
        await client.send(b"GET /stream HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        await until(lambda: app.push is not None)
        assert app.push is not None
        assert app.push(b"pushed ")
        app.go_on.set()
        answer = await client.read_end()
        assert answer.endswith(b"\r\n\r\n6\r\nbegun \r\n7\r\npushed \r\n4\r\nsent\r\n0\r\n\r\n")
        assert not app.push(b"too late")


async def test_nothing_is_pushed_to_a_peer_that_does_not_read_or_has_gone() -> None:
    async with site() as app, raw_client(app.port) as client:
        app.streams = True
        await client.send(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n")
        await until(lambda: app.push is not None)
        assert app.push is not None
        pushed = 0
        while app.push(bytes(100_000)):
            pushed += 1
            assert pushed < 1000
            await asyncio.sleep(0)
        client.close()
        await until(lambda: app.gone)
        assert not app.push(b"x")


async def test_an_answered_request_leaves_nothing_to_the_collector() -> None:
    async with site() as app, raw_client(app.port) as client:
        await client.send(post(b"one"))
        await client.read_reply()
        gc.collect()
        gc.disable()
        try:
            for _ in range(50):
                await client.send(post(b"hold"))
                await until(lambda: bool(app.held))
                app.held.pop()(200, b"", b"")
                await client.read_reply()
            left = [thing for thing in gc.get_objects() if type(thing).__name__ == "_DirectCycle"]
        finally:
            gc.enable()
        assert len(left) <= 2


async def test_a_closed_socket_leaves_nothing_to_the_collector() -> None:
    """Neither where its last request took the plain path, nor where it took the direct one."""
    async with site() as app:
        gc.collect()
        gc.disable()
        try:
            for number in range(30):
                async with raw_client(app.port) as client:
                    for _ in range(1 + number % 2):
                        await client.send(post(b"one"))
                        await client.read_reply()
            assert app.server is not None
            await until(lambda: not app.server.server_state.connections)  # type: ignore[union-attr]
            of_sockets = {"DirectProtocol", "RequestResponseCycle", "_DirectCycle"}
            left = [thing for thing in gc.get_objects() if type(thing).__name__ in of_sockets]
        finally:
            gc.enable()
        assert len(left) <= 4
