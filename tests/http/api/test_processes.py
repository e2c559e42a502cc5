"""`/v1/processes` over HTTP: each operation, logs that are followed and resumed, errors, the twins for ACP clients."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from support.process_logs import ending, followed, printed
from support.raw_http import raw_client
from support.rpc import connected
from support.served import client, problem, served
from support.server import running_server
from support.waiting import until


def started(http: httpx.Client, script: str, **more: Any) -> dict[str, Any]:
    answer = http.post("/v1/processes", json={"command": "sh", "args": ["-c", script], **more})
    assert answer.status_code == 200, answer.text
    info: dict[str, Any] = answer.json()
    return info


def test_a_command_is_run(http: httpx.Client, root: Path) -> None:
    body = {"command": "sh", "args": ["-c", "pwd; echo $X >&2; exit 3"], "cwd": str(root), "env": {"X": "y"}}
    result = http.post("/v1/processes/run", json=body).json()
    assert result.pop("durationMs") >= 0
    assert result == {
        "exitCode": 3,
        "signal": None,
        "timedOut": False,
        "stdout": f"{root}\n",
        "stderr": "y\n",
        "stdoutTruncated": False,
        "stderrTruncated": False,
    }


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"command": ""}, 400, "empty"),
        ({"command": 7}, 400, "command"),
        ({}, 400, "command"),
        ({"command": "no-such-program"}, 400, "no-such-program"),
        ({"command": "true", "timeoutMs": 0}, 400, "timeoutMs"),
        ({"command": "true", "cwd": "/"}, 403, "outside"),
        ({"command": "true", "sessionId": "nobody"}, 404, "nobody"),
    ],
)
def test_what_cannot_be_run_is_a_problem_that_names_it(
    http: httpx.Client, body: dict[str, Any], status: int, says: str
) -> None:
    for path in ("/v1/processes/run", "/v1/processes"):
        if path == "/v1/processes":
            body.pop("timeoutMs", None)
            if body == {"command": "true"}:
                continue
        answer = http.post(path, json=body)
        problem(answer)
        assert (answer.status_code, says in answer.json()["detail"]) == (status, True), answer.text


def test_a_process_is_started_shown_listed_stopped_and_deleted(http: httpx.Client) -> None:
    info = started(http, "echo hi; sleep 1000")
    assert {name: info[name] for name in ("command", "args", "tty", "interactive", "owner", "status")} == {
        "command": "sh",
        "args": ["-c", "echo hi; sleep 1000"],
        "tty": False,
        "interactive": False,
        "owner": "user",
        "status": "running",
    }
    address = f"/v1/processes/{info['id']}"
    assert http.get(address).json() == info
    assert info in http.get("/v1/processes").json()["processes"]
    assert info in http.get("/v1/processes", params={"owner": "user"}).json()["processes"]
    assert http.get("/v1/processes", params={"owner": "desktop"}).json() == {"processes": []}
    assert problem(http.get("/v1/processes", params={"owner": "nobody"})) == "invalid_params"
    assert http.delete(address).status_code == 409
    stopped = http.post(f"{address}/stop", params={"waitMs": 20_000}).json()
    assert (stopped["status"], stopped["signal"], "exitCode" in stopped) == ("exited", "SIGTERM", False)
    assert http.post(f"{address}/kill").json() == stopped
    assert http.delete(address).status_code == 204
    assert problem(http.get(address)) == "not_found"
    assert problem(http.get(f"{address}/logs")) == "not_found"


def test_the_log_is_read_by_stream_tail_and_number(http: httpx.Client) -> None:
    info = started(http, "for i in 1 2 3; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done")
    ending(http, info["id"])
    address = f"/v1/processes/{info['id']}/logs"
    whole = http.get(address).json()
    assert (whole["processId"], whole["stream"], whole["cut"]) == (info["id"], "combined", None)
    numbers = [entry["sequence"] for entry in whole["entries"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert {entry["encoding"] for entry in whole["entries"]} == {"base64"}
    assert printed(whole["entries"]) == b"o1\ne1\no2\ne2\no3\ne3\n"
    assert printed(http.get(address, params={"stream": "stderr"}).json()["entries"]) == b"e1\ne2\ne3\n"
    assert printed(http.get(address, params={"stream": "stdout", "tail": 2}).json()["entries"]) == b"o2\no3\n"
    assert printed(http.get(address, params={"tail": 1}).json()["entries"]) == b"e3\n"
    assert printed(http.get(address, params={"since": 4}).json()["entries"]) == b"o3\ne3\n"
    assert http.get(address, params={"stream": "pty"}).json()["entries"] == []
    assert problem(http.get(address, params={"tail": -1})) == "invalid_params"


@pytest.mark.promise("P-process-3", "P-process-4")
def test_a_followed_log_is_resumed_after_exactly_the_last_entry(http: httpx.Client) -> None:
    info = started(http, "for i in $(seq 40); do echo $i; sleep 0.005; done; exit 6")
    seen: list[dict[str, Any]] = []
    last: int | None = None
    while not seen or seen[-1]["event"] != "exit":
        for event in followed(http, info["id"], after=last):
            seen.append(event)
            last = event["id"]
            if len(seen) % 3 == 0:
                break  # and come back
    entries = [event["data"] for event in seen if event["event"] == "log"]
    assert [entry["sequence"] for entry in entries] == list(range(1, len(entries) + 1))
    assert printed(entries).split() == [b"%d" % number for number in range(1, 41)]
    assert (seen[-1]["data"]["exitCode"], [event["event"] for event in seen].count("exit")) == (6, 1)


def test_what_is_over_the_bound_of_a_log_is_told(tmp_path: Path) -> None:
    config = "process_log_bytes = 100_000\n"
    with served(tmp_path, config=config) as server, client(server) as http:
        info = started(http, "seq 200000; echo end")
        ending(http, info["id"])
        whole = http.get(f"/v1/processes/{info['id']}/logs").json()
        cut = whole["cut"]
        assert cut["fromSequence"] == 1
        assert whole["entries"][0]["sequence"] == cut["toSequence"] + 1
        assert len(printed(whole["entries"])) <= 200_000
        assert printed(whole["entries"]).endswith(b"200000\nend\n")
        events = list(followed(http, info["id"]))
        assert (events[0]["event"], events[0]["data"]) == ("cut", cut)
        assert events[-1]["event"] == "exit"


def test_nothing_is_cut_for_one_who_asks_the_process_to_wait(tmp_path: Path) -> None:
    with served(tmp_path, config="process_log_bytes = 1_000_000\n") as server, client(server) as http:
        info = started(http, "seq 1000000", hold=True)
        events = list(followed(http, info["id"], hold=True))
        assert [event["event"] for event in events if event["event"] != "log"] == ["exit"]
        content = printed([event["data"] for event in events[:-1]])
        assert content == b"".join(b"%d\n" % number for number in range(1, 1_000_001))


def test_input_is_written_in_both_encodings_and_ended(http: httpx.Client) -> None:
    info = http.post("/v1/processes", json={"command": "cat", "interactive": True}).json()
    address = f"/v1/processes/{info['id']}/input"
    assert http.post(address, json={"data": base64.b64encode(b"\xff\n").decode()}).json() == {"bytesWritten": 2}
    assert http.post(address, json={"data": "text\n", "encoding": "utf8"}).json() == {"bytesWritten": 5}
    assert problem(http.post(address, json={"data": "!!"})) == "invalid_params"
    assert problem(http.post(address, json={"data": "x", "encoding": "weird"})) == "invalid_params"
    assert http.post(address, json={"data": "x" * 70_000, "encoding": "utf8"}).status_code == 413
    assert http.post(address, json={"data": "", "eof": True}).json() == {"bytesWritten": 0}
    assert ending(http, info["id"])["exitCode"] == 0
    assert printed(http.get(f"/v1/processes/{info['id']}/logs").json()["entries"]) == b"\xff\ntext\n"
    assert problem(http.post(address, json={"data": ""})) == "conflict"


def test_a_terminal_is_resized(http: httpx.Client) -> None:
    info = started(http, "read x; stty size", tty=True)
    address = f"/v1/processes/{info['id']}/terminal/resize"
    assert http.post(address, json={"cols": 111, "rows": 22}).json() == {"cols": 111, "rows": 22}
    for wrong in ({"cols": 0, "rows": 1}, {"cols": 1}, {"cols": 100_000, "rows": 1}):
        assert problem(http.post(address, json=wrong)) == "invalid_params"
    http.post(f"/v1/processes/{info['id']}/input", json={"data": "\n", "encoding": "utf8"})
    ending(http, info["id"])
    log = http.get(f"/v1/processes/{info['id']}/logs").json()
    assert log["stream"] == "pty"
    assert b"22 111" in printed(log["entries"])
    other = started(http, "sleep 1000")
    answer = http.post(f"/v1/processes/{other['id']}/terminal/resize", json={"cols": 80, "rows": 24})
    assert answer.status_code == 409
    http.post(f"/v1/processes/{other['id']}/kill")


def test_limits_are_read_and_changed(tmp_path: Path) -> None:
    with served(tmp_path) as server, client(server) as http:
        limits = http.get("/v1/processes/config").json()
        assert limits == {
            "maxConcurrentProcesses": 64,
            "defaultRunTimeoutMs": 30000,
            "maxRunTimeoutMs": 300000,
            "maxOutputBytes": 1048576,
            "maxLogBytesPerProcess": 10485760,
            "maxInputBytesPerRequest": 65536,
        }
        changed = {**limits, "maxConcurrentProcesses": 1, "maxOutputBytes": 3}
        assert http.post("/v1/processes/config", json=changed).json() == changed
        assert http.get("/v1/processes/config").json() == changed
        assert http.post("/v1/processes/run", json={"command": "echo", "args": ["long"]}).json()["stdout"] == "lon"
        info = started(http, "sleep 1000")
        refused = http.post("/v1/processes", json={"command": "true"})
        assert (refused.status_code, "limit (1)" in refused.json()["detail"]) == (409, True)
        http.post(f"/v1/processes/{info['id']}/kill")
        for wrong in ({"maxConcurrentProcesses": 2}, {**limits, "maxConcurrentProcesses": 0}, {**limits, "more": 1}):
            assert problem(http.post("/v1/processes/config", json=wrong)) == "invalid_params"


def test_turned_off_every_route_says_why(tmp_path: Path) -> None:
    with served(tmp_path, config="processes = false\n") as server, client(server) as http:
        for method, path in (
            ("POST", "/v1/processes/run"),
            ("POST", "/v1/processes"),
            ("GET", "/v1/processes"),
            ("GET", "/v1/processes/config"),
            ("POST", "/v1/processes/config"),
            ("GET", "/v1/processes/x"),
            ("DELETE", "/v1/processes/x"),
            ("POST", "/v1/processes/x/stop"),
            ("POST", "/v1/processes/x/kill"),
            ("POST", "/v1/processes/x/input"),
            ("GET", "/v1/processes/x/logs"),
            ("POST", "/v1/processes/x/terminal/resize"),
            ("GET", "/v1/processes/x/terminal/ws"),
        ):
            answer = http.request(method, path, json={"command": "true"} if method == "POST" else None)
            assert problem(answer) == "forbidden", path
            assert "processes = false" in answer.json()["detail"]


async def test_acp_clients_have_the_same(tmp_path: Path) -> None:
    async with running_server(tmp_path / "home") as server, connected(server.url) as rpc:
        (tmp_path / "work").mkdir()
        session = await rpc.new_session(str(tmp_path / "work"))

        async def ask(method: str, **params: Any) -> Any:
            answer = await rpc.request(f"_sandboxagent/process/{method}", params)
            return answer.get("result", answer.get("error"))

        ran = await ask("run", command="pwd", sessionId=session)
        assert (ran["exitCode"], ran["stdout"]) == (0, f"{tmp_path / 'work'}\n")
        info = await ask("start", command="cat", interactive=True, sessionId=session)
        assert (info["sessionId"], info["agent"], info["cwd"]) == (session, "mock", str(tmp_path / "work"))
        assert await ask("get", processId=info["id"]) == info
        assert (await ask("list", owner="user"))["processes"] == [info]
        assert await ask("input", processId=info["id"], data="hi\n", encoding="utf8") == {"bytesWritten": 3}
        page = await ask("logs", processId=info["id"], waitMs=20_000)
        assert (printed(page["entries"]), page["next"], page["ended"]) == (b"hi\n", 1, False)
        assert await ask("logs", processId=info["id"], since=1) == {
            "processId": info["id"],
            "stream": "combined",
            "entries": [],
            "next": 1,
            "ended": False,
        }
        assert (await ask("resize", processId=info["id"], cols=80, rows=24))["code"] == -32009
        stopped = await ask("stop", processId=info["id"], waitMs=20_000)
        assert stopped["signal"] == "SIGTERM"
        assert await ask("delete", processId=info["id"]) == {}
        limits = await ask("get_config")
        assert await ask("set_config", **{**limits, "maxConcurrentProcesses": 5}) == {
            **limits,
            "maxConcurrentProcesses": 5,
        }
        assert "no process" in (await ask("kill", processId=info["id"]))["message"]


async def test_the_commands_of_agents_are_listed_with_their_session(tmp_path: Path) -> None:
    async with running_server(tmp_path / "home") as server, connected(server.url) as rpc:
        session = await rpc.new_session(str(tmp_path))
        await rpc.prompt(session, "terminal echo from the agent")
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            (info,) = (await http.get("/v1/processes", params={"owner": "agent"})).json()["processes"]
            assert {name: info[name] for name in ("owner", "agent", "sessionId", "cwd", "command", "exitCode")} == {
                "owner": "agent",
                "agent": "mock",
                "sessionId": session,
                "cwd": str(tmp_path),
                "command": "echo",
                "exitCode": 0,
            }
            log = (await http.get(f"/v1/processes/{info['id']}/logs")).json()
            assert printed(log["entries"]) == b"from the agent\n"


def test_commands_need_the_token(tmp_path: Path) -> None:
    with served(tmp_path, "--token", "t0ken") as server, client(server) as http:
        assert http.post("/v1/processes/run", json={"command": "true"}).status_code == 401
        allowed = {"Authorization": "Bearer t0ken"}
        result = http.post("/v1/processes/run", json={"command": "env"}, headers=allowed).json()
        assert "t0ken" not in result["stdout"]
        form = {"content-type": "text/plain", **allowed}
        assert http.post("/v1/processes/run", content=b'{"command":"true"}', headers=form).status_code == 415
        assert http.post("/v1/processes/x/kill", content=b"x", headers=form).status_code == 415


async def test_a_command_ends_when_its_client_leaves(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    body = msgspec.json.encode({"command": "sh", "args": ["-c", f"echo $$ > {note}; exec sleep 300"]})
    async with running_server(tmp_path) as server:
        head = f"POST /v1/processes/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        async with raw_client(server.port) as leaving:
            await leaving.send(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
            await until(lambda: note.exists() and note.read_text().endswith("\n"))
        await until(lambda: not Path(f"/proc/{int(note.read_text())}").exists())
