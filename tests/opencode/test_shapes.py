"""Every endpoint of OpenCode's own document is served in the same shape or refused with a reason; so are its events."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from sandbox_agent.agents import Catalog
from sandbox_agent.files import FileService
from sandbox_agent.http.api.elsewhere import Elsewhere
from sandbox_agent.http.doors.opencode.app import build_handlers
from sandbox_agent.http.doors.opencode.door import OpenCodeParts
from sandbox_agent.http.doors.opencode.not_served import NOT_SERVED
from sandbox_agent.http.doors.opencode.table import routes
from support.hub import hub_here
from support.limits import file_limits
from support.opencode import Heard, OpenCode, following, opencode
from support.opencode_schema import Schema
from support.server import running_server

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [ROOT / "src/sandbox_agent" / place for place in ("history/opencode", "http/doors/opencode")]
PAGE = ROOT / "docs" / "opencode.md"
BEGIN, END = "<!-- endpoints: made by tests/opencode/test_shapes.py -->", "<!-- end of endpoints -->"
STREAMS = {"GET /event", "GET /global/event"}
SOCKETS = {"GET /pty/{ptyID}/connect", "GET /api/pty/{ptyID}/connect"}
TEXT = {"parts": [{"type": "text", "text": "plan"}]}
CHANGING = {"DELETE /session/{sessionID}", "DELETE /pty/{ptyID}", "DELETE /api/pty/{ptyID}"}


class World:
    """A server with a session in which all kinds of things have happened, and what waits for an answer."""

    def __init__(self, client: OpenCode) -> None:
        self.client = client
        self.names: dict[str, str] = {}

    async def fill(self) -> None:
        client = self.client
        session = await client.new_session(title="Shapes")
        answer = await client.prompt(session, "thought hm; plan; usage; image; kinds")
        self.names = {
            "sessionID": session,
            "messageID": answer["info"]["id"],
            "partID": answer["parts"][0]["id"],
            "projectID": "global",
            "providerID": "mock",
            "ptyID": await self.terminal(),
            "name": "x",
            "id": "wrk_x",
            "requestID": "per_x",
            "permissionID": "per_x",
            "integrationID": "x",
            "attemptID": "x",
            "credentialID": "x",
        }

    async def terminal(self) -> str:
        return str((await self.client.post("/pty", {"command": "cat"}))["id"])

    async def asked(self, words: str, kind: str) -> str:
        """The id of a request that waits."""
        session = self.names["sessionID"]
        async with following(self.client) as heard:
            await self.client.prompt_async(session, words)
            return str((await heard.first(kind))["id"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    home = tmp_path_factory.mktemp("shapes")
    async with running_server(home, "--default-agent", "mock") as server, opencode(server.url) as client:
        made = World(client)
        await made.fill()
        yield made


@pytest.fixture(scope="session")
def schema(document: dict[str, Any]) -> Schema:
    return Schema(document)


BODIES: dict[str, Any] = {
    "POST /session": {"title": "x"},
    "PATCH /session/{sessionID}": {"title": "y"},
    "POST /session/{sessionID}/message": TEXT,
    "POST /session/{sessionID}/prompt_async": TEXT,
    "POST /session/{sessionID}/command": {"command": "plan", "arguments": ""},
    "POST /session/{sessionID}/fork": {},
    "POST /session/{sessionID}/revert": {"messageID": "msg_x"},
    "POST /permission/{requestID}/reply": {"reply": "once"},
    "POST /session/{sessionID}/permissions/{permissionID}": {"response": "reject"},
    "POST /question/{requestID}/reply": {"answers": [["Red"]]},
    "POST /pty": {"command": "sh", "args": ["-c", "exit 0"]},
    "PUT /pty/{ptyID}": {"title": "x", "size": {"rows": 30, "cols": 100}},
    "POST /api/pty": {"command": "sh", "args": ["-c", "exit 0"]},
    "PUT /api/pty/{ptyID}": {"title": "y", "size": {"rows": 30, "cols": 100}},
    "POST /api/session": {"location": {"directory": "/tmp"}},
    "POST /api/session/{sessionID}/agent": {"agent": "build"},
    "POST /api/session/{sessionID}/model": {"model": {"providerID": "mock", "id": "default"}},
    "POST /api/session/{sessionID}/prompt": {"prompt": {"text": "plan", "files": [{"uri": "file:///tmp/a.py"}]}},
    "POST /api/session/{sessionID}/permission/{requestID}/reply": {"reply": "reject"},
    "POST /api/session/{sessionID}/question/{requestID}/reply": {"answers": [["Red"]]},
    "POST /log": {"service": "test", "level": "info", "message": "hello"},
    "POST /tui/append-prompt": {"text": "x"},
    "POST /tui/execute-command": {"command": "agent_cycle"},
    "POST /tui/show-toast": {"message": "x", "variant": "info"},
    "POST /tui/publish": {"type": "tui.prompt.append", "properties": {"text": "x"}},
}
QUERIES: dict[str, dict[str, Any]] = {
    "GET /find": {"pattern": "x"},
    "GET /find/file": {"query": "x"},
    "GET /find/symbol": {"query": "x"},
    "GET /file": {"path": "."},
    "GET /file/content": {"path": "missing"},
    "GET /vcs/diff": {"mode": "git"},
    "GET /experimental/tool": {"provider": "mock", "model": "default"},
    "GET /api/fs/find": {"query": "x"},
}
ASKING = {
    "POST /permission/{requestID}/reply": ("tool ls", "permission.asked"),
    "POST /session/{sessionID}/permissions/{permissionID}": ("tool ls", "permission.asked"),
    "POST /question/{requestID}/reply": ("question", "question.asked"),
    "POST /question/{requestID}/reject": ("question", "question.asked"),
    "GET /api/session/{sessionID}/permission": ("tool ls", "permission.asked"),
    "GET /api/session/{sessionID}/permission/{requestID}": ("tool ls", "permission.asked"),
    "POST /api/session/{sessionID}/permission/{requestID}/reply": ("tool ls", "permission.asked"),
    "GET /api/permission/request": ("tool ls", "permission.asked"),
    "GET /api/session/{sessionID}/question": ("question", "question.asked"),
    "GET /api/question/request": ("question", "question.asked"),
    "POST /api/session/{sessionID}/question/{requestID}/reply": ("question", "question.asked"),
    "POST /api/session/{sessionID}/question/{requestID}/reject": ("question", "question.asked"),
}
TICKET = {"x-opencode-ticket": "1"}
REFUSED_HERE = {
    "POST /session/{sessionID}/summarize": "the agent has no command for it",
    "POST /session/{sessionID}/init": "the agent has no command for it",
    "POST /session/{sessionID}/revert": "the agent has no command for it",
}
"""Served where the agent can; the built-in agent cannot."""


async def call(world: World, name: str) -> httpx.Response:
    method, _, path = name.partition(" ")
    names = dict(world.names)
    if name in ASKING:
        names["requestID"] = names["permissionID"] = await world.asked(*ASKING[name])
    if name in CHANGING:
        names["sessionID"], names["ptyID"] = await world.client.new_session(), await world.terminal()
    body = BODIES.get(name)
    if name == "POST /tui/select-session":
        body = {"sessionID": names["sessionID"]}
    for key, value in names.items():
        path = path.replace(f"{{{key}}}", value)
    http, address = world.client.http, f"/opencode{path}"
    answer = await http.request(method, address, json=body, params=QUERIES.get(name), headers=TICKET)
    if name in ASKING and method == "GET":  # nobody waits for what has only been looked at
        await settle(world.client, names["requestID"])
        assert names["requestID"] in answer.text
    return answer


def value_of(answer: httpx.Response) -> Any:
    return answer.json() if answer.content else None


@pytest.mark.asyncio(loop_scope="module")
async def test_every_endpoint_answers_in_the_shape_of_opencodes_document(world: World, schema: Schema) -> None:
    problems: list[str] = []
    for name in schema.operations():
        if name in STREAMS | SOCKETS:
            continue
        answer = await call(world, name)
        is_refused = name in NOT_SERVED or name in REFUSED_HERE
        if is_refused != (answer.status_code == 400):
            problems.append(f"{name} answered {answer.status_code}: {answer.text[:200]}")
        elif not is_refused or schema.has_answer(name, 400):
            problems += schema.problems(name, answer.status_code, value_of(answer))
    assert not problems, "\n".join(problems)


async def test_what_is_served_and_what_is_not_are_the_endpoints_of_the_document(schema: Schema, tmp_path: Path) -> None:
    async with hub_here(tmp_path) as hub:
        files = FileService((), tmp_path, file_limits(), data_dir=None)
        limits: dict[str, Any] = {"stream_bytes": 1, "sessions_held": 1, "ticket_seconds": 1.0}
        elsewhere = Elsewhere(hub, None, None)
        forwarding: dict[str, Any] = {"forward": elsewhere.forward, "ask_others": elsewhere.ask_others}
        parts = OpenCodeParts(hub, Catalog({}), files, 1, 1.0, None, issue_ticket=str, **forwarding, **limits)
        names = [route.name for route in routes(build_handlers(parts))]
    assert set(names) == set(schema.operations())
    assert len(names) == len(set(names))  # nothing is both served and not


@pytest.mark.asyncio(loop_scope="module")
async def test_missing_things_answer_in_the_shape_of_the_document(world: World, schema: Schema) -> None:
    problems: list[str] = []
    known = world.names
    world.names = {**known, "sessionID": "ses_missing", "messageID": "msg_missing", "providerID": "missing"}
    world.names["ptyID"] = "pty_missing"
    try:
        for name in schema.operations():
            if (
                name in NOT_SERVED
                or name == "DELETE /session/{sessionID}"
                or name in SOCKETS
                or not schema.has_answer(name, 404)
            ):
                continue
            method, _, path = name.partition(" ")
            for key, value in world.names.items():
                path = path.replace(f"{{{key}}}", value)
            body = {"sessionID": "ses_missing"} if name == "POST /tui/select-session" else BODIES.get(name)
            answer = await world.client.http.request(method, f"/opencode{path}", json=body, headers=TICKET)
            if answer.status_code != 404:
                problems.append(f"{name} answered {answer.status_code}: {answer.text[:200]}")
            else:
                problems += schema.problems(name, 404, value_of(answer))
    finally:
        world.names = known
    assert not problems, "\n".join(problems)


@pytest.mark.asyncio(loop_scope="module")
async def test_bodies_that_are_none_answer_in_the_shape_of_the_document(world: World, schema: Schema) -> None:
    problems: list[str] = []
    for name in BODIES:
        method, _, path = name.partition(" ")
        for key, value in world.names.items():
            path = path.replace(f"{{{key}}}", value)
        headers = {"Content-Type": "application/json"}
        answer = await world.client.http.request(method, f"/opencode{path}", content=b"{", headers=headers)
        if answer.status_code != 400:
            problems.append(f"{name} answered {answer.status_code}: {answer.text[:200]}")
        else:
            problems += schema.problems(name, 400, value_of(answer))
    assert not problems, "\n".join(problems)


@pytest.mark.asyncio(loop_scope="module")
async def test_every_event_of_many_turns_is_one_of_the_document(world: World, schema: Schema) -> None:
    client = world.client
    async with following(client) as heard, following(client, "/global/event") as everywhere:
        session = await client.new_session(title="Events")
        for count, (words, kind) in enumerate(
            [
                ("demo", "permission.asked"),
                ("tool ls", "permission.asked"),
                ("question multi", "question.asked"),
                ("elicit", "question.asked"),
                ("terminal echo hello", None),
                ("fail", None),
                ("thought hm; plan; usage; image; kinds", None),
            ],
            1,
        ):
            await client.prompt_async(session, words)
            while kind is not None:
                waiting = await heard.until(partial(waiting_or_idle, session=session, count=count))
                if waiting is True:
                    break
                await settle(client, waiting)
                await heard.until(partial(is_settled, request=waiting))
            await heard.until(partial(is_idle, session=session, count=count))
        await client.prompt_async(session, "hang")
        await heard.until(lambda heard: len(heard.messages(session)) == 16)
        await client.post(f"/session/{session}/abort")
        await heard.until(lambda heard: idle_times(heard, session) >= 8)
        await client.http.patch(f"/opencode/session/{session}", json={"title": "z"})
        await client.http.delete(f"/opencode/session/{session}")
        await heard.first("session.deleted")
        await everywhere.first("session.deleted")
        await client.post("/pty", {"command": "sh", "args": ["-c", "exit 3"]})
        await heard.first("pty.exited")
        left = (await client.post("/pty", {"command": "cat"}))["id"]
        await client.http.put(f"/opencode/pty/{left}", json={"title": "x"})
        await client.http.delete(f"/opencode/pty/{left}")
        await everywhere.first("pty.deleted")
        await everybody_is_told(client, heard)
    for event in [*heard.events, *everywhere.events]:
        if event["type"] != "server.heartbeat":  # OpenCode sends it, and its document does not name it
            assert not schema.event_problems(event), (schema.event_problems(event), event)
    assert set(heard.types()) | {"server.heartbeat"} == kinds_in_the_source(schema)


def kinds_in_the_source(schema: Schema) -> set[str]:
    """All events of the document that our code has a word for, so that one more is not left unheard here."""
    text = "".join(path.read_text() for folder in SOURCES for path in folder.glob("*.py"))
    named = set(re.findall(r'"([a-z]+(?:\.[a-z]+)+)"', text))
    return {kind for kind in named if schema.has_event(kind)} | {"server.heartbeat"}


async def everybody_is_told(client: OpenCode, heard: Heard) -> None:
    """A question that is rejected, and what programs say to terminal UIs."""
    session = await client.new_session()
    await client.prompt_async(session, "question")
    asked = await heard.until(lambda heard: [o["id"] for o in heard.of("question.asked") if o["sessionID"] == session])
    await client.post(f"/question/{asked[0]}/reject")
    await heard.first("question.rejected")
    for name in ("append-prompt", "execute-command", "show-toast"):
        await client.post(f"/tui/{name}", BODIES[f"POST /tui/{name}"])
    await client.post("/tui/select-session", {"sessionID": session})
    await heard.first("tui.session.select")


def settled(heard: Heard) -> set[str]:
    kinds = ("permission.replied", "question.replied", "question.rejected")
    return {one["requestID"] for kind in kinds for one in heard.of(kind)}


def is_settled(heard: Heard, request: str) -> bool:
    return request in settled(heard)


def waiting_or_idle(heard: Heard, session: str, count: int) -> str | bool:
    """The id of what waits for an answer, or whether the turn is over."""
    asked = [one["id"] for one in [*heard.of("permission.asked"), *heard.of("question.asked")]]
    waiting = [request for request in asked if request not in settled(heard)]
    return waiting[0] if waiting else is_idle(heard, session, count)


def is_idle(heard: Heard, session: str, count: int) -> bool:
    return idle_times(heard, session) >= count


def idle_times(heard: Heard, session: str) -> int:
    return [one["sessionID"] for one in heard.of("session.idle")].count(session)


async def settle(client: OpenCode, request: str) -> None:
    if request.startswith("per_"):
        await client.http.post(f"/opencode/permission/{request}/reply", json={"reply": "once"})
        return
    asked = next(one for one in await client.get("/question") if one["id"] == request)
    answers = [[q["options"][0]["label"]] if q["options"] else ["Ann"] for q in asked["questions"]]
    await client.http.post(f"/opencode/question/{request}/reply", json={"answers": answers})


@pytest.mark.asyncio(loop_scope="module")
async def test_opencodes_own_server_and_ours_answer_plain_reads_alike(
    world: World, original: str, schema: Schema
) -> None:
    """The same status and the same kind of value, for every read that names nothing."""
    offline = {"GET /api/location", "GET /find", "GET /find/file", "GET /api/fs/find"}  # theirs would download programs
    reads = [name for name in schema.operations() if name.startswith("GET ") and not {*"{*"} & {*name}]
    async with httpx.AsyncClient(base_url=original, timeout=60, trust_env=False) as http:
        for name in reads:
            if name in STREAMS | offline or name in NOT_SERVED:
                continue
            theirs = await http.get(name.removeprefix("GET "), params=QUERIES.get(name))
            ours = await call(world, name)
            assert ours.status_code == theirs.status_code, (name, ours.text, theirs.text)
            assert type(ours.json()) is type(theirs.json()), name


def test_the_page_lists_every_endpoint(schema: Schema) -> None:
    names = sorted(schema.operations(), key=lambda name: (name.split(" ")[1], name))
    rows = [f"| `{name}` | {'no: ' + NOT_SERVED[name] if name in NOT_SERVED else 'yes'} |" for name in names]
    table = "\n".join(["| endpoint | served |", "|---|---|", *rows])
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    made = f"{before}{BEGIN}\n{table}\n{END}{after}"
    if os.environ.get("REGENERATE") == "1":
        PAGE.write_text(made)
        return
    assert page == made, "run it with REGENERATE=1"
