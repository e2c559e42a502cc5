"""Sessions through `/opencode`, and that every other client has the same ones."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

import httpx

from support.opencode import Heard, OpenCode, following
from support.rpc import connected, prompt_params
from support.server import Server


def is_idle(heard: Heard, session: str) -> bool:
    return session in [one["sessionID"] for one in heard.of("session.idle")]


async def test_a_session_is_made_listed_renamed_put_away_and_deleted(client: OpenCode, tmp_path: Path) -> None:
    directory = str(tmp_path)
    async with following(client) as heard:
        made = await client.post("/session", {"title": "First"}, directory=directory)
        assert (made["title"], made["directory"]) == ("First", directory)
        session = made["id"]
        assert [one["id"] for one in await client.get("/session", directory=directory)] == [session]
        unchanged = {"additions": 0, "deletions": 0, "files": 0}
        assert await client.get(f"/session/{session}") == {**made, "summary": unchanged}
        changed = await client.http.patch(f"/opencode/session/{session}", json={"title": "Second"})
        assert changed.json()["title"] == "Second"
        await heard.until(lambda heard: "Second" in [one["info"]["title"] for one in heard.of("session.updated")])
        await client.http.patch(f"/opencode/session/{session}", json={"time": {"archived": 1234}})
        assert (await client.get(f"/session/{session}"))["time"]["archived"] == 1234
        deleted = await client.http.delete(f"/opencode/session/{session}")
        assert deleted.json() is True
        gone = await heard.first("session.deleted")
        assert gone["info"]["id"] == session
    assert await client.get("/session", directory=directory) == []
    assert (await client.http.get(f"/opencode/session/{session}")).status_code == 404


async def test_sessions_are_searched_limited_and_of_one_directory(client: OpenCode, tmp_path: Path) -> None:
    for title in ("red apple", "green apple", "red pear"):
        await client.new_session(title=title)
    await client.post("/session", {"title": "red car"}, directory=str(tmp_path))
    titles = [one["title"] for one in await client.get("/session", search="red")]
    assert titles == ["red car", "red pear", "red apple"]
    assert len(await client.get("/session", search="red", limit=2)) == 2
    here = {"x-opencode-directory": str(tmp_path).replace("/", "%2F")}
    listed = await client.http.get("/opencode/session", headers=here)
    assert [one["title"] for one in listed.json()] == ["red car"]
    everywhere = await client.http.get("/opencode/session", params={"scope": "project", "search": "red"}, headers=here)
    assert len(everywhere.json()) == 3
    assert await client.get("/session", start=10**15) == []


async def test_a_child_of_a_session_is_listed_below_it(client: OpenCode) -> None:
    parent = await client.new_session()
    child = await client.new_session(parentID=parent)
    assert [one["id"] for one in await client.get(f"/session/{parent}/children")] == [child]
    assert child not in [one["id"] for one in await client.get("/session", roots="true")]


async def test_a_fork_begins_with_the_conversation_of_its_parent(client: OpenCode) -> None:
    session = await client.new_session(title="Parent")
    await client.prompt(session, "one")
    forked = await client.post(f"/session/{session}/fork", {})
    assert forked["title"] == "Parent (fork)"
    assert forked["id"] != session
    await client.prompt(forked["id"], "two")
    said = [message["parts"][0].get("text") for message in await client.messages(forked["id"])]
    assert said[0] == "one"
    assert said[2] == "two"
    assert len(await client.messages(session)) == 2
    ids = [message["info"]["sessionID"] for message in await client.messages(forked["id"])]
    assert set(ids) == {forked["id"]}


async def test_a_fork_at_a_message_leaves_it_and_what_follows_out_or_is_refused(
    client: OpenCode, tmp_path: Path
) -> None:
    """OpenCode's clients put the message into the prompt of the fork: one that had it already would have it twice."""
    wanted = {"title": "Parent", "model": {"providerID": "mock", "id": "mock-large"}}
    session = (await client.post("/session", wanted, directory=str(tmp_path)))["id"]
    for words in ("one", "two"):
        await client.prompt(session, words)
    messages = await client.messages(session)
    for later in messages[1:]:
        refused = await client.http.post(f"/opencode/session/{session}/fork", json={"messageID": later["info"]["id"]})
        assert (refused.status_code, refused.json()["name"]) == (400, "BadRequest")
    forked = await client.post(f"/session/{session}/fork", {"messageID": messages[0]["info"]["id"]})
    assert (forked["title"], forked["directory"]) == ("Parent (fork)", str(tmp_path))
    assert forked["model"] == {"providerID": "mock", "id": "mock-large"}
    assert await client.messages(forked["id"]) == []


