"""Vendors of sandboxes as their SDKs look from outside, with real servers of this machine as their sandboxes.

Each call is noted under the name that it has in the vendor's SDK, so that it can be held against the real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from support.command import COMMAND


class Vendor:
    """`calls` are (name, args, kwargs). `rented` sandboxes still cost something, and so do `alive` servers."""

    def __init__(self, home: Path, *, installs: str | None = None) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.alive: dict[int, subprocess.Popen[str]] = {}
        self.rented: set[int] = set()
        self.fails_at: str | None = None
        self._bin = home / "bin"
        self._bin.mkdir(parents=True)
        program = self._bin / "sandbox-agent"
        program.write_text(
            f'#!/bin/sh\n[ "$*" = "server --host 0.0.0.0 --port 2468" ] || exit 9\nexec {COMMAND} server --port 0\n'
        )
        program.chmod(0o755)
        if installs is not None:  # a program that has nothing to install
            (self._bin / installs).symlink_to("/bin/true")
        self._env = {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "HOME": str(home),
            "SANDBOX_AGENT_DATA_DIR": str(home / "data"),
            "SANDBOX_AGENT_MOCK_STATE": str(home / "mock-state"),
        }

    def note(self, name: str, *args: Any, **kwargs: Any) -> None:
        self.calls.append((name, args, kwargs))
        if name == self.fails_at:
            raise RuntimeError(f"{name} failed")

    def run(self, shell_command: str, env: dict[str, str]) -> int:
        process = subprocess.Popen(
            ["sh", "-c", shell_command],
            env={**self._env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.alive[process.pid] = process
        return process.pid

    def address(self, pid: int) -> str:
        stdout = self.alive[pid].stdout
        assert stdout is not None
        return stdout.readline().strip().removeprefix("listening on ")

    def end(self, pid: int) -> None:
        process = self.alive.pop(pid)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=15)
        if process.stdout is not None:
            process.stdout.close()

    def give_back(self, sandbox: int, pid: int) -> None:
        self.rented.remove(sandbox)
        if pid:
            self.end(pid)

    def close(self) -> None:
        for pid in list(self.alive):
            self.end(pid)


class _Both:
    """A function of Modal's: plain, and `.aio` for asyncio."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work

    async def aio(self, *args: Any, **kwargs: Any) -> Any:
        return self._work(*args, **kwargs)


def e2b(vendor: Vendor) -> dict[str, ModuleType]:
    class Commands:
        pid = 0

        async def run(self, *args: Any, **kwargs: Any) -> None:
            vendor.note("e2b.sandbox_async.commands.command:Commands.run", self, *args, **kwargs)
            self.pid = vendor.run(args[0], kwargs["envs"])

    class Sandbox:
        def __init__(self) -> None:
            self.commands = Commands()
            vendor.rented.add(id(self))

        def get_host(self, *args: Any) -> str:
            vendor.note("e2b:AsyncSandbox.get_host", self, *args)
            return vendor.address(self.commands.pid).removeprefix("http://")

        async def kill(self) -> None:
            vendor.note("e2b:AsyncSandbox.kill", self)
            vendor.give_back(id(self), self.commands.pid)

        @staticmethod
        async def create(**kwargs: Any) -> Sandbox:
            vendor.note("e2b:AsyncSandbox.create", **kwargs)
            return Sandbox()

    return _modules(e2b=SimpleNamespace(AsyncSandbox=Sandbox))


class _DaytonaProcess:
    def __init__(self, vendor: Vendor, env: dict[str, str]) -> None:
        self.vendor, self.env, self.pid = vendor, env, 0

    async def create_session(self, *args: Any) -> None:
        self.vendor.note("daytona._async.process:AsyncProcess.create_session", self, *args)

    async def execute_session_command(self, *args: Any) -> None:
        self.vendor.note("daytona._async.process:AsyncProcess.execute_session_command", self, *args)
        assert args[1].run_async
        self.pid = self.vendor.run(args[1].command, self.env)


class _DaytonaSandbox:
    def __init__(self, vendor: Vendor, env: dict[str, str]) -> None:
        self.vendor, self.process = vendor, _DaytonaProcess(vendor, env)
        vendor.rented.add(id(self))

    async def get_preview_link(self, *args: Any) -> SimpleNamespace:
        self.vendor.note("daytona:AsyncSandbox.get_preview_link", self, *args)
        return SimpleNamespace(url=self.vendor.address(self.process.pid), token="preview")

    async def delete(self) -> None:
        self.vendor.note("daytona:AsyncSandbox.delete", self)
        self.vendor.give_back(id(self), self.process.pid)


def daytona(vendor: Vendor) -> dict[str, ModuleType]:
    class Client:
        def __init__(self) -> None:
            vendor.note("daytona:AsyncDaytona")

        async def create(self, wanted: Any) -> _DaytonaSandbox:
            vendor.note("daytona:AsyncDaytona.create", self, wanted)
            assert wanted.public
            return _DaytonaSandbox(vendor, wanted.env_vars)

        async def close(self) -> None:
            vendor.note("daytona:AsyncDaytona.close", self)

    def made(name: str) -> Callable[..., SimpleNamespace]:
        def make(**kwargs: Any) -> SimpleNamespace:
            vendor.note(f"daytona:{name}", **kwargs)
            return SimpleNamespace(**kwargs)

        return make

    names = ("CreateSandboxFromImageParams", "CreateSandboxFromSnapshotParams", "SessionExecuteRequest")
    return _modules(daytona=SimpleNamespace(AsyncDaytona=Client, **{name: made(name) for name in names}))


