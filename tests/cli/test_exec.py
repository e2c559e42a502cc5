"""`sandbox-agent exec` and `processes`: streams, input, exit codes, and real programs at a real terminal."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import COMMAND, Shell, serving
from support.node import require_tool
from support.tmux import Terminal, needs_tmux, terminal

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with serving(tmp_path_factory.mktemp("exec")) as made:
        yield made


@pytest.fixture
def screen(shell: Shell, tmp_path: Path) -> Iterator[Terminal]:
    with terminal(shell.env, tmp_path) as made:
        yield made


def test_streams_are_kept_apart_and_the_exit_code_is_the_same(shell: Shell) -> None:
    done = shell.run("exec", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
    assert (done.returncode, done.stdout, done.stderr) == (42, b"out\n", b"err\n")
    killed = shell.run("exec", "--", "sh", "-c", "kill -TERM $$")
    assert killed.returncode == 128 + signal.SIGTERM


def test_input_is_passed_on_to_its_end(shell: Shell) -> None:
    given = b"".join(b"%d line\n" % number for number in range(50_000))
    done = shell.run("exec", "--", "sh", "-c", "cat; echo end", given=given)
    assert done.stdout == given + b"end\n"
    assert shell.run("exec", "--", "wc", "-c").stdout.strip() == b"0"


def test_more_output_than_a_log_keeps_arrives_whole(shell: Shell) -> None:
    done = shell.run("exec", "--", "head", "-c", "30000000", "/dev/zero")
    assert (done.returncode, len(done.stdout)) == (0, 30_000_000)


def test_directory_and_environment_can_be_given(shell: Shell, tmp_path: Path) -> None:
    done = shell.run("exec", "-w", str(tmp_path), "-e", "A=b c", "--", "sh", "-c", 'pwd; echo "$A"')
    assert done.stdout.decode() == f"{tmp_path}\nb c\n"
    assert shell.run("exec", "-e", "novalue", "--", "true").returncode == 2


def test_a_command_that_is_not_there_is_named(shell: Shell) -> None:
    done = shell.run("exec", "--", "no-such-program")
    assert (done.returncode, b"no-such-program" in done.stderr) == (2, True)
    assert b"terminal" in shell.run("exec", "-t", "--", "true").stderr


def test_ctrl_c_goes_to_the_command(shell: Shell) -> None:
    script = "trap 'echo caught; exit 3' INT; echo up; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [COMMAND, "exec", "--", "sh", "-c", script],
        env=shell.env,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b"caught\n"
        assert process.wait(60) == 3


def test_a_process_in_the_background_is_listed_followed_stopped_and_deleted(shell: Shell) -> None:
    name = shell.text("exec", "--detach", "--", "sh", "-c", "echo begun; sleep 1000").strip()
    (listed,) = (each for each in shell.json("processes", "list", "--json") if each["id"] == name)
    assert listed["status"] == "running"
    assert name in shell.text("processes", "list", "--owner", "user")
    with subprocess.Popen([COMMAND, "processes", "logs", "-f", name], env=shell.env, stdout=subprocess.PIPE) as logs:
        assert logs.stdout is not None
        assert logs.stdout.readline() == b"begun\n"
        assert shell.text("processes", "stop", name) == f"{name}: exited (SIGTERM)\n"
        assert logs.wait(60) == 0
    assert shell.text("processes", "logs", name) == "begun\n"
    assert shell.run("processes", "attach", name).returncode == 128 + signal.SIGTERM
    shell.text("processes", "delete", name)
    assert shell.run("processes", "logs", name).returncode == 5
    stubborn = shell.text("exec", "-d", "--", "sh", "-c", "trap '' TERM; echo x; while :; do sleep 1; done").strip()
    assert "exited (SIGKILL)" in shell.text("processes", "kill", stubborn)


@needs_tmux
def test_a_terminal_has_size_keys_job_control_and_exit_code(screen: Terminal) -> None:
    screen.type("sandbox-agent exec -t -- bash --norc; echo code $?")
    screen.wait_for("bash-")
    screen.type("stty size; tty | sed s/[0-9]//g")
    shown = screen.wait_for("/dev/pts/\n")
    assert "40 80" in shown
    screen.type("(echo be\\gun; exec sleep 1000)")
    screen.wait_for("begun")  # before, Ctrl-Z would throw the line away
    screen.press("C-z")
    screen.wait_for("Stopped")
    screen.type("fg")
    screen.wait_for("fg\n( echo")
    screen.press("C-c")
    screen.type("exit 7")
    screen.wait_for("code 7")


@needs_tmux
def test_one_detaches_and_attaches_again(shell: Shell, screen: Terminal) -> None:
    screen.type("sandbox-agent exec -t -- sh -c 'echo st\\arted; read x; echo got $x; exit 4'; echo code $?")
    screen.wait_for("started")
    screen.press("C-p")
    screen.press("C-q")
    shown = screen.wait_for("code 0")
    name = next(word for word in shown.split() if word.startswith("proc_"))
    screen.type(f"clear; sandbox-agent processes attach {name}; echo code $?")
    screen.wait_for("started")
    screen.type("keys")
    assert "got keys" in screen.wait_for("code 4")


@needs_tmux
def test_vim_edits_a_file(screen: Terminal, tmp_path: Path) -> None:
    require_tool("vim")
    screen.type(f"sandbox-agent exec -t -w {tmp_path} -- vim -u NONE -N note.txt; echo code $?")
    screen.wait_for('"note.txt"')
    screen.type("ihello from vim")
    screen.press("Escape")
    screen.type(":wq")
    screen.wait_for("code 0")
    assert (tmp_path / "note.txt").read_text() == "hello from vim\n\n"


@needs_tmux
def test_less_pages_and_htop_draws_and_a_repl_answers(screen: Terminal, tmp_path: Path) -> None:
    require_tool("less")
    require_tool("htop")
    (tmp_path / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 1001)))
    screen.type(f"sandbox-agent exec -t -- less {tmp_path}/long.txt; echo code $?")
    screen.wait_for("line 39")
    screen.press("G")
    assert "line 1000" in screen.wait_for("(END)")
    screen.press("q")
    screen.wait_for("code 0")
    screen.type("clear; sandbox-agent exec -t -- htop; echo htop $?")
    screen.wait_for("F10Quit")
    screen.press("q")
    screen.wait_for("htop 0")
    screen.type("sandbox-agent exec -t -- python3 -q; echo repl $?")
    screen.wait_for(">>>")
    screen.type("6 * 7 * 1000")
    screen.wait_for("42000")
    screen.press("C-d")
    screen.wait_for("repl 0")
