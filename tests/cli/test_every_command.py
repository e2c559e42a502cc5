"""Every command there is, run once against a real server. A new command without a row here fails."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tarfile
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import click
import pytest

from sandbox_agent.cli.main import cli
from support.command import Shell, serving

pytestmark = pytest.mark.timeout(180)  # several processes, one after the other

INITIALIZE = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'


class Bench:
    """What the rows share: a server, a session with a history, files."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        lines = shell.lines("run", "--agent", "mock", "tool ls", "--approve", "allow", "--title", "Try", "--json")
        self.session: str = lines[0]["sessionId"]
        self.root = shell.home / "files"
        self.root.mkdir()
        (self.root / "a.txt").write_text("hello")
        (shell.home / "up").mkdir()
        (shell.home / "up" / "b.txt").write_text("bee")

    def path(self, name: str) -> str:
        return str(self.root / name)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with serving(tmp_path_factory.mktemp("every")) as shell:
        yield Bench(shell)


Check = Callable[[Bench], None]
ROWS: dict[str, Check] = {}


def row(*commands: str) -> Callable[[Check], Check]:
    """Several commands are tried together, once."""

    def register(check: Check) -> Check:
        ROWS.update(dict.fromkeys(commands, cache(check)))
        return check

    return register


def _leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _leaves(child, (*words, name))
    else:
        yield " ".join(words)


ELSEWHERE = {
    "store backup": "test_backup.py",
    "store check": "test_store.py",
    "store copy": "../store/test_copying.py",
    "store restore": "test_backup.py",
    "run": "test_run.py",
    "exec": "test_exec.py",
    "mcp add": "test_directory_config.py",
    "mcp list": "test_directory_config.py",
    "mcp remove": "test_directory_config.py",
    "skills add": "test_directory_config.py",
    "skills list": "test_directory_config.py",
    "skills remove": "test_directory_config.py",
    "nodes drain": "../cluster/test_nodes.py",
    "nodes list": "../cluster/test_nodes.py",
    "nodes resume": "../cluster/test_nodes.py",
    "processes list": "test_exec.py",
    "processes logs": "test_exec.py",
    "processes stop": "test_exec.py",
    "processes kill": "test_exec.py",
    "processes attach": "test_exec.py",
    "processes delete": "test_exec.py",
    "demo": "test_demo.py",
    "daemon start": "test_daemon.py",
    "daemon stop": "test_daemon.py",
    "daemon status": "test_daemon.py",
    "sessions attach": "test_terminal.py",
    "server": "support/command.py",
    "stdio": "test_stdio.py",
    "tokens add": "test_tokens.py",
    "tokens list": "test_tokens.py",
    "tokens revoke": "test_tokens.py",
}
"""Commands that have tests of their own."""


def test_every_command_is_run_by_a_test() -> None:
    assert set(_leaves(cli)) - ELSEWHERE.keys() == set(ROWS)


@pytest.mark.parametrize("command", sorted(set(_leaves(cli)) - ELSEWHERE.keys()))
def test_command(bench: Bench, command: str) -> None:
    ROWS[command](bench)


def test_the_line_that_help_shows_is_that_of_the_command() -> None:
    context = click.Context(cli)
    for name, (_, line) in getattr(cli, "lazy", {}).items():
        command = cli.get_command(context, name)
        assert command is not None
        assert (command.help or "").startswith(line.rstrip(".")), name


@row("agents list")
def _(bench: Bench) -> None:
    shown = bench.shell.text("agents", "list")
    assert re.search(r"^mock +installed", shown, re.MULTILINE)
    assert "…" not in shown, "what a program reads is not cut"
    assert "mock" in {agent["id"] for agent in bench.shell.json("agents", "list", "--json")}


@row("agents show")
def _(bench: Bench) -> None:
    assert "Mock agent" in bench.shell.text("agents", "show", "mock")
    done = bench.shell.run("agents", "show", "nobody")
    assert done.returncode == 5


@row("agents install")
def _(bench: Bench) -> None:
    assert "already installed" in bench.shell.text("agents", "install", "mock")


@row("agents check")
def _(bench: Bench) -> None:
    assert re.search(r"leak|apart", bench.shell.text("agents", "check", "mock"))


@row("login")
def _(bench: Bench) -> None:
    done = bench.shell.run("login", "mock")
    assert done.returncode != 0
    assert b"mock" in done.stderr


@row("ui")
def _(bench: Bench) -> None:
    assert "/ui/" in bench.shell.text("ui", "--print")


