"""`sandbox-agent store check` over databases that a disk has spoilt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.store.sqlite.writer import Pace
from support.store_words import ANY, KEY, STREAM, committed, numbered, query, read_all, session, sqlite_store


async def spoilt(path: Path) -> None:
    """Forty lines in four batches, one of them damaged and one gone; two sessions, one damaged; a damaged turn."""
    store = sqlite_store(path, pace=Pace(linger=0.0))
    await store.open()
    for start in range(1, 41, 10):
        store.append(STREAM, "agent", numbered(10, start=start))
        await committed(store)
    store.put_session(session(alias="mine", cwd="/w", title="gone", updated=2.0))
    store.put_session(session("two"))
    store.put_turn(KEY, "t", b'{"answer":1}')
    await store.close()
    query(path, "UPDATE batches SET body = substr(body, 1, 20) || x'00' || substr(body, 22) WHERE first = 11")
    query(path, "DELETE FROM batches WHERE first = 31")
    query(path, "UPDATE sessions SET record = x'7b' WHERE session = 'one'")
    query(path, "UPDATE turns SET answer = x'7b'")


def check(path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "sandbox_agent", "--json", "store", "check", "--store", f"sqlite:{path}", *words],
        capture_output=True,
        env={**os.environ, "HOME": str(path.parent)},
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.promise("P-history-8")
async def test_a_check_names_every_damage_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await spoilt(path)
    before = path.read_bytes()
    code, report = check(path)
    assert code == 1
    assert path.read_bytes() == before
    details = [problem["detail"] for problem in report["problems"]]
    for words in ("11 to 20 are damaged", "31 to 40 are missing", "record is damaged", "turn t is damaged"):
        assert any(words in detail for detail in details)
    assert len(details) == 4
    assert report["setAside"] == []


@pytest.mark.promise("P-history-8")
async def test_a_repair_marks_what_is_lost_keeps_what_was_damaged_and_leaves_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    await spoilt(path)
    code, report = check(path, "--repair")
    assert code == 0
    assert [problem["is_repaired"] for problem in report["problems"]] == [True] * 4
    assert report["setAside"] == [f"{path}.refused"]
    assert len((tmp_path / "history.db.refused").read_bytes().splitlines()) == 3
    assert check(path) == (0, {**report, "batches": 4, "problems": []})
    store = sqlite_store(path)
    await store.open()
    entries = await read_all(store)
    assert [entry.sequence for entry in entries] == [*range(1, 11), 20, *range(21, 31), 40]
    page = await store.list_sessions(ANY)
    assert page.unreadable == []
    found = {record.session_id: (record.alias, record.cwd, record.title) for record in page.sessions}
    assert found == {"one": ("mine", "/w", None), "two": (None, None, None)}
    assert await store.get_turn(KEY, "t") == (True, None)
    assert store.append(STREAM, "agent", [b"next"]) == 41
    await store.close()


async def test_a_file_with_a_ruined_page_is_rebuilt_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=Pace(linger=0.0))
    await store.open()
    for number in range(1, 201):
        store.append(STREAM, "agent", [json.dumps({"n": number, "noise": os.urandom(400).hex()}).encode()])
        if number % 10 == 0:
            await committed(store)
    store.put_session(session())
    await store.close()
    ((root,),) = query(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'batches'")
    assert isinstance(root, int)
    content = bytearray(path.read_bytes())
    start = (root - 1) * 8192
    cell = start + int.from_bytes(content[start + 12 : start + 14], "big")
    leaf = (int.from_bytes(content[cell : cell + 4], "big") - 1) * 8192
    content[leaf : leaf + 200] = b"\xff" * 200
    path.write_bytes(content)
    assert check(path)[0] == 1
    code, report = check(path, "--repair")
    assert (code, report["setAside"]) == (0, [f"{path}.damaged.1"])
    assert (tmp_path / "history.db.damaged.1").read_bytes()[leaf : leaf + 8192] == content[leaf : leaf + 8192]
    assert check(path)[0] == 0
    store = sqlite_store(path)
    await store.open()
    entries = await read_all(store)
    assert sum(b"noise" in entry.envelope for entry in entries) >= 150
    assert entries[-1].sequence == 200
    assert await store.get_session(KEY) is not None
    await store.close()


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sandbox_agent", "store", "check", "--data-dir", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "there is no history database" in done.stderr
    assert not (tmp_path / "none").exists()