async def test_the_directory_of_the_query_counts_before_that_of_the_header(client: OpenCode, tmp_path: Path) -> None:
    places = [tmp_path / "a b", tmp_path / "ü"]
    for place in places:
        place.mkdir()
    header = {"x-opencode-directory": quote(str(places[0]))}
    made = [
        (await client.http.post("/opencode/session", json={}, headers=header, params=query)).json()
        for query in ({}, {"directory": str(places[1])})
    ]
    assert [one["directory"] for one in made] == [str(place) for place in places]
    assert (await client.http.get("/opencode/path", headers=header)).json()["directory"] == str(places[0])
    async with following(client, directory=str(places[1])) as heard, following(client, "/global/event") as everywhere:
        for session in made:
            await client.prompt(session["id"], "hello")
        await everywhere.until(lambda heard: all(is_idle(heard, one["id"]) for one in made))
        await heard.until(lambda heard: is_idle(heard, made[1]["id"]))
        assert heard.messages(made[0]["id"]) == []


async def test_pages_of_messages(client: OpenCode) -> None:
    session = await client.new_session()
    for number in range(3):
        await client.prompt(session, str(number))
    every = await client.messages(session)
    answer = await client.http.get(f"/opencode/session/{session}/message", params={"limit": 2})
    assert answer.json() == every[-2:]
    assert await client.messages(session, limit=2, before=answer.headers["x-next-cursor"]) == every[2:4]


async def test_a_session_begun_elsewhere_is_there_and_its_turns_stream_in(client: OpenCode, server: Server) -> None:
    async with connected(server.url, "mock") as other, following(client) as heard:
        native = await other.new_session("/tmp", title="Elsewhere")
        info = (await heard.first("session.created"))["info"]
        assert info["title"] == "Elsewhere"
        assert info["id"] in [one["id"] for one in await client.get("/session")]
        await other.call("session/prompt", prompt_params(native, "plan; usage"))
        await heard.until(lambda heard: is_idle(heard, info["id"]))
        assert heard.messages(info["id"]) == await client.messages(info["id"])
        assert len(heard.messages(info["id"])) == 2


async def test_a_session_begun_here_is_there_for_everybody_else(client: OpenCode, server: Server) -> None:
    session = await client.new_session(title="From OpenCode")
    await client.prompt(session, "good day")
    async with httpx.AsyncClient(base_url=server.url) as http:
        listed = (await http.get("/v1/sessions")).json()["sessions"]
        mine = next(one for one in listed if one["title"] == "From OpenCode")
        transcript = await http.get(f"/v1/sessions/{mine['sessionId']}/transcript", params={"format": "markdown"})
        assert "good day" in transcript.text