@row("opencode")
def _(bench: Bench) -> None:
    program = bench.shell.home / "bin" / "opencode"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    shell = Shell(bench.shell.home, bench.shell.env["SANDBOX_AGENT_ENDPOINT"], PATH=path)
    said = shell.text("opencode", "--agent", "mock", "--continue")
    assert said.startswith("attach http://127.0.0.1:")
    assert f"/opencode/agents/mock --continue --dir {bench.shell.home}" in said


@row("install-agent")
def _(bench: Bench) -> None:
    assert "mock: already installed" in bench.shell.text("install-agent", "mock")


@row("api v1 health")
def _(bench: Bench) -> None:
    assert bench.shell.json("api", "v1", "health")["status"] == "ok"


@row("api v1 metrics")
def _(bench: Bench) -> None:
    assert "# TYPE" in bench.shell.text("api", "v1", "metrics")


@row("api v1 nodes list", "api v1 nodes drain", "api v1 nodes resume")
def _(bench: Bench) -> None:
    assert bench.shell.json("api", "v1", "nodes", "list") == {"nodes": []}
    for verb in ("drain", "resume"):
        refused = bench.shell.run("api", "v1", "nodes", verb, "a")
        assert b"not part of a cluster" in refused.stdout + refused.stderr
        assert refused.returncode != 0


@row("api v1 openapi")
def _(bench: Bench) -> None:
    document = bench.shell.json("api", "v1", "openapi")
    mirrored = {(call.verb.lower(), re.sub(r"\{[^}]*\}", "{}", call.path)) for call in _calls()}
    served = {
        (verb, re.sub(r"\{[^}]*\}", "{}", path))
        for path, verbs in document["paths"].items()
        if path.startswith("/v1/") and path not in {"/v1/rpc", "/v1/tickets", "/v1/events"} and "acp" not in path
        if not path.endswith("/terminal/ws")  # a WebSocket
        for verb, operation in verbs.items()
        if not operation.get("deprecated")
        if verb in {"get", "put", "post", "delete"}
    }
    assert served - mirrored == set(), "operations that `api v1` does not mirror"


def _calls() -> Any:
    from sandbox_agent.cli.api import CALLS

    return CALLS


@row("api v1 agents list")
def _(bench: Bench) -> None:
    assert bench.shell.json("api", "v1", "agents", "list")["agents"]


@row("api v1 agents show")
def _(bench: Bench) -> None:
    assert bench.shell.json("api", "v1", "agents", "show", "mock", "--config")["models"]


@row("api v1 agents logs")
def _(bench: Bench) -> None:
    assert bench.shell.json("api", "v1", "agents", "logs", "mock", "--tail", "5")["agent"] == "mock"


@row("api v1 agents install")
def _(bench: Bench) -> None:
    assert bench.shell.json("api", "v1", "agents", "install", "mock")["already_installed"] is True


@row("api v1 sessions list")
def _(bench: Bench) -> None:
    page = bench.shell.json("api", "v1", "sessions", "list", "--agent", "mock", "--limit", "1")
    assert len(page["sessions"]) == 1


@row("api v1 search")
def _(bench: Bench) -> None:
    assert "isComplete" in bench.shell.json("api", "v1", "search", "tool ls", "--limit", "1")


@row("api v1 sessions show")
def _(bench: Bench) -> None:
    assert bench.shell.json("api", "v1", "sessions", "show", bench.session)["sessionId"] == bench.session


@row("api v1 sessions transcript")
def _(bench: Bench) -> None:
    assert "tool ls" in bench.shell.text("api", "v1", "sessions", "transcript", bench.session, "--format", "markdown")


@row("api v1 fs entries")
def _(bench: Bench) -> None:
    entries = bench.shell.json("api", "v1", "fs", "entries", str(bench.root))
    assert "a.txt" in {entry["name"] for entry in entries}


@row("api v1 fs stat")
def _(bench: Bench) -> None:
    assert bench.shell.json("api", "v1", "fs", "stat", bench.path("a.txt"))["size"] == 5


@row("api v1 fs read")
def _(bench: Bench) -> None:
    assert bench.shell.text("api", "v1", "fs", "read", bench.path("a.txt")) == "hello"


@row("api v1 fs write")
def _(bench: Bench) -> None:
    written = bench.shell.json("api", "v1", "fs", "write", bench.path("w.txt"), "-", given="written")
    assert written["bytesWritten"] == 7
    assert (bench.root / "w.txt").read_text() == "written"


