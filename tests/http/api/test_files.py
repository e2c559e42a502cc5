"""`/v1/fs/*` over HTTP: each operation, ranges, conditions, and the twins that ACP clients call."""

from __future__ import annotations

import base64
import gzip
import socket
from pathlib import Path

import httpx
import pytest

from support.rpc import connected
from support.served import client, problem, served
from support.server import Server, running_server
from support.tars import archive, file
from support.waiting import until


@pytest.fixture
def spot(root: Path, request: pytest.FixtureRequest) -> Path:
    made: Path = root / request.node.name.replace("/", "_")[:100]
    made.mkdir()
    return made


def test_a_file_is_written_read_listed_moved_and_deleted(http: httpx.Client, spot: Path) -> None:
    path = str(spot / "sub" / "a.txt")
    assert http.put("/v1/fs/file", params={"path": path}, content=b"hello").json() == {"path": path, "bytesWritten": 5}
    read = http.get("/v1/fs/file", params={"path": path})
    assert (read.status_code, read.content) == (200, b"hello")
    stat = http.get("/v1/fs/stat", params={"path": path}).json()
    assert {name: stat[name] for name in ("path", "entryType", "size")} == {
        "path": path,
        "entryType": "file",
        "size": 5,
    }
    assert stat["modified"].endswith("Z")
    (entry,) = http.get("/v1/fs/entries", params={"path": str(spot / "sub")}).json()
    assert entry == {"name": "a.txt", **stat}
    moved = http.post("/v1/fs/move", json={"from": path, "to": str(spot / "b.txt")})
    assert moved.json() == {"from": path, "to": str(spot / "b.txt")}
    gone = http.delete("/v1/fs/entry", params={"path": str(spot / "b.txt")})
    assert gone.json() == {"path": str(spot / "b.txt")}
    assert not (spot / "b.txt").exists()


def test_a_directory_is_made_and_deleted_with_all_that_is_in_it(http: httpx.Client, spot: Path) -> None:
    path = str(spot / "a" / "b")
    assert http.post("/v1/fs/mkdir", params={"path": path}).json() == {"path": path}
    (spot / "a" / "b" / "file").write_text("x")
    assert problem(http.delete("/v1/fs/entry", params={"path": str(spot / "a")})) == "conflict"
    assert http.delete("/v1/fs/entry", params={"path": str(spot / "a"), "recursive": "true"}).status_code == 200
    assert not (spot / "a").exists()


def test_a_move_replaces_only_if_asked_so(http: httpx.Client, spot: Path) -> None:
    (spot / "old").write_text("old")
    (spot / "new").write_text("new")
    wanted = {"from": str(spot / "new"), "to": str(spot / "old")}
    assert problem(http.post("/v1/fs/move", json=wanted)) == "conflict"
    assert http.post("/v1/fs/move", json={**wanted, "overwrite": True}).status_code == 200
    assert (spot / "old").read_text() == "new"


