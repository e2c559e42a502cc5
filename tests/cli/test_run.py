"""`sandbox-agent run` without a terminal: text, JSON, exit codes, errors with a next step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import Shell, serving

pytestmark = pytest.mark.timeout(180)  # several processes, one after the other


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with serving(tmp_path_factory.mktemp("run")) as shell:
        yield shell


def test_without_a_server_one_runs_for_the_command_alone(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shown = shell.text("run", "--agent", "mock", "hello there")
    assert "hello there" in shown
    assert shown.endswith("stopped: end_turn\n")


def test_an_earlier_session_goes_on_with_resume(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    first = shell.lines("run", "--agent", "mock", "one", "--json")
    shown = shell.text("run", "--agent", "mock", "--resume", first[0]["sessionId"], "recall")
    assert "1. one" in shown


def test_json_is_one_object_a_line_from_session_to_stop(shell: Shell) -> None:
    lines = shell.lines("run", "--agent", "mock", "hello", "--json", "--cwd", "/tmp")
    assert lines[0]["type"] == "session"
    assert lines[0]["cwd"] == "/tmp"
    assert {line["type"] for line in lines[1:-1]} == {"update"}
    said = [line["update"]["content"]["text"] for line in lines[1:-1] if "content" in line["update"]]
    assert "".join(said) == "hello"
    assert lines[-1] == {"type": "stop", "sessionId": lines[0]["sessionId"], "stopReason": "end_turn"}


@pytest.mark.parametrize(("approve", "status"), [("allow", "completed"), ("reject", "failed")])
def test_approve_decides_without_asking(shell: Shell, approve: str, status: str) -> None:
    assert f"Run ls  {status}" in shell.text("run", "--agent", "mock", "tool ls", "--approve", approve)


@pytest.mark.promise("P-ask-6")
def test_with_nobody_to_ask_a_permission_is_rejected_and_that_is_said_and_has_its_exit_code(shell: Shell) -> None:
    done = shell.run("run", "--agent", "mock", "tool ls")
    assert done.returncode == 14
    assert "rejected (no terminal to ask at; see --approve)" in done.stdout.decode()
    assert shell.run("run", "--agent", "mock", "tool ls", "--json").returncode == 14
    assert shell.run("run", "--agent", "mock", "tool ls", "--approve", "reject").returncode == 0


def test_quiet_prints_the_answer_alone(shell: Shell) -> None:
    done = shell.run("run", "--agent", "mock", "-q", "thought Let me see; hello there")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"donehello there\n", b"")
    noted = shell.run("run", "--agent", "mock", "--quiet", "tool ls")
    assert noted.returncode == 14
    assert "→ rejected" in noted.stderr.decode()
    assert b"rejected (no terminal" not in noted.stdout


def test_a_turn_that_takes_too_long_is_cancelled_and_has_its_exit_code(shell: Shell) -> None:
    done = shell.run("run", "--agent", "mock", "--timeout", "0.5", "hang")
    assert (done.returncode, "stopped: cancelled" in done.stdout.decode()) == (124, True)
    assert shell.run("run", "--agent", "mock", "--timeout", "0.5", "hang", "--json").returncode == 124
    assert shell.run("run", "--agent", "mock", "--timeout", "60", "hello").returncode == 0


def test_continue_resumes_the_newest_open_session_of_the_directory(shell: Shell) -> None:
    here, elsewhere = shell.home / "here", shell.home / "elsewhere"
    for place in (here, elsewhere):
        place.mkdir()
        shell.text("run", "--agent", "mock", f"I am in {place.name}", "--cwd", str(place))
    shown = shell.text("run", "--continue", "recall", "--cwd", str(here))
    assert "1. I am in here" in shown
    nothing = shell.run("run", "--continue", "recall", "--cwd", str(shell.home / "files-of-nobody"))
    assert (nothing.returncode, b"no open session" in nothing.stderr) == (5, True)


def test_a_named_session_is_created_once_and_resumed_afterwards(shell: Shell) -> None:
    assert shell.run("run", "--session", "nightly", "one").returncode == 2, "there is none yet, and no agent is named"
    shell.text("run", "--agent", "mock", "--session", "nightly", "one")
    assert "1. one" in shell.text("run", "--session", "nightly", "recall")
    assert shell.run("run", "--session", "nightly", "--continue", "x").returncode == 2


def test_a_prompt_that_is_not_waited_for_runs_at_the_server(shell: Shell) -> None:
    session = shell.text("run", "--agent", "mock", "--no-wait", "--approve", "allow", "tool ls").strip()
    told = shell.json("run", "--resume", session, "--no-wait", "--json", "after it")
    assert told["sessionId"] == session
    shown = shell.text("run", "--resume", session, "recall")
    assert "2. after it" in shown
    assert "completed" in shell.text("sessions", "export", session)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--no-wait", "--timeout", "3"), "--timeout needs somebody who waits"),
        (("--no-wait", "--approve", "allow", "--continue"), "--approve is for a new one"),
    ],
)
def test_what_makes_no_sense_without_waiting_is_said(shell: Shell, flags: tuple[str, ...], problem: str) -> None:
    shell.text("run", "--agent", "mock", "something to continue")
    done = shell.run("run", "--agent", "mock", *flags, "hello")
    assert done.returncode == 2
    assert problem in done.stderr.decode()


def test_without_a_server_nothing_can_be_left_to_run(tmp_path: Path) -> None:
    done = Shell(tmp_path).run("run", "--agent", "mock", "--no-wait", "hello")
    assert done.returncode != 0
    assert "no server answers" in done.stderr.decode()


def test_the_prompt_may_come_from_stdin(shell: Shell) -> None:
    assert "from a pipe" in shell.text("run", "--agent", "mock", "-", given="from a pipe")


def test_a_diff_and_a_plan_are_shown_without_a_terminal(shell: Shell) -> None:
    shown = shell.text("run", "--agent", "mock", "plan; edit /tmp/x.txt", "--approve", "allow")
    assert "  ☑ " in shown
    assert "  -hello\n  +hello, world\n" in shown
    assert "\x1b" not in shown


def test_model_and_mode_are_set(shell: Shell) -> None:
    lines = shell.lines("run", "--agent", "mock", "--model", "mock-large", "--mode", "code", "hello", "--json")
    assert lines[-1]["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--model", "error: agent 'mock' has no model 'nope'; available: mock-small, mock-large"),
        ("--mode", "error: agent 'mock' has no mode 'nope'; available: ask, code"),
    ],
)
def test_a_model_or_mode_that_the_agent_lacks_is_an_error_that_lists_what_there_is(
    shell: Shell, option: str, said: str
) -> None:
    done = shell.run("run", "--agent", "mock", option, "nope", "hello")
    assert (done.returncode, done.stdout, said in done.stderr.decode()) == (2, b"", True), done.stderr.decode()
    newest = shell.json("sessions", "list", "--limit", "1", "--json")[0]
    assert newest["ended"], "the session that is not as it was asked for stays open"
    as_json = shell.run("run", "--agent", "mock", option, "nope", "hello", "--json")
    assert json.loads(as_json.stdout)["error"] == "invalid_params"


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("run", "--agent", "nobody", "x"), 5, "sandbox-agent agents list"),
        (("run", "x"), 2, "--agent is missing"),
        (("run", "--agent", "mock", "fail -32050"), 1, "error: The prompt asked for a failure"),
        (("run", "--agent", "mock", "crash 3"), 1, "error: "),
        (("--endpoint", "http://127.0.0.1:9", "run", "--agent", "mock", "x"), 3, "sandbox-agent daemon start"),
        (("nonsense",), 2, "No such command"),
        (("sesions",), 2, "No such command 'sesions'. Did you mean 'sessions'?"),
        (("sessions", "lst"), 2, "No such command 'lst'. Did you mean 'list'?"),
        (("run", "--agnet", "mock", "x"), 2, "Did you mean '--agent'?"),
    ],
)
def test_what_goes_wrong_has_its_exit_code_and_a_next_step(
    shell: Shell, args: tuple[str, ...], code: int, said: str
) -> None:
    done = shell.run(*args)
    assert (done.returncode, said in done.stderr.decode()) == (code, True), done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_an_error_is_json_too_when_json_was_asked_for(shell: Shell) -> None:
    done = shell.run("run", "--agent", "nobody", "x", "--json")
    assert done.returncode == 5
    assert json.loads(done.stdout)["error"] == "unknown_agent"


def test_a_wrong_token_has_its_own_exit_code(tmp_path: Path) -> None:
    with serving(tmp_path, "--token", "right") as shell:
        assert shell.run("run", "--agent", "mock", "x", "--token", "wrong").returncode == 4
        assert "x" in shell.text("--token", "right", "run", "--agent", "mock", "x")


def test_two_runs_at_once_share_a_data_directory(tmp_path: Path) -> None:
    with serving(tmp_path):  # holds the data directory, but not at the address that commands look at
        done = Shell(tmp_path).run("run", "--agent", "mock", "hello")
    assert done.returncode == 0, done.stderr.decode()
    assert "history is not kept" in done.stderr.decode()
    assert "hello" in done.stdout.decode()