@row("api v1 fs delete")
def _(bench: Bench) -> None:
    (bench.root / "gone").mkdir()
    bench.shell.text("api", "v1", "fs", "delete", bench.path("gone"), "--recursive")
    assert not (bench.root / "gone").exists()


@row("api v1 fs mkdir")
def _(bench: Bench) -> None:
    bench.shell.text("api", "v1", "fs", "mkdir", bench.path("made/deep"))
    assert (bench.root / "made" / "deep").is_dir()


@row("api v1 fs move")
def _(bench: Bench) -> None:
    (bench.root / "from.txt").write_text("x")
    bench.shell.text("api", "v1", "fs", "move", bench.path("from.txt"), bench.path("to.txt"))
    assert (bench.root / "to.txt").exists()


@row("api v1 fs upload-batch")
def _(bench: Bench) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(bench.shell.home / "up" / "b.txt", "b.txt")
    bench.shell.text("api", "v1", "fs", "upload-batch", bench.path("unpacked"), "-", given=packed.getvalue())
    assert (bench.root / "unpacked" / "b.txt").read_text() == "bee"


def _started(bench: Bench) -> str:
    wanted = json.dumps({"command": "sh", "args": ["-c", "cat; exit 3"], "tty": True})
    started = bench.shell.json("api", "v1", "processes", "start", "-", given=wanted)
    assert started["status"] == "running"
    return str(started["id"])


@row(
    "api v1 processes start",
    "api v1 processes show",
    "api v1 processes input",
    "api v1 processes resize",
    "api v1 processes stop",
    "api v1 processes logs",
    "api v1 processes delete",
)
def _(bench: Bench) -> None:
    call, api = bench.shell.json, ("api", "v1", "processes")
    process = _started(bench)
    assert call(*api, "show", process)["command"] == "sh"
    assert call(*api, "input", process, "-", given='{"data": "hi", "encoding": "utf8"}') == {"bytesWritten": 2}
    assert call(*api, "resize", process, "70", "20") == {"cols": 70, "rows": 20}
    assert call(*api, "stop", process, "--signal", "HUP", "--wait-ms", "20000")["signal"] == "SIGHUP"
    entries = call(*api, "logs", process, "--tail", "100")["entries"]
    assert b64decode("".join(entry["data"] for entry in entries[:1])).startswith(b"hi")
    assert "event: exit" in bench.shell.text(*api, "logs", process, "--follow")
    assert bench.shell.text(*api, "delete", process) == ""


@row("api v1 processes list", "api v1 processes kill")
def _(bench: Bench) -> None:
    process = _started(bench)
    listed = bench.shell.json("api", "v1", "processes", "list", "--owner", "user")["processes"]
    assert process in {one["id"] for one in listed}
    assert bench.shell.json("api", "v1", "processes", "kill", process, "--wait-ms", "20000")["signal"] == "SIGKILL"


@row("api v1 processes run")
def _(bench: Bench) -> None:
    wanted = '{"command": "echo", "args": ["done"]}'
    assert bench.shell.json("api", "v1", "processes", "run", "-", given=wanted)["stdout"] == "done\n"


@row("api v1 processes config", "api v1 processes set-config")
def _(bench: Bench) -> None:
    limits = bench.shell.json("api", "v1", "processes", "config")
    changed = {**limits, "maxRunTimeoutMs": limits["maxRunTimeoutMs"] - 1}
    assert bench.shell.json("api", "v1", "processes", "set-config", "-", given=json.dumps(changed)) == changed


@row("api v1 config mcp", "api v1 config set-mcp", "api v1 config delete-mcp")
def _(bench: Bench) -> None:
    _configures(bench, "mcp", {"type": "local", "command": "cat"})


@row("api v1 config skills", "api v1 config set-skills", "api v1 config delete-skills")
def _(bench: Bench) -> None:
    _configures(bench, "skills", {"sources": [{"type": "local", "source": "up"}]})


def _configures(bench: Bench, kind: str, config: dict[str, Any]) -> None:
    api, directory = ("api", "v1", "config"), str(bench.root)
    assert bench.shell.text(*api, f"set-{kind}", directory, "one", "-", given=json.dumps(config)) == ""
    (entry,) = bench.shell.json(*api, kind, directory)["entries"]
    assert (entry["name"], entry["config"]) == ("one", config)
    assert bench.shell.text(*api, f"delete-{kind}", directory, "one") == ""


def _opened(bench: Bench) -> str:
    done = bench.shell.run("api", "v1", "rpc", "post", INITIALIZE, "--agent", "mock")
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1
    return done.stderr.decode().split("connection: ")[1].strip()


