"""One conversation with OpenCode's own server, and the same with ours in front of OpenCode's agent: all calls that
change something, then what can be read of it. Both answer with the same status, and ours has all that theirs has."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from support.fake_llm import FakeLLM
from support.opencode_program import opencode_serving
from support.real_agents import prepare_agent
from support.real_world import install_real, real_cache
from support.server import running_server

DEADLINE = 90.0
_TOOL = "read/message: .parts of the assistant[tool/completed].state.metadata"
ONLY_THEIRS = {
    "read: .model.variant": "ACP has no variants of a model",
    "list: [].model.variant": "ACP has no variants of a model",
    "list: [].summary": "it would need every history to be read; the session itself has it",
    "abort no session": "it says that it has aborted something: we say that there is nothing of that name",
    "no JSON": "it calls that an internal error",
    "an array: ._tag": "a third shape of errors, which its document does not have",
    f"{_TOOL}.exit": "ACP has no exit code of a tool call",
    f"{_TOOL}.truncated": "what was cut says so in its text",
}
"""Where OpenCode's own server says something else, or more, with the reason."""


@dataclass
class Side:
    """One of the two servers, and what it has answered, by step."""

    http: httpx.AsyncClient
    provider: str
    model: str
    work: Path
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)

    async def call(self, step: str, method: str, path: str, body: Any = None, content: bytes | None = None) -> Any:
        headers = {"content-type": "application/json"} if content is not None else {}
        query = {"directory": str(self.work)}
        if content is None and body is not None:
            content, headers = msgspec.json.encode(body), {"content-type": "application/json"}
        answer = await self.http.request(method, path, content=content, headers=headers, params=query)
        value = answer.json() if answer.content else None
        self.answers[step] = (answer.status_code, value)
        return value

    async def until(self, path: str, done: Callable[[Any], Any]) -> Any:
        """The value, once it is as wanted."""
        async with asyncio.timeout(DEADLINE):
            while True:
                value = (await self.http.get(path, params={"directory": str(self.work)})).json()
                if found := done(value):
                    return found
                await asyncio.sleep(0.1)

    def said(self, text: str) -> dict[str, Any]:
        model = {"providerID": self.provider, "modelID": self.model}
        return {"parts": [{"type": "text", "text": text}], "model": model}


async def converse(side: Side) -> None:
    made = await side.call("create", "POST", "/session", {"title": "Side by side"})
    session = f"/session/{made['id']}"
    await side.call("rename", "PATCH", session, {"title": "Renamed"})
    answer = await side.call("prompt", "POST", f"{session}/message", side.said("hello THINK"))
    await side.call("one message", "GET", f"{session}/message/{answer['info']['id']}")

    for reply in ("once", "reject"):
        await side.call(f"prompt to {reply}", "POST", f"{session}/prompt_async", side.said(f"RUN:touch {reply}"))
        asked = await side.until("/permission", lambda waiting: waiting)
        await side.call(f"permissions before {reply}", "GET", "/permission")
        await side.call(f"busy before {reply}", "GET", "/session/status")
        await side.call(reply, "POST", f"/permission/{asked[0]['id']}/reply", {"reply": reply})
        await _idle(side, made["id"])
        await side.call(f"{reply} again", "POST", f"/permission/{asked[0]['id']}/reply", {"reply": reply})
        assert (side.work / reply).exists() == (reply == "once")

    await side.call("slow prompt", "POST", f"{session}/prompt_async", side.said("SLOW"))
    await side.until(f"{session}/message", lambda messages: "slow1" in str(messages))
    await side.call("abort", "POST", f"{session}/abort")
    await _idle(side, made["id"])
    await side.call("abort nothing", "POST", f"{session}/abort")
    for name in ("", "/message", "/todo", "/diff", "/children"):
        await side.call(f"read{name}", "GET", f"{session}{name}")
    await side.call("list", "GET", "/session")
    await side.call("fork", "POST", f"{session}/fork", {})
    await _terminals(side)
    await _mistakes(side, session)
    await side.call("delete", "DELETE", session)
    await side.call("read deleted", "GET", session)
    await side.call("messages of deleted", "GET", f"{session}/message")
    await side.call("delete again", "DELETE", session)


async def _idle(side: Side, session: str) -> None:
    await side.until("/session/status", lambda status: status.get(session, {}).get("type", "idle") == "idle")


async def _terminals(side: Side) -> None:
    made = await side.call("terminal", "POST", "/pty", {"command": "cat", "title": "Cat"})
    terminal = f"/pty/{made['id']}"
    await side.call("change terminal", "PUT", terminal, {"title": "Dog", "size": {"rows": 30, "cols": 90}})
    await side.call("terminals", "GET", "/pty")
    await side.call("end terminal", "DELETE", terminal)
    await side.call("ended terminal", "GET", terminal)


