"""The attacks on paths of the security paper, over HTTP, against a server that is confined to a root."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.raw import ask, read_answer, request
from support.served import client, problem, served
from support.server import Server
from support.tars import snapshot


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    made = tmp_path / "outside"
    made.mkdir()
    (made / "secret").write_text("secret")
    return made.resolve()


@pytest.fixture
def inside(root: Path, outside: Path) -> Iterator[Path]:
    """A directory in the root with links that lead out of it."""
    made = root / "inside"
    made.mkdir()
    (made / "file").write_text("mine")
    (made / "out").symlink_to(outside)
    (made / "leak").symlink_to(outside / "secret")
    (made / "dangling").symlink_to(outside / "not-there")
    os.mkfifo(made / "pipe")
    yield made
    for path in sorted(made.rglob("*"), reverse=True):
        path.unlink() if path.is_symlink() or not path.is_dir() else path.rmdir()
    made.rmdir()


ESCAPES = [
    "/etc/passwd",
    "{root}/../../../../etc/passwd",
    "{root}/inside/../../../etc/passwd",
    "../../../../etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/1/cmdline",
    "/dev/zero",
    "/dev/stdin",
    "{root}/inside/leak",
    "{root}/inside/out/secret",
    "{root}/inside/dangling",
    "{root}x/secret",
]


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.promise("P-files-1")
def test_no_path_reads_or_writes_outside_the_root(
    open_server: Server, root: Path, inside: Path, outside: Path, path: str
) -> None:
    there = {"path": path.format(root=root)}
    before = snapshot(outside)
    with client(open_server) as http:
        answers = [
            http.get("/v1/fs/file", params=there),
            http.get("/v1/fs/stat", params=there),
            http.get("/v1/fs/entries", params=there),
            http.put("/v1/fs/file", params=there, content=b"owned"),
            http.post("/v1/fs/mkdir", params=there),
            http.post("/v1/fs/move", json={"from": str(inside / "file"), "to": there["path"], "overwrite": True}),
            http.post("/v1/fs/move", json={"from": there["path"] + "/secret", "to": str(inside / "stolen")}),
            http.delete("/v1/fs/entry", params={**there, "recursive": "true"}),
        ]
    for answer in answers:
        assert b"secret" not in answer.content or b'"detail"' in answer.content
        assert answer.status_code < 500
    assert answers[0].status_code in {403, 404}
    assert snapshot(outside) == before
    assert not (inside / "stolen").exists()


@pytest.mark.parametrize("encoded", ["%2e%2e", "%2E%2E", "..%2f..", "%2e%2e%2f%2e%2e%2f%2e%2e%2fetc"])
def test_encoded_dots_are_dots(open_server: Server, root: Path, encoded: str) -> None:
    target = f"/v1/fs/entries?path={root}/{encoded}"
    assert ask(open_server.port, request("GET", target)).status == 403


def test_doubly_encoded_dots_are_a_plain_name(open_server: Server, root: Path) -> None:
    answer = ask(open_server.port, request("GET", f"/v1/fs/stat?path={root}/%252e%252e"))
    assert answer.status == 404


@pytest.mark.parametrize("path", ["%00", "a%00b", "%c0%ae%c0%ae/etc", "%ff", "%ed%a0%80", "", "x" * 5000, "a/" * 3000])
def test_strange_paths_are_a_client_error(open_server: Server, root: Path, path: str) -> None:
    for place in ("stat", "file", "entries"):
        answer = ask(open_server.port, request("GET", f"/v1/fs/{place}?path={path}"))
        assert answer.status in {400, 403, 404}, answer


@pytest.mark.parametrize("query", ["", "path", "path=a&path=b", "path=a&recursive=maybe", "pa%74h=a&path=b"])
def test_a_query_that_is_wrong_is_a_client_error(open_server: Server, query: str) -> None:
    assert ask(open_server.port, request("DELETE", f"/v1/fs/entry?{query}")).status in {400, 403}


def test_a_fifo_is_refused_and_does_not_hang(open_server: Server, inside: Path) -> None:
    with client(open_server) as http:
        assert http.get("/v1/fs/file", params={"path": str(inside / "pipe")}).status_code == 403
        assert http.put("/v1/fs/file", params={"path": str(inside / "pipe")}, content=b"x").status_code == 403


def test_deleting_a_link_leaves_what_it_leads_to(open_server: Server, inside: Path, outside: Path) -> None:
    before = snapshot(outside)
    with client(open_server) as http:
        gone = http.delete("/v1/fs/entry", params={"path": str(inside / "out"), "recursive": "true"})
    assert gone.status_code == 200
    assert not (inside / "out").is_symlink()
    assert snapshot(outside) == before


def test_a_recursive_delete_does_not_follow_links_out(open_server: Server, root: Path, outside: Path) -> None:
    (root / "doomed" / "deep").mkdir(parents=True)
    (root / "doomed" / "deep" / "out").symlink_to(outside)
    before = snapshot(outside)
    with client(open_server) as http:
        gone = http.delete("/v1/fs/entry", params={"path": str(root / "doomed"), "recursive": "true"})
    assert gone.status_code == 200
    assert not (root / "doomed").exists()
    assert snapshot(outside) == before


def test_the_root_itself_cannot_be_deleted_or_moved(open_server: Server, root: Path) -> None:
    with client(open_server) as http:
        assert http.delete("/v1/fs/entry", params={"path": str(root), "recursive": "true"}).status_code == 403
        moved = http.post("/v1/fs/move", json={"from": str(root), "to": str(root / "sub")})
    assert moved.status_code in {400, 403}
    assert root.is_dir()


def test_moving_onto_a_directory_changes_nothing(open_server: Server, inside: Path) -> None:
    (inside / "dir").mkdir()
    (inside / "dir" / "kept").write_text("kept")
    with client(open_server) as http:
        moved = http.post("/v1/fs/move", json={"from": str(inside / "file"), "to": str(inside / "dir")})
    assert problem(moved) == "conflict"
    assert (inside / "dir" / "kept").read_text() == "kept"
    assert (inside / "file").read_text() == "mine"


def test_a_session_elsewhere_does_not_widen_the_root(open_server: Server) -> None:
    with client(open_server) as http:
        opened = http.post(
            "/v1/rpc",
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {"protocolVersion": 1, "_meta": {"sandboxagent.dev": {"agent": "mock"}}},
            },
        )
        connection = {"X-ACP-Connection-Id": opened.headers["X-ACP-Connection-Id"]}
        made = {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/etc", "mcpServers": []}}
        session = http.post("/v1/rpc", json=made, headers=connection).json()["result"]["sessionId"]
        answer = http.get("/v1/fs/file", params={"path": "passwd", "sessionId": session})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "header", ["bytes=abc", "bytes=5-2", "bytes=0-0,2-3", "items=0-1", "bytes=", "bytes=-", "bytes=1-2-3",
               "bytes=99999999999999999999-"]
)  # fmt: skip
def test_a_range_that_makes_no_sense_gets_the_whole_file(open_server: Server, inside: Path, header: str) -> None:
    with client(open_server) as http:
        answer = http.get("/v1/fs/file", params={"path": str(inside / "file")}, headers={"Range": header})
    assert (answer.status_code, answer.content) == (200, b"mine")


def test_a_slow_body_is_given_up_when_the_peer_leaves(open_server: Server, inside: Path) -> None:
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=30) as connection:
        put = request("PUT", f"/v1/fs/file?path={inside}/file", ("Content-Length", "1000"))
        connection.sendall(put + b"half")
    with client(open_server) as http:
        names = http.get("/v1/fs/entries", params={"path": str(inside)}).json()
    assert (inside / "file").read_text() == "mine"
    assert {entry["name"] for entry in names} >= {"file"}


@pytest.mark.promise("P-files-2")
def test_a_confined_agent_reads_and_writes_within_the_root_only(tmp_path: Path) -> None:
    """The host serves `fs/*` to agents through the same service."""
    root, outside = tmp_path / "root", tmp_path / "secret"
    root.mkdir()
    outside.write_text("not for agents")
    (root / "mine").write_text("for agents")
    with served(tmp_path / "home", "--fs-root", str(root)) as server, client(server) as http:
        said = _prompted(http, str(root), [f"read {outside}", f"write {outside} owned", f"read {root}/mine",
                                           f"write {root}/new made"])  # fmt: skip
    assert "not for agents" not in said
    assert "for agents" in said
    assert outside.read_text() == "not for agents"
    assert (root / "new").read_text() == "made"


def _prompted(http, cwd: str, words: list[str]) -> str:  # type: ignore[no-untyped-def]
    meta = {"_meta": {"sandboxagent.dev": {"agent": "mock"}}}
    opened = http.post(
        "/v1/rpc", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, **meta}}
    )
    headers = {"X-ACP-Connection-Id": opened.headers["X-ACP-Connection-Id"]}

    def call(method: str, params: dict[str, object]) -> dict[str, str]:
        message = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
        result: dict[str, str] = http.post("/v1/rpc", json=message, headers=headers).json()["result"]
        return result

    session = call("session/new", {"cwd": cwd, "mcpServers": []})["sessionId"]
    for word in words:
        call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": word}]})
    transcript: str = http.get(f"/v1/sessions/{session}/transcript").text
    return transcript


def test_a_stalled_reader_can_be_waited_for(open_server: Server, inside: Path) -> None:
    """A socket that has been cut in the middle of an answer does not hurt the next one."""
    (inside / "big").write_bytes(bytes(4 << 20))
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=30) as connection:
        connection.sendall(request("GET", f"/v1/fs/file?path={inside}/big"))
        connection.recv(1000)
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=30) as connection:
        connection.sendall(request("GET", "/v1/health"))
        assert read_answer(connection).status == 200