@row("api v1 rpc post")
def _(bench: Bench) -> None:
    connection = _opened(bench)
    listing = '{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}'
    answer = bench.shell.json("api", "v1", "rpc", "post", "-", "--connection", connection, given=listing)
    assert answer["result"]["sessions"]
    assert bench.shell.run("api", "v1", "rpc", "post", "[", "--connection", connection).returncode == 2


@row("api v1 rpc stream")
def _(bench: Bench) -> None:
    connection = _opened(bench)
    load = {"sessionId": bench.session, "cwd": "/", "mcpServers": []}
    envelope = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": load})
    bench.shell.text("api", "v1", "rpc", "post", envelope, "--connection", connection)
    flags = ("--connection", connection, "--last-event-id", "1", "--limit", "1")
    events = bench.shell.lines("api", "v1", "rpc", "stream", *flags)
    assert events[0]["id"] == 2
    assert events[0]["message"]["method"] == "session/update"


@row("api v1 events")
def _(bench: Bench) -> None:
    told = bench.shell.lines("api", "v1", "events", "--after", "0badc0de-7", "--limit", "1")
    assert told[0]["event"] == {"type": "reset"}
    assert bench.shell.run("api", "v1", "events", "--after", "nonsense").returncode == 2


@row("api v1 rpc close")
def _(bench: Bench) -> None:
    connection = _opened(bench)
    bench.shell.text("api", "v1", "rpc", "close", "--connection", connection)
    done = bench.shell.run("api", "v1", "rpc", "stream", "--connection", connection)
    assert done.returncode == 5


@row("completion")
def _(bench: Bench) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_SANDBOX_AGENT_COMPLETE" in bench.shell.text("completion", shell)
    assert _completed(bench.shell, "se") == {"server", "sessions"}
    assert _completed(bench.shell, "agents", "show", "mo") == {"mock"}
    assert bench.session in _completed(bench.shell, "sessions", "show", "mock-")
    nowhere = Shell(bench.shell.home, "http://127.0.0.1:9")
    assert _completed(nowhere, "sessions", "show", "mock-") == set()


def _completed(shell: Shell, *typed: str) -> set[str]:
    """What bash offers for the last word."""
    words = " ".join(["sandbox-agent", *typed])
    asked = f"COMP_WORDS=({words}) COMP_CWORD={len(typed)}\n_sandbox_agent_completion sandbox-agent"
    script = f"{shell.text('completion', 'bash')}\n{asked}\necho ${{COMPREPLY[@]}}\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=shell.env, timeout=30)
    assert done.stderr == ""
    return set(done.stdout.split())


@row("credentials extract")
def _(bench: Bench) -> None:
    shell = Shell(bench.shell.home / "keys", ANTHROPIC_API_KEY="sk-ant-0123456789abcdefghij")
    masked = shell.text("credentials", "extract", "--agent", "claude")
    assert "sk-a…ghij" in masked
    assert "0123456789" not in masked
    assert "0123456789" in shell.text("credentials", "extract", "--provider", "anthropic", "--reveal")


@row("credentials extract-env")
def _(bench: Bench) -> None:
    shell = Shell(bench.shell.home / "keys", OPENAI_API_KEY="sk-0123456789abcdefghij")
    shown = shell.text("credentials", "extract-env", "--agent", "codex", "--reveal", "--export")
    assert shown == "export OPENAI_API_KEY=sk-0123456789abcdefghij\n"


@row("doctor")
def _(bench: Bench) -> None:
    shown = bench.shell.text("doctor")
    assert "server" in shown
    assert "built-in agent" in shown
    assert {finding["verdict"] for finding in bench.shell.json("doctor", "--json")} <= {"ok", "warn"}
    modern = Shell(bench.shell.home / "modern", SANDBOX_AGENT_MOCK_PROTOCOL="2").text("doctor")
    assert "works, ACP version 2" in modern
    broken = Shell(bench.shell.home / "ill", SANDBOX_AGENT_DATA_DIR="/proc/nowhere").run("doctor")
    assert broken.returncode == 1
    assert "SANDBOX_AGENT_DATA_DIR" in broken.stdout.decode()


@row("fs ls")
def _(bench: Bench) -> None:
    assert re.search(r"^a\.txt +5 B", bench.shell.text("fs", "ls", str(bench.root)), re.MULTILINE)
    assert bench.shell.run("fs", "ls", bench.path("nowhere")).returncode == 5