async def _mistakes(side: Side, session: str) -> None:
    await side.call("no session", "POST", "/session/ses_missing/message", side.said("x"))
    await side.call("abort no session", "POST", "/session/ses_missing/abort")
    await side.call("rename no session", "PATCH", "/session/ses_missing", {"title": "x"})
    await side.call("no message", "GET", f"{session}/message/msg_missing")
    await side.call("no permission", "POST", "/permission/per_missing/reply", {"reply": "once"})
    await side.call("no question", "POST", "/question/que_missing/reply", {"answers": [["x"]]})
    await side.call("parts of a wrong type", "POST", f"{session}/message", {"parts": 5})
    await side.call("a part of no kind", "POST", f"{session}/message", {"parts": [{"type": "nothing"}]})
    await side.call("a title of a wrong type", "PATCH", session, {"title": 5})
    await side.call("no JSON", "POST", f"{session}/message", content=b"{")
    await side.call("an array", "POST", "/session", content=b"[]")
    await side.call("a reply of no kind", "POST", "/permission/per_missing/reply", {"reply": "perhaps"})


@pytest.fixture(scope="module")
def theirs(program: Path, llm: FakeLLM, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("theirs")
    with opencode_serving(program, home, prepare_agent("opencode", home / "home", llm.url)) as url:
        yield url


@contextlib.asynccontextmanager
async def our_side(llm: FakeLLM, root: Path) -> AsyncIterator[Side]:
    await install_real("opencode")
    data = root / "server" / "data"
    data.mkdir(parents=True)
    (data / "agents").symlink_to(real_cache() / "agents")
    env = prepare_agent("opencode", root / "home", llm.url)
    config = "[agents.opencode.env]\n" + "".join(f"{k} = {msgspec.json.encode(v).decode()}\n" for k, v in env.items())
    nowhere = {"SANDBOX_AGENT_ACP_REGISTRY_URL": "http://127.0.0.1:9/", "SANDBOX_AGENT_REQUIRE_PREINSTALL": "1"}
    options = ("--no-token", "--default-agent", "opencode")
    async with (
        running_server(root / "server", *options, config=config, env=nowhere) as server,
        _client(f"{server.url}/opencode") as http,
    ):
        yield Side(http, "opencode", "default", _work(root))


def _client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=DEADLINE, trust_env=False)


def _work(root: Path) -> Path:
    work = root / "work"
    work.mkdir(exist_ok=True)
    return work


async def test_the_same_conversation_is_answered_alike(theirs: str, llm: FakeLLM, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    async with _client(theirs) as http, our_side(llm, tmp_path / "ours") as ours:
        original = Side(http, "loopback", "fake-model", _work(tmp_path / "theirs"))
        await converse(original)
        await converse(ours)
    found = {
        place: problem
        for step, answer in original.answers.items()
        for place, problem in _differences(step, answer, ours.answers[step]).items()
    }
    unexpected = [f"{place} {found[place]}" for place in found if place not in ONLY_THEIRS]
    assert not unexpected, "\n".join(unexpected)
    assert not ONLY_THEIRS.keys() - found.keys(), "no longer true"


def _differences(step: str, theirs: tuple[int, Any], ours: tuple[int, Any]) -> dict[str, str]:
    """What is wrong, by place."""
    if theirs[0] != ours[0]:
        return {step: f"is answered with {theirs[0]} {str(theirs[1])[:300]} there, here {ours[0]} {str(ours[1])[:300]}"}
    return dict(_missing(_comparable(theirs[1]), _comparable(ours[1]), f"{step}: "))


def _comparable(value: Any) -> Any:
    """The same without what differs by chance: the ids of sessions as names, how a turn is cut into messages."""
    if isinstance(value, dict) and any(name.startswith("ses_") for name in value):
        return list(value.values())
    if isinstance(value, list) and value and isinstance(value[0], dict) and "parts" in value[0]:
        return {
            "infos": [one["info"] for one in value],
            **{
                f"parts of the {role}": [part for one in value if one["info"]["role"] == role for part in one["parts"]]
                for role in ("user", "assistant")
            },
        }
    return value


def _missing(theirs: Any, ours: Any, path: str) -> Iterator[tuple[str, str]]:
    """What theirs has and ours has not, or has as another kind of value."""
    if _kind(theirs) != _kind(ours):
        yield path, f"is {_kind(theirs)} there and {_kind(ours)} here"
    elif isinstance(theirs, dict):
        for name, value in theirs.items():
            if name in ours:
                yield from _missing(value, ours[name], f"{path}.{name}")
            else:
                yield f"{path}.{name}", f"is not here: {str(value)[:300]}"
    elif isinstance(theirs, list):
        for one in theirs:
            fellow = next((each for each in ours if _name(each) == _name(one)), None)
            if fellow is None:
                yield f"{path}[{_name(one)}]", f"is not here: {str(one)[:300]}"
            else:
                yield from _missing(one, fellow, f"{path}[{_name(one)}]")


def _name(value: Any) -> str:
    """What it is, as far as members tell that depend on it."""
    if not isinstance(value, dict):
        return _kind(value)
    state = value.get("state")
    status = state.get("status", "") if isinstance(state, dict) else ""
    failure = "failed" if "error" in value else ""
    return "/".join(filter(None, [value.get("role", ""), value.get("type", ""), status, failure]))


def _kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
