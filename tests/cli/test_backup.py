"""`sandbox-agent store backup` while a server writes, and `store restore`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.client import Session
from sandbox_agent.store.sqlite.backup import back_up
from sandbox_agent.store.sqlite.writer import Pace
from support.command import Shell
from support.server import running_server
from support.store_words import STREAM, numbered, read_all, session, sqlite_store

pytestmark = pytest.mark.timeout(180)


async def _history(session: Session) -> list[str]:
    return [str(event.envelope) async for event in session.events()]


async def test_a_backup_under_load_holds_all_that_was_told_before_it_and_can_be_served(tmp_path: Path) -> None:
    copies = [tmp_path / f"copy-{number}.db" for number in range(3)]
    told: list[list[str]] = []
    async with running_server(tmp_path / "home") as server, SandboxAgent.connect(server.url) as sandbox:
        one = await sandbox.create_session(agent="mock", cwd="/tmp", title="kept")
        turn = asyncio.create_task(one.prompt("burst 20000").text())
        for copy in copies:
            told.append(await _history(one))
            done = await asyncio.to_thread(Shell(tmp_path / "home").run, "store", "backup", str(copy))
            assert done.returncode == 0, done.stderr
        await turn
        whole = await _history(one)
    for copy, before in zip(copies, told, strict=True):
        assert copy.stat().st_mode & 0o777 == 0o600
        assert not list(tmp_path.glob("*.part*"))
        async with (
            running_server(tmp_path / "other", "--store", f"sqlite:{copy}") as server,
            SandboxAgent.connect(server.url) as sandbox,
        ):
            kept = await sandbox.get_session(one.id, agent="mock")
            assert (await kept.describe())["title"] == "kept"
            copied = await _history(kept)
        assert copied[: len(before)] == before
        assert copied == whole[: len(copied)] or copied[:-1] == whole[: len(copied) - 1]  # the end of a turn cut off


async def test_what_only_the_journal_has_is_in_the_backup(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = sqlite_store(path, pace=Pace(linger=60.0))
    await store.open()
    store.put_session(session("two"))
    store.append(STREAM, "agent", numbered(50))
    made = back_up(path, tmp_path / "copy.db", progress=lambda _done, _all: None)
    assert made.sessions == 1
    await store.close()
    copy = sqlite_store(tmp_path / "copy.db")
    await copy.open()
    assert len(await read_all(copy)) == 50
    await copy.close()


def _ran(home: Path, *words: str) -> list[str]:
    return [line["type"] for line in Shell(home).lines("run", "--agent", "mock", "--json", *words)]


def test_a_restore_brings_back_what_was_and_keeps_what_it_replaces(tmp_path: Path) -> None:
    shell, copy = Shell(tmp_path), str(tmp_path / "copy.db")
    _ran(tmp_path, "--session", "early", "first words")
    assert shell.json("store", "backup", copy, "--json")["sessions"] == 1
    _ran(tmp_path, "--session", "late", "second words")
    refused = shell.run("store", "restore", copy)
    assert refused.returncode == 2
    assert "--force" in refused.stderr.decode()
    restored = shell.json("store", "restore", "--force", copy, "--json")
    assert restored["sessions"] == 1
    assert any("before-restore" in name for name in restored["kept"])
    listed = [one["alias"] for one in shell.json("sessions", "list", "--json")]
    assert listed == ["early"]
    assert "first words" in shell.text("run", "--session", "early", "recall")


@pytest.mark.parametrize("name", ["missing.db", "damaged.db", "other.txt"])
def test_a_file_that_is_no_backup_is_refused_and_changes_nothing(tmp_path: Path, name: str) -> None:
    shell, copy = Shell(tmp_path), tmp_path / "copy.db"
    _ran(tmp_path, "--session", "kept", "hello")
    shell.text("store", "backup", str(copy))
    damaged = bytearray(copy.read_bytes())
    damaged[len(damaged) // 2 :] = bytes(len(damaged) - len(damaged) // 2)
    (tmp_path / "damaged.db").write_bytes(damaged)
    (tmp_path / "other.txt").write_text("no database")
    assert shell.run("store", "restore", "--force", str(tmp_path / name)).returncode == 2
    assert shell.run("store", "backup", str(copy)).returncode == 2, "it would overwrite the first"
    assert [one["alias"] for one in shell.json("sessions", "list", "--json")] == ["kept"]


async def test_a_database_in_use_is_not_replaced(tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    async with running_server(tmp_path):
        shell = Shell(tmp_path)
        assert (await asyncio.to_thread(shell.run, "store", "backup", copy)).returncode == 0
        done = await asyncio.to_thread(shell.run, "store", "restore", "--force", copy)
    assert done.returncode == 2
    assert "in use by another server" in done.stderr.decode()