@pytest.mark.parametrize(
    ("header", "status", "content", "span"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=0-0", 206, b"0", "bytes 0-0/10"),
        ("bytes=8-100", 206, b"89", "bytes 8-9/10"),
        ("bytes=-100", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
    ],
)
def test_one_range_is_served(
    http: httpx.Client, spot: Path, header: str, status: int, content: bytes | None, span: str
) -> None:
    (spot / "digits").write_bytes(b"0123456789")
    answer = http.get("/v1/fs/file", params={"path": str(spot / "digits")}, headers={"Range": header})
    assert (answer.status_code, answer.headers["content-range"]) == (status, span)
    if content is not None:
        assert answer.content == content
    else:
        assert problem(answer) == "range_not_satisfiable"


def test_an_empty_file_has_no_range(http: httpx.Client, spot: Path) -> None:
    (spot / "empty").touch()
    there = {"path": str(spot / "empty")}
    assert http.get("/v1/fs/file", params=there).content == b""
    assert http.get("/v1/fs/file", params=there, headers={"Range": "bytes=0-"}).status_code == 416


def test_conditions_spare_a_transfer_and_guard_a_range(http: httpx.Client, spot: Path) -> None:
    there = {"path": str(spot / "file")}
    (spot / "file").write_bytes(b"one")
    etag = http.get("/v1/fs/file", params=there).headers["etag"]
    assert http.get("/v1/fs/file", params=there, headers={"If-None-Match": etag}).status_code == 304
    headers = {"Range": "bytes=0-0", "If-Range": etag}
    assert http.get("/v1/fs/file", params=there, headers=headers).status_code == 206
    (spot / "file").write_bytes(b"other")
    assert http.get("/v1/fs/file", params=there, headers={"If-None-Match": etag}).status_code == 200
    changed = http.get("/v1/fs/file", params=there, headers=headers)
    assert (changed.status_code, changed.content) == (200, b"other")


def test_head_tells_the_size_and_sends_nothing(http: httpx.Client, spot: Path) -> None:
    (spot / "file").write_bytes(b"12345")
    answer = http.head("/v1/fs/file", params={"path": str(spot / "file")})
    assert (answer.status_code, answer.headers["content-length"], answer.content) == (200, "5", b"")


@pytest.mark.parametrize("name", ["ünïcode.txt", "sp ace", "per%cent", "quo'te\"", "new\nline", "emoji-🙂"])
def test_names_of_all_kinds_go_there_and_back(http: httpx.Client, spot: Path, name: str) -> None:
    there = {"path": str(spot / name)}
    assert http.put("/v1/fs/file", params=there, content=b"x").status_code == 200
    assert http.get("/v1/fs/file", params=there).content == b"x"
    assert (spot / name).read_bytes() == b"x"
    assert name in [entry["name"] for entry in http.get("/v1/fs/entries", params={"path": str(spot)}).json()]


@pytest.mark.parametrize("media", ["application/x-tar", "application/gzip"])
def test_two_thousand_files_come_in_one_call(http: httpx.Client, spot: Path, media: str) -> None:
    members = [file(f"dir{number % 20}/file{number}", b"content %d" % number) for number in range(2000)]
    content = archive(*members)
    answer = http.post(
        "/v1/fs/upload-batch",
        params={"path": str(spot)},
        content=gzip.compress(content) if media == "application/gzip" else content,
        headers={"Content-Type": media},
    )
    assert answer.status_code == 200, answer.text
    assert (len(answer.json()["paths"]), answer.json()["truncated"]) == (1024, True)
    assert len([path for path in spot.rglob("*") if path.is_file()]) == 2000
    assert (spot / "dir7" / "file1987").read_bytes() == b"content 1987"


def test_an_upload_of_another_type_is_refused(http: httpx.Client, spot: Path) -> None:
    answer = http.post(
        "/v1/fs/upload-batch",
        params={"path": str(spot)},
        content=archive(file("a")),
        headers={"Content-Type": "application/zip"},
    )
    assert problem(answer) == "unsupported_media_type"


async def test_relative_paths_start_at_the_session_named(shared_server: Server, root: Path) -> None:
    (root / "project").mkdir()
    (root / "project" / "readme").write_text("read me")
    async with connected(shared_server.url) as rpc:
        session = await rpc.new_session(str(root / "project"), requestedSessionId="my-files")
        for name in (session, "my-files"):
            there = {"path": "readme", "sessionId": name}
            assert (await rpc.http.get("/v1/fs/file", params=there)).text == "read me"
        unknown = await rpc.http.get("/v1/fs/file", params={"path": "readme", "sessionId": "unknown"})
        assert problem(unknown) == "unknown_session"


def test_without_roots_any_path_is_allowed_and_relative_ones_start_at_the_servers_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("anywhere")
    with served(tmp_path / "home") as running, client(running) as http:
        assert http.get("/v1/fs/file", params={"path": str(tmp_path / "file")}).text == "anywhere"
        here = http.get("/v1/fs/entries", params={"path": "."}).json()
        assert {entry["name"] for entry in here} == {path.name for path in Path.cwd().iterdir()}


@pytest.mark.promise("P-files-3")
async def test_a_put_that_is_cut_leaves_the_old_file_and_no_other(shared_server: Server, root: Path) -> None:
    spot = root / "cut"
    spot.mkdir()
    (spot / "file").write_text("old")
    target = f"/v1/fs/file?path={spot}/file"
    with socket.create_connection(("127.0.0.1", shared_server.port)) as connection:
        connection.sendall(f"PUT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999999\r\n\r\n".encode())
        connection.sendall(b"x" * 500_000)
        await until(lambda: len(list(spot.iterdir())) == 2)
    await until(lambda: len(list(spot.iterdir())) == 1)
    assert (spot / "file").read_text() == "old"


async def test_the_twins_of_every_operation_work_over_rpc(shared_server: Server, root: Path) -> None:
    cwd = root / "twins"
    cwd.mkdir()
    async with connected(shared_server.url) as rpc:
        session = await rpc.new_session(str(cwd))
        names = rpc.initialized["_meta"]["sandboxagent.dev"]["extensions"]
        twins = "list_entries read_file write_file delete_entry mkdir move stat upload_batch".split()
        assert {f"_sandboxagent/fs/{name}" for name in twins} <= set(names)
        here = {"sessionId": session}
        coded = base64.b64encode(b"by\x00tes").decode()
        written = await rpc.call("_sandboxagent/fs/write_file", {**here, "path": "a/b", "content": coded})
        assert written == {"path": str(cwd / "a/b"), "bytesWritten": 6}
        assert (await rpc.call("_sandboxagent/fs/read_file", {**here, "path": "a/b"}))["content"] == coded
        assert (await rpc.call("_sandboxagent/fs/stat", {**here, "path": "a/b"}))["size"] == 6
        await rpc.call("_sandboxagent/fs/mkdir", {**here, "path": "c"})
        await rpc.call("_sandboxagent/fs/move", {**here, "from": "a/b", "to": "c/d"})
        packed = base64.b64encode(archive(file("e", b"e"))).decode()
        unpacked = await rpc.call("_sandboxagent/fs/upload_batch", {**here, "path": "c", "content": packed})
        assert unpacked["paths"] == [str(cwd / "c/e")]
        listed = (await rpc.call("_sandboxagent/fs/list_entries", {**here, "path": "c"}))["entries"]
        assert sorted(entry["name"] for entry in listed) == ["d", "e"]
        await rpc.call("_sandboxagent/fs/delete_entry", {**here, "path": "c", "recursive": True})
        assert sorted(path.name for path in cwd.iterdir()) == ["a"]


async def test_the_twins_stay_within_the_root_and_say_what_is_wrong(shared_server: Server, root: Path) -> None:
    async with connected(shared_server.url) as rpc:
        outside = await rpc.request("_sandboxagent/fs/read_file", {"path": "/etc/passwd"})
        assert "outside" in outside["error"]["message"]
        bad = await rpc.request("_sandboxagent/fs/write_file", {"path": f"{root}/x", "content": "not base64!"})
        assert bad["error"]["code"] == -32602
        missing = await rpc.request("_sandboxagent/fs/stat", {})
        assert "path" in missing["error"]["message"]


async def test_without_a_path_the_working_directory_is_listed(tmp_path: Path) -> None:
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / "here").touch()
    async with running_server(tmp_path / "home", "--no-token") as server, connected(server.url) as rpc:
        of_the_server = (await rpc.http.get("/v1/fs/entries")).json()
        assert of_the_server == (await rpc.http.get("/v1/fs/entries", params={"path": str(Path.cwd())})).json()
        session = await rpc.new_session(str(tmp_path / "cwd"))
        of_the_session = (await rpc.http.get("/v1/fs/entries", params={"sessionId": session})).json()
        assert [entry["path"] for entry in of_the_session] == [str(tmp_path / "cwd" / "here")]
        twin = await rpc.call("_sandboxagent/fs/list_entries", {"sessionId": session})
        assert twin["entries"] == of_the_session
        assert (await rpc.http.get("/v1/fs/entries", params={"path": ""})).status_code == 400
