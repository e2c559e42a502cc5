"""The same without async."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox_agent import BlockingSandboxAgent
from sandbox_agent.client import text_of
from sandbox_agent.errors import UnknownAgent
from support.command import Shell, serving


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with serving(tmp_path_factory.mktemp("blocking")) as shell:
        yield shell


def test_a_turn_in_a_plain_for_loop(shell: Shell) -> None:
    url = shell.env["SANDBOX_AGENT_ENDPOINT"]
    with BlockingSandboxAgent.connect(url, on_permission=lambda request: request.allow()) as sandbox:
        session = sandbox.create_session(agent="mock", cwd="/tmp")
        turn = session.prompt("hello")
        assert "".join(text_of(update) for update in turn) == "hello"
        assert turn.stop_reason == "end_turn"
        assert session.prompt("tool ls").text() == "The tool ran."
        session.set_mode("code")
        session.set_model("mock-large")
        assert session.set_config_option("effort", "high")
        assert [event.sequence for event in session.events(limit=2)] == [1, 2]
        assert session.id in {known.session_id for known in sandbox.list_sessions()}
        assert "mock" in {agent["id"] for agent in sandbox.agents()}
        with pytest.raises(UnknownAgent):
            sandbox.create_session(agent="nobody")


def test_leaving_the_loop_cancels_the_turn(shell: Shell) -> None:
    with BlockingSandboxAgent.connect(shell.env["SANDBOX_AGENT_ENDPOINT"]) as sandbox:
        session = sandbox.create_session(agent="mock", cwd="/tmp")
        for _ in session.prompt("slow 100000"):
            break
        assert session.prompt("hello").text() == "hello"


def test_another_thread_can_cancel(shell: Shell) -> None:
    with BlockingSandboxAgent.connect(shell.env["SANDBOX_AGENT_ENDPOINT"]) as sandbox:
        session = sandbox.create_session(agent="mock", cwd="/tmp")
        turn = session.prompt("slow 100000")
        for number, _ in enumerate(turn):
            if number == 2:
                threading.Thread(target=session.cancel).start()
        assert turn.stop_reason == "cancelled"


def test_files(shell: Shell, tmp_path: Path) -> None:
    with BlockingSandboxAgent.connect(shell.env["SANDBOX_AGENT_ENDPOINT"]) as sandbox:
        files = sandbox.files
        (tmp_path / "up").mkdir()
        (tmp_path / "up" / "a.txt").write_text("a")
        assert files.upload(tmp_path / "up", str(tmp_path / "there"))
        assert files.write(str(tmp_path / "there" / "b.txt"), "bee") == 3
        assert files.read(str(tmp_path / "there" / "b.txt")) == b"bee"
        assert files.download(str(tmp_path / "there" / "a.txt"), tmp_path / "back.txt") == 1
        assert {entry.name for entry in files.list(str(tmp_path / "there"))} == {"a.txt", "b.txt"}
        files.delete(str(tmp_path / "there"), recursive=True)
        assert not (tmp_path / "there").exists()


def test_a_server_of_our_own(tmp_path: Path) -> None:
    env = {"SANDBOX_AGENT_MOCK_STATE": str(tmp_path / "mock-state"), "HOME": str(tmp_path)}
    with BlockingSandboxAgent.start(data_dir=tmp_path / "data", env=env) as sandbox:
        session = sandbox.create_session(agent="mock", cwd="/tmp", session_id="mine")
        session.prompt("hello").text()
        assert sandbox.resume_session("mine").id == session.id
        assert sandbox.load_session("mine").session.replay
        session.terminate()


def test_in_a_notebook_it_is_opened_and_closed_and_has_what_the_async_one_has(tmp_path: Path) -> None:
    home = {"SANDBOX_AGENT_MOCK_STATE": str(tmp_path / "mock-state"), "HOME": str(tmp_path)}
    sandbox = BlockingSandboxAgent.start(data_dir=tmp_path / "data", env=home).open()
    try:
        session = sandbox.create_session(agent="mock", cwd="/tmp", title="mine", model="mock-large")
        assert session.prompt("remember me").text() == "remember me"
        assert (session.agent, session.cwd, session.describe()["title"]) == ("mock", "/tmp", "mine")
        assert session.fork().prompt("recall").text() == "1. remember me"
        assert "remember me" in "".join(map(text_of, sandbox.load_session(session.id).replay))
        assert sandbox.get_session(session.id).describe()["sessionId"] == session.id
        assert sandbox.describe_agent("mock")["installed"] is True
        assert sandbox.install_agent("mock")["alreadyInstalled"] is True
        assert sandbox.health()["status"] == "ok"
        session.delete()
        assert session.id not in {known.session_id for known in sandbox.list_sessions(agent="mock")}
    finally:
        sandbox.close()
        sandbox.close()
    assert not any(thread.name == "sandbox-agent" and thread.is_alive() for thread in threading.enumerate())