@row("fs stat")
def _(bench: Bench) -> None:
    assert bench.shell.json("fs", "stat", bench.path("a.txt"), "--json")["size"] == 5
    assert "file" in bench.shell.text("fs", "stat", bench.path("a.txt"))


@row("fs cat")
def _(bench: Bench) -> None:
    assert bench.shell.text("fs", "cat", bench.path("a.txt")) == "hello"


@row("fs put")
def _(bench: Bench) -> None:
    bench.shell.text("fs", "put", "up/b.txt", bench.path("put.txt"))
    bench.shell.text("fs", "put", "-", bench.path("piped.txt"), given="piped")
    assert (bench.root / "put.txt").read_text() == "bee"
    assert (bench.root / "piped.txt").read_text() == "piped"


@row("fs get")
def _(bench: Bench) -> None:
    bench.shell.text("fs", "get", bench.path("a.txt"))
    bench.shell.text("fs", "get", bench.path("a.txt"), "other.txt")
    assert (bench.shell.home / "a.txt").read_text() == (bench.shell.home / "other.txt").read_text() == "hello"


@row("fs rm")
def _(bench: Bench) -> None:
    (bench.root / "old").mkdir()
    assert bench.shell.run("fs", "rm", bench.path("nowhere")).returncode == 5
    bench.shell.text("fs", "rm", "-r", bench.path("old"))
    assert not (bench.root / "old").exists()


@row("fs mv")
def _(bench: Bench) -> None:
    (bench.root / "m1").write_text("1")
    (bench.root / "m2").write_text("2")
    assert bench.shell.run("fs", "mv", bench.path("m1"), bench.path("m2")).returncode == 1
    bench.shell.text("fs", "mv", bench.path("m1"), bench.path("m2"), "--overwrite")
    assert (bench.root / "m2").read_text() == "1"


@row("fs mkdir")
def _(bench: Bench) -> None:
    bench.shell.text("fs", "mkdir", bench.path("new/deep"))
    assert (bench.root / "new" / "deep").is_dir()


@row("fs upload")
def _(bench: Bench) -> None:
    assert "1 files" in bench.shell.text("fs", "upload", "up", bench.path("uploaded"))
    assert (bench.root / "uploaded" / "b.txt").read_text() == "bee"


@row("sessions list")
def _(bench: Bench) -> None:
    shown = bench.shell.text("sessions", "list", "--agent", "mock")
    assert bench.session in shown
    assert "…" not in shown, "what a program reads is not cut"
    assert bench.session in {s["sessionId"] for s in bench.shell.json("sessions", "list", "--json")}


@row("sessions search")
def _(bench: Bench) -> None:
    deadline = time.monotonic() + 30
    while bench.session not in (shown := bench.shell.text("sessions", "search", "tool", "ls")):
        assert time.monotonic() < deadline, shown
    assert re.search(r"^  prompt +[0-9]+  tool ls$", shown, re.MULTILINE)
    found = bench.shell.json("sessions", "search", '"tool ls"', "--json")
    assert bench.session in {each["session"]["sessionId"] for each in found["sessions"]}
    assert "nothing found" in bench.shell.text("sessions", "search", "xylophone")
    assert b"at least one word" in bench.shell.run("sessions", "search", "!").stderr


@row("sessions show")
def _(bench: Bench) -> None:
    assert bench.session in bench.shell.text("sessions", "show", bench.session)
    done = bench.shell.run("sessions", "show", "nothing")
    assert (done.returncode, b"sessions list" in done.stderr) == (5, True)


@row("sessions events")
def _(bench: Bench) -> None:
    events = bench.shell.lines("sessions", "events", bench.session, "--after", "1", "--limit", "2")
    assert [event["sequence"] for event in events] == [2, 3]
    assert bench.shell.lines("sessions", "events", bench.session, "--legacy")


@row("sessions export")
def _(bench: Bench) -> None:
    assert "tool ls" in bench.shell.text("sessions", "export", bench.session)
    bench.shell.text("sessions", "export", bench.session, "--format", "jsonl", "-o", "out.jsonl")
    first = (bench.shell.home / "out.jsonl").read_text().splitlines()[0]
    assert json.loads(first)["sequence"] == 1


@row("sessions terminate")
def _(bench: Bench) -> None:
    lines = bench.shell.lines("run", "--agent", "mock", "hello", "--json")
    session = lines[0]["sessionId"]
    assert bench.shell.text("sessions", "terminate", session) == "terminated\n"
    assert bench.shell.json("sessions", "show", session, "--json")["ended"] is True
    assert bench.shell.run("run", "--agent", "mock", "--resume", session, "more").returncode == 1