def modal(vendor: Vendor) -> dict[str, ModuleType]:
    def noting(name: str, gives: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            vendor.note(f"modal:{name}", *args, **kwargs)
            return gives(*args, **kwargs)

        return call

    class Sandbox:
        def __init__(self, *words: str, **kwargs: Any) -> None:
            assert words[:2] == ("sh", "-c")
            self.pid = vendor.run(words[2], kwargs["secrets"][0])
            self.tunnels = _Both(self._tunnels)
            self.terminate = _Both(self._terminate)

        def _tunnels(self) -> dict[int, SimpleNamespace]:
            vendor.note("modal:Sandbox.tunnels", self)
            return {2468: SimpleNamespace(url=vendor.address(self.pid))}

        def _terminate(self) -> None:
            vendor.note("modal:Sandbox.terminate", self)
            vendor.end(self.pid)

    sdk = SimpleNamespace(
        App=SimpleNamespace(lookup=_Both(noting("App.lookup", lambda name, **_: name))),
        Image=SimpleNamespace(from_registry=noting("Image.from_registry", lambda tag: tag)),
        Secret=SimpleNamespace(from_dict=noting("Secret.from_dict", lambda variables: variables)),
        Sandbox=SimpleNamespace(create=_Both(noting("Sandbox.create", Sandbox))),
    )
    return _modules(modal=sdk)


def vercel(vendor: Vendor) -> dict[str, ModuleType]:
    class Sandbox:
        def __init__(self, env: dict[str, str]) -> None:
            self.env, self.pid = env, 0
            vendor.rented.add(id(self))

        async def create_process(self, *args: Any) -> None:
            vendor.note("vercel.sandbox:Sandbox.create_process", self, *args)
            self.pid = vendor.run(args[1][1], self.env)

        @property
        def routes(self) -> tuple[SimpleNamespace, ...]:
            return (SimpleNamespace(port=2468, url=vendor.address(self.pid)),)

        async def destroy(self) -> None:
            vendor.note("vercel.sandbox:Sandbox.destroy", self)
            vendor.give_back(id(self), self.pid)

    async def create_sandbox(**kwargs: Any) -> Sandbox:
        vendor.note("vercel.sandbox:create_sandbox", **kwargs)
        return Sandbox(kwargs["env"])

    sdk = SimpleNamespace(create_sandbox=create_sandbox)
    return _modules(**{"vercel": SimpleNamespace(), "vercel.sandbox": sdk})


def _modules(**contents: SimpleNamespace) -> dict[str, ModuleType]:
    modules = {}
    for name, content in contents.items():
        modules[name] = ModuleType(name)
        vars(modules[name]).update(vars(content))
    return modules


@contextmanager
def fly_api(vendor: Vendor) -> Iterator[str]:
    """Fly's Machines API on a free port, as far as it is used."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                vendor.note("POST", self.path, self.headers["Authorization"], body)
            except RuntimeError as error:
                return self._answer(422, {"error": str(error)})
            config = body["config"]
            return self._answer(
                200, {"id": str(vendor.run(config["init"]["exec"][2], config["env"])), "state": "created"}
            )

        def do_DELETE(self) -> None:
            vendor.note("DELETE", self.path, self.headers["Authorization"])
            vendor.end(int(self.path.rpartition("/")[2].partition("?")[0]))
            self._answer(200, {"ok": True})

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            self.send_response(status)
            raw = json.dumps(body).encode()
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def fake_docker(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` first on the PATH, besides what is in a vendor's sandboxes."""
    program = home / "docker"
    program.write_text(DOCKER)
    program.chmod(0o755)
    monkeypatch.setenv("FAKE_DOCKER_STATE", str(home))
    monkeypatch.setenv("PATH", f"{home}:{home / 'vendor' / 'bin'}:{os.environ['PATH']}")
    return program


DOCKER = f"""#!{sys.executable}
import json, os, signal, subprocess, sys, time
state = os.environ["FAKE_DOCKER_STATE"]
words = sys.argv[1:]
with open(state + "/calls", "a") as calls:
    calls.write(json.dumps(words) + "\\n")
if words[0] == os.environ.get("FAKE_DOCKER_FAILS"):
    sys.exit("no such image")
if words[0] == "run":
    named = [words[at + 1] for at, word in enumerate(words) if word == "--env"]
    inside = {{name: os.environ[name] for name in named}}
    kept = ("HOME", "PATH", "SANDBOX_AGENT_DATA_DIR", "SANDBOX_AGENT_MOCK_STATE")
    inside |= {{name: os.environ[name] for name in kept}}
    out = open(state + "/out", "w")
    child = subprocess.Popen(words[-3:], env=inside, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True)
    print(child.pid)
elif words[0] == "port":
    until = time.monotonic() + 20
    while time.monotonic() < until and not (said := open(state + "/out").read()).endswith("\\n"):
        time.sleep(0.02)
    print(said.strip().removeprefix("listening on http://"))
elif words[0] == "rm":
    os.killpg(int(words[-1]), signal.SIGTERM)
    until = time.monotonic() + 15
    while time.monotonic() < until and os.path.exists("/proc/" + words[-1] + "/exe"):
        try:
            os.readlink("/proc/" + words[-1] + "/exe")
        except OSError:
            break
        time.sleep(0.02)
"""
"""A `docker` that runs the command of its container on this machine. It is no container: only the words are tried."""
