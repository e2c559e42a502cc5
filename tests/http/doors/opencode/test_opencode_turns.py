"""Turns through `/opencode`: what is answered, what is told, and that both are the same."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from support.opencode import Heard, OpenCode, following, opencode
from support.server import running_server

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def idle(heard: Heard, session: str, count: int = 1) -> bool:
    return [one["sessionID"] for one in heard.of("session.idle")].count(session) >= count


def text_of(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text")


async def test_a_prompt_answers_with_the_message_of_the_assistant(client: OpenCode) -> None:
    session = await client.new_session()
    answer = await client.prompt(session, "good day")
    assert answer["info"]["role"] == "assistant"
    assert answer["info"]["finish"] == "stop"
    assert text_of(answer) == "good day"
    user, assistant = await client.messages(session)
    assert assistant == answer
    assert text_of(user) == "good day"
    assert assistant["info"]["parentID"] == user["info"]["id"]
    assert await client.get(f"/session/{session}/message/{user['info']['id']}") == user


async def test_what_events_tell_is_what_a_reload_shows(client: OpenCode) -> None:
    session = await client.new_session()
    async with following(client) as heard, following(client, "/global/event") as everywhere:
        await client.prompt_async(session, "thought hm; plan; usage; image; kinds")
        await heard.until(lambda heard: idle(heard, session))
        await everywhere.until(lambda heard: idle(heard, session))
        reloaded = await client.messages(session)
        assert heard.messages(session) == reloaded
        assert everywhere.messages(session) == reloaded
        assert heard.of("todo.updated")[-1]["todos"] == await client.get(f"/session/{session}/todo")
        await heard.until(lambda heard: "session.updated" in heard.types()[heard.types().index("session.idle") :])
    assert heard.types()[0] == "server.connected"
    mine = [event["type"] for event in heard.events if event["properties"].get("sessionID") == session]
    first = mine.index("message.updated")  # before it, the session was told as it stood when the stream began
    order = [type_ for type_ in mine[first:] if type_ in ("message.updated", "session.status", "session.idle")]
    begun, told = ["message.updated", "session.status", "message.updated"], ["message.updated"] * 2
    assert order == [*begun, *told, "session.status", "session.idle"]  # of the user's, what the turn has changed


async def test_a_permission_is_asked_answered_and_told_to_have_been_answered(client: OpenCode) -> None:
    session = await client.new_session()
    async with following(client) as heard:
        for number, (reply, said) in enumerate([("once", "The tool ran."), ("reject", "The permission was rejected.")]):
            await client.prompt_async(session, "tool ls")
            asked = await heard.first("permission.asked", number + 1)
            assert await client.get("/permission") == [asked]
            assert (await client.get("/session/status"))[session] == {"type": "busy"}
            assert await client.post(f"/permission/{asked['id']}/reply", {"reply": reply}) is True
            assert (await heard.first("permission.replied", number + 1))["reply"] == reply
            await heard.until(partial(idle, session=session, count=number + 1))
            assert text_of((await client.messages(session))[-1]) == said
            assert await client.get("/permission") == []
    assert await client.get("/session/status") == {}


async def test_a_permission_can_be_answered_below_its_session_too(client: OpenCode) -> None:
    session = await client.new_session()
    async with following(client) as heard:
        await client.prompt_async(session, "edit notes.txt")
        asked = await heard.first("permission.asked")
        assert asked["permission"] == "edit"
        assert "+hello, world" in asked["metadata"]["diff"]
        await client.post(f"/session/{session}/permissions/{asked['id']}", {"response": "always"})
        await heard.until(lambda heard: idle(heard, session))
        assert heard.of("permission.replied")[0]["reply"] == "always"
        (changed,) = await client.get(f"/session/{session}/diff")
        assert heard.of("session.diff")[-1]["diff"] == [changed]
    user, _ = await client.messages(session)
    assert (await client.get(f"/session/{session}/diff", messageID=user["info"]["id"]))[0]["file"] == changed["file"]
    assert (await client.get(f"/session/{session}"))["summary"] == {"additions": 1, "deletions": 1, "files": 1}


async def test_questions_and_forms_are_answered_or_rejected(client: OpenCode) -> None:
    session = await client.new_session()
    async with following(client) as heard:
        await client.prompt_async(session, "question")
        asked = await heard.first("question.asked")
        assert await client.get("/question") == [asked]
        await client.post(f"/question/{asked['id']}/reply", {"answers": [["Green"]]})
        await heard.until(lambda heard: idle(heard, session))
        assert heard.of("question.replied")[0]["answers"] == [["Green"]]
        assert '"green"' in text_of((await client.messages(session))[-1])
        await client.prompt_async(session, "elicit")
        form = await heard.first("question.asked", 2)
        assert [question["header"] for question in form["questions"]] == ["name", "colour"]
        await client.post(f"/question/{form['id']}/reply", {"answers": [["Ann"], ["red"]]})
        await heard.until(lambda heard: idle(heard, session, 2))
        assert '"name":"Ann"' in text_of((await client.messages(session))[-1])
        await client.prompt_async(session, "elicit")
        again = await heard.first("question.asked", 3)
        await client.post(f"/question/{again['id']}/reject")
        await heard.first("question.rejected")
        await heard.until(lambda heard: idle(heard, session, 3))


async def test_an_abort_ends_the_turn_with_an_aborted_message(client: OpenCode) -> None:
    session = await client.new_session()
    async with following(client) as heard:
        running = asyncio.create_task(client.prompt(session, "hang"))
        await heard.until(lambda heard: len(heard.messages(session)) == 2)
        assert await client.post(f"/session/{session}/abort") is True
        answer = await running
        assert answer["info"]["error"]["name"] == "MessageAbortedError"
        assert (await heard.first("session.error"))["error"]["name"] == "MessageAbortedError"
    assert await client.post(f"/session/{session}/abort") is True


async def test_a_prompt_with_files_reaches_the_agent_and_is_shown(client: OpenCode) -> None:
    session = await client.new_session()
    parts = [
        {"type": "text", "text": "look"},
        {"type": "file", "mime": "image/png", "filename": "dot.png", "url": f"data:image/png;base64,{PIXEL}"},
        {"type": "file", "mime": "text/plain", "filename": "a.txt", "url": "file:///tmp/a.txt"},
    ]
    answer = await client.post(f"/session/{session}/message", {"parts": parts})
    assert text_of(answer) == "look [image] [resource_link]"
    user = (await client.messages(session))[0]
    assert [part["type"] for part in user["parts"]] == ["text", "file", "file"]


async def test_the_clients_own_message_id_is_kept(client: OpenCode) -> None:
    session = await client.new_session()
    first = await client.prompt(session, "one")
    stamp = int(first["info"]["id"][4:16], 16) + 4096 * 1000
    own = f"msg_{stamp:012x}abcdefghijklmn"
    answer = await client.prompt(session, "two", messageID=own)
    assert answer["info"]["parentID"] == own
    assert (await client.messages(session))[2]["info"]["id"] == own


async def test_model_and_mode_are_set_with_a_prompt_and_stand_in_its_messages(client: OpenCode) -> None:
    session = await client.new_session()
    providers = await client.get("/config/providers")
    mock = next(provider for provider in providers["providers"] if provider["id"] == "mock")
    other = next(name for name in mock["models"] if name not in ("default", "mock-small"))
    mode = next(a["name"] for a in await client.get("/agent") if a["name"] not in ("build", "ask"))
    answer = await client.prompt(session, "x", model={"providerID": "mock", "modelID": other}, agent=mode)
    assert (answer["info"]["modelID"], answer["info"]["mode"]) == (other, mode)
    shown = await client.get(f"/session/{session}")
    assert (shown["model"]["id"], shown["agent"]) == (other, mode)
    body = {"parts": [{"type": "text", "text": "x"}], "model": {"providerID": "claude", "modelID": "default"}}
    refused = await client.http.post(f"/opencode/session/{session}/message", json=body)
    assert refused.status_code == 400
    assert "belongs to agent 'mock'" in refused.text


async def test_a_turn_that_fails_is_a_message_with_an_error(client: OpenCode) -> None:
    session = await client.new_session()
    answer = await client.prompt(session, "fail")
    assert answer["info"]["error"]["name"] == "UnknownError"
    assert answer["info"]["time"]["completed"]


async def test_messages_are_the_same_after_a_restart_and_a_killed_turn_is_over(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, opencode(server.url) as client:
        session = await client.new_session(title="Kept")
        await client.prompt(session, "plan; usage")
        async with following(client) as heard:
            await client.prompt_async(session, "hang")
            await heard.until(lambda heard: heard.messages(session) and len(heard.messages(session)) >= 2)
        before = await client.messages(session)
        assert "completed" not in before[-1]["info"]["time"]
        todos = await client.get(f"/session/{session}/todo")
        server.kill()
    async with running_server(tmp_path) as server, opencode(server.url) as client:
        after = await client.messages(session)
        assert after[:-2] == before[:-2]
        assert after[-2]["parts"] == before[-2]["parts"]
        assert after[-1]["info"]["id"] == before[-1]["info"]["id"]
        assert after[-1]["info"]["error"]["name"] == "MessageAbortedError"
        assert await client.get(f"/session/{session}/todo") == todos
        assert (await client.get(f"/session/{session}"))["title"] == "Kept"
        async with following(client) as heard:
            told = await heard.until(lambda heard: len(heard.messages(session)) >= 2 and heard.messages(session))
            assert told[-1] == after[-1]  # one who comes back learns that the turn is over
            await client.prompt(session, "and on")
            await heard.until(lambda heard: idle(heard, session))
        assert (await client.messages(session))[: len(after)] == after


async def test_one_who_comes_back_after_many_turns_is_told_all_of_them(client: OpenCode) -> None:
    """The terminal UI waits longer after each cut, and never asks for what it missed. It keeps 100 messages."""
    session = await client.new_session()
    for number in range(60):
        await client.prompt(session, f"turn {number}")
    async with following(client) as heard:
        newest = (await client.messages(session))[-100:]
        await heard.until(lambda heard: len(heard.messages(session)) >= 100 and heard.messages(session) == newest)


async def test_one_who_comes_back_to_more_than_a_stream_holds_is_told_the_newest(tmp_path: Path) -> None:
    env = {"SANDBOX_AGENT_OPENCODE_STREAM_BYTES": "200000"}
    async with running_server(tmp_path, env=env) as server, opencode(server.url) as client:
        session = await client.new_session()
        for _ in range(10):
            await client.prompt(session, "chunks 10 3000")
        async with following(client) as heard:
            await client.prompt(session, "and one more")
            every = await client.messages(session)

            def newest(heard: Heard) -> list[dict[str, Any]]:
                told = heard.messages(session)
                return told if len(told) >= 4 and told == every[-len(told) :] else []

            assert len(await heard.until(newest)) < 22