async def test_a_permission_answered_anywhere_closes_everywhere(client: OpenCode, server: Server) -> None:
    session = await client.new_session(title="Shared")
    async with (
        connected(server.url, "mock") as other,
        other.stream() as events,
        following(client) as heard,
        httpx.AsyncClient(base_url=server.url) as http,
    ):
        listed = (await http.get("/v1/sessions")).json()["sessions"]
        native = next(one["sessionId"] for one in listed if one["title"] == "Shared")
        await other.call("session/resume", {"sessionId": native, "cwd": "/tmp", "mcpServers": []})
        await client.prompt_async(session, "tool one")
        asked = await events.wait_for(lambda message: message.get("method") == "session/request_permission")
        await heard.first("permission.asked")
        await other.answer(asked, {"outcome": {"outcome": "selected", "optionId": "yes-once"}})
        assert (await heard.first("permission.replied"))["reply"] == "once"
        await heard.until(lambda heard: is_idle(heard, session))

        running = asyncio.create_task(other.prompt(native, "tool two"))
        mine = await heard.first("permission.asked", 2)
        await client.post(f"/permission/{mine['id']}/reply", {"reply": "reject"})
        await events.wait_for(lambda message: message.get("method") == "_sandboxagent/session/settled", after=1)
        assert "result" in await running
        late = await client.http.post(f"/opencode/permission/{mine['id']}/reply", json={"reply": "once"})
        assert late.status_code == 404
        assert late.json()["_tag"] == "PermissionNotFoundError"


async def test_commands_of_the_agent_are_listed_and_run(client: OpenCode) -> None:
    session = await client.new_session()
    answer = await client.post(f"/session/{session}/command", {"command": "plan", "arguments": "now"})
    assert answer["info"]["role"] == "assistant"
    user = (await client.messages(session))[0]
    assert user["parts"][0]["text"] == "/plan now"
    listed = {command["name"]: command for command in await client.get("/agents/mock/command")}
    assert listed["plan"]["template"] == "/plan $ARGUMENTS"
    assert listed["tool"]["hints"] == ["$ARGUMENTS"]


async def test_the_agent_in_the_address_is_the_default_of_its_client(client: OpenCode) -> None:
    assert (await client.get("/agents/mock/config"))["model"] == "mock/default"
    assert (await client.get("/agents/nobody/config"))["model"] == "nobody/default"
    made = await client.post("/agents/mock/session", {})
    assert made["model"]["providerID"] == "mock"
    missing = await client.http.post("/opencode/agents/nobody/session", json={})
    assert missing.status_code == 400
    async with following(client, "/agents/mock/event") as heard:
        assert heard.types()[0] == "server.connected"


async def test_files_are_listed_read_and_found(client: OpenCode, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("print('hello')\n# the end\n")
    (tmp_path / "blob.bin").write_bytes(b"\xff\x00\x01")
    here = {"directory": str(tmp_path)}
    nodes = {node["name"]: node for node in await client.get("/file", path=".", **here)}
    assert nodes["src"]["path"] == "src/"
    assert (await client.get("/file/content", path="src/main.py", **here))["content"].startswith("print")
    assert (await client.get("/file/content", path="blob.bin", **here))["encoding"] == "base64"
    assert await client.get("/file/content", path="missing", **here) == {"type": "text", "content": ""}
    assert await client.get("/find/file", query="mnpy", type="file", **here) == ["src/main.py"]
    assert await client.get("/find/file", query="src", dirs="false", **here) == ["src/main.py"]
    (found,) = await client.get("/find", pattern="HELLO", **here)
    assert (found["path"]["text"], found["line_number"]) == ("src/main.py", 1)
    entries = await client.get("/api/fs/find", query="main", **{"location[directory]": str(tmp_path)})
    assert entries["data"] == [{"path": "src/main.py", "type": "file"}]


async def test_programs_can_talk_to_the_terminal_uis_that_follow(client: OpenCode) -> None:
    session = await client.new_session()
    async with following(client) as heard:
        await client.post("/tui/append-prompt", {"text": "hello"})
        await client.post("/tui/show-toast", {"message": "done", "variant": "success"})
        await client.post("/tui/open-models")
        await client.post("/tui/execute-command", {"command": "agent_cycle"})
        await client.post("/tui/select-session", {"sessionID": session})
        event = {"type": "tui.prompt.append", "properties": {"text": "again"}}
        await client.post("/tui/publish", event)
        await heard.until(lambda heard: len(heard.of("tui.prompt.append")) == 2)
        assert heard.of("tui.toast.show") == [{"message": "done", "variant": "success"}]
        assert [one["command"] for one in heard.of("tui.command.execute")] == ["model.list", "agent.cycle"]
        assert heard.of("tui.session.select") == [{"sessionID": session}]
