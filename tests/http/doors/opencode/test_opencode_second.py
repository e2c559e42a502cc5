"""OpenCode's second session API, `/api/session`: the same sessions, messages and requests in other words."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from support.opencode import Heard, OpenCode, following


def is_idle(heard: Heard, session: str) -> bool:
    return session in [one["sessionID"] for one in heard.of("session.idle")]


async def test_a_conversation_in_the_words_of_the_second_api(client: OpenCode, tmp_path: Path) -> None:
    made = (await client.post("/api/session", {"location": {"directory": str(tmp_path)}}))["data"]
    session = made["id"]
    assert made["location"] == {"directory": str(tmp_path)}
    assert (await client.get(f"/api/session/{session}"))["data"] == made
    async with following(client) as heard:
        prompt = {"text": "thought hm; good day", "files": [{"uri": "file:///tmp/a%20b.py"}]}
        admitted = (await client.post(f"/api/session/{session}/prompt", {"prompt": prompt}))["data"]
        assert admitted["sessionID"] == session
        await heard.until(lambda heard: is_idle(heard, session))
    assistant, user = (await client.get(f"/api/session/{session}/message"))["data"]
    assert (user["id"], user["type"], user["text"]) == (admitted["id"], "user", "thought hm; good day")
    assert user["files"] == [{"uri": "file:///tmp/a%20b.py", "mime": "text/x-python", "name": "a b.py"}]
    assert [part["type"] for part in assistant["content"]][:1] == ["reasoning"]
    assert "completed" in assistant["time"]
    assert (await client.get(f"/api/session/{session}/message/{user['id']}"))["data"] == user
    assert (await client.get(f"/api/session/{session}/message", order="asc"))["data"] == [user, assistant]
    newest = await client.get(f"/api/session/{session}/message", limit=1)
    assert newest["data"] == [assistant]
    assert (await client.get(f"/api/session/{session}/message", cursor=newest["cursor"]["next"]))["data"] == [user]


async def test_sessions_are_listed_page_by_page(client: OpenCode, tmp_path: Path) -> None:
    here = {"directory": str(tmp_path)}
    titles = [f"{word} {number}" for number in range(3) for word in ("pear", "apple")]
    for title in titles:
        await client.post("/session", {"title": title}, **here)

    async def read(**query: Any) -> list[list[str]]:
        """Page after page, as the web UI does."""
        pages: list[list[str]] = []
        cursor: dict[str, str] = {}
        while True:
            page = await client.get("/api/session", **here, **query, **cursor)
            pages.append([one["title"] for one in page["data"]])
            if "next" not in page["cursor"]:
                return pages
            cursor = {"cursor": page["cursor"]["next"]}

    every = await read(limit=4)
    assert [len(page) for page in every] == [4, 2]  # clients stop at a page that is not full
    assert [*chain(*every)] == titles[::-1]
    assert [*chain(*await read(limit=2, search="PEAR"))] == ["pear 2", "pear 1", "pear 0"]


async def test_requests_are_listed_and_answered_below_their_session(client: OpenCode) -> None:
    session, other = await client.new_session(), await client.new_session()
    below = f"/api/session/{session}"
    async with following(client) as heard:
        await client.prompt_async(session, "tool ls")
        asked = await heard.first("permission.asked")
        (listed,) = (await client.get(f"{below}/permission"))["data"]
        assert (listed["id"], listed["action"]) == (asked["id"], "bash")
        assert (await client.get(f"{below}/permission/{asked['id']}"))["data"] == listed
        assert session in (await client.get("/api/session/active"))["data"]
        assert (await client.get(f"/api/session/{other}/permission"))["data"] == []
        body = {"reply": "once"}
        elsewhere = await client.http.post(f"/opencode/api/session/{other}/permission/{asked['id']}/reply", json=body)
        assert (elsewhere.status_code, elsewhere.json()["_tag"]) == (404, "PermissionNotFoundError")
        reply = await client.http.post(f"/opencode{below}/permission/{asked['id']}/reply", json=body)
        assert reply.status_code == 204
        await heard.first("permission.replied")
        await heard.until(lambda heard: is_idle(heard, session))
        await client.prompt_async(other, "question")
        question = await heard.first("question.asked")
        wrong = await client.http.post(f"/opencode{below}/question/{question['id']}/reject")
        assert (wrong.status_code, wrong.json()["_tag"]) == (404, "QuestionNotFoundError")
        right = f"/opencode/api/session/{other}/question/{question['id']}/reply"
        assert (await client.http.post(right, json={"answers": [["Red"]]})).status_code == 204
        await heard.first("question.replied")
        await heard.until(lambda heard: is_idle(heard, other))
    assert (await client.get("/api/session/active"))["data"] == {}


async def test_model_and_mode_are_switched_and_a_turn_is_interrupted(client: OpenCode) -> None:
    session = await client.new_session()
    below = f"/opencode/api/session/{session}"
    model = {"model": {"providerID": "mock", "id": "mock-large"}}
    assert (await client.http.post(f"{below}/model", json=model)).status_code == 204
    assert (await client.get(f"/session/{session}"))["model"]["id"] == "mock-large"
    foreign = await client.http.post(f"{below}/model", json={"model": {"providerID": "claude", "id": "x"}})
    assert (foreign.status_code, foreign.json()["_tag"]) == (400, "InvalidRequestError")
    assert (await client.http.post(f"{below}/agent", json={"agent": "build"})).status_code == 204
    async with following(client) as heard:
        await client.prompt_async(session, "hang")
        await heard.until(lambda heard: len(heard.messages(session)) == 2)
        assert (await client.http.post(f"{below}/interrupt")).status_code == 204
        await heard.until(lambda heard: is_idle(heard, session))
    newest = (await client.get(f"/api/session/{session}/message", limit=1))["data"][0]
    assert newest["error"]["type"] == "unknown"


async def test_what_does_not_exist_is_told_in_its_words(client: OpenCode) -> None:
    session = await client.new_session()
    for given in ("ses_x", "nonsense", "msg_0123456789ab00000000000000", "%00"):
        asked: list[tuple[str, str, Any]] = [
            ("GET", "", None),
            ("POST", "/prompt", {"prompt": {"text": "x"}}),
            ("POST", "/model", {"model": {"providerID": "mock", "id": "x"}}),
            ("POST", "/agent", {"agent": "x"}),
            ("POST", "/interrupt", None),
            ("GET", "/message", None),
            ("GET", "/message/msg_x", None),
            ("GET", "/permission", None),
            ("GET", "/permission/per_x", None),
            ("POST", "/permission/per_x/reply", {"reply": "once"}),
            ("GET", "/question", None),
            ("POST", "/question/que_x/reply", {"answers": []}),
            ("POST", "/question/que_x/reject", None),
        ]
        for method, path, body in asked:
            answer = await client.http.request(method, f"/opencode/api/session/{given}{path}", json=body)
            assert (answer.status_code, answer.json()["_tag"]) == (404, "SessionNotFoundError"), answer.text
    missing = await client.http.get(f"/opencode/api/session/{session}/message/msg_x")
    assert (missing.status_code, missing.json()["_tag"]) == (404, "MessageNotFoundError")
    cursor = await client.http.get(f"/opencode/api/session/{session}/message?cursor=msg_x")
    assert (cursor.status_code, cursor.json()["_tag"]) == (400, "InvalidCursorError")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"prompt":"x"}',
        b'{"prompt":{}}',
        b'{"prompt":{"text":5}}',
        b'{"prompt":{"text":"x","files":[{}]}}',
        b'{"prompt":{"text":"x","files":[{"uri":"data:"}]}}',
        b'{"prompt":{"text":"x"},"id":"ses_x"}',
        b"[" * 100_000,
    ],
)
async def test_bodies_that_are_no_prompts(client: OpenCode, body: bytes) -> None:
    session = await client.new_session()
    headers = {"Content-Type": "application/json"}
    answer = await client.http.post(f"/opencode/api/session/{session}/prompt", content=body, headers=headers)
    assert (answer.status_code, answer.json()["_tag"]) == (400, "InvalidRequestError"), answer.text
    assert await client.messages(session) == []


async def test_cost_and_tokens_are_in_lists(client: OpenCode, tmp_path: Path) -> None:
    made = await client.post("/session", {"title": "Costly"}, directory=str(tmp_path))
    answer = await client.prompt(made["id"], "usage")
    (listed,) = await client.get("/session", directory=str(tmp_path))
    assert listed["cost"] == answer["info"]["cost"] > 0
    assert sum_of(listed["tokens"]) == sum_of(answer["info"]["tokens"]) > 0
    (second,) = (await client.get("/api/session", directory=str(tmp_path)))["data"]
    assert (second["cost"], second["tokens"]) == (listed["cost"], listed["tokens"])


def sum_of(tokens: dict[str, Any]) -> int:
    return int(tokens["input"] + tokens["output"] + tokens["reasoning"])
