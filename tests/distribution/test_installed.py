"""The packages in clean environments, with nothing of the repository: only `make dist` runs this."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sandbox_agent.version import __version__

pytestmark = [
    pytest.mark.skipif("SANDBOX_AGENT_DIST" not in os.environ, reason="`make dist` runs it: it downloads packages"),
    pytest.mark.timeout(600),
]
SDK = """
import asyncio
from sandbox_agent import SandboxAgent

async def main() -> None:
    async with SandboxAgent.start() as sandbox:
        session = await sandbox.create_session(agent="mock", cwd="/tmp")
        print(await session.prompt("hello").text())

asyncio.run(main())
"""


def _pythons() -> Iterator[str]:
    """Every supported Python that can be found, the newest of each minor version."""
    for minor in ("3.11", "3.12", "3.13", "3.14"):
        homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{minor}.*/bin/python"))
        for command in (*reversed(homes), shutil.which(f"python{minor}")):
            if command and subprocess.run([command, "-c", ""], capture_output=True, timeout=20).returncode == 0:
                yield str(command)
                break


class Clean:
    """A home of its own, and an environment that knows nothing of this checkout."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SANDBOX_AGENT"))}
        path = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if ".venv" not in part)
        self.env = {**kept, "HOME": str(home), "PATH": path, "XDG_DATA_HOME": "", "VIRTUAL_ENV": ""}

    def run(self, *command: str | Path, cwd: Path | None = None, **env: str) -> str:
        done = subprocess.run(
            command, env={**self.env, **env}, cwd=cwd or self.home, capture_output=True, text=True, timeout=500
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def clean(tmp_path: Path) -> Clean:
    return Clean(tmp_path)


@pytest.fixture(scope="session")
def installers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with pipx and uv."""
    place = tmp_path_factory.mktemp("installers")
    clean = Clean(place)
    clean.run(sys.executable, "-m", "venv", place / "venv")
    clean.run(place / "venv/bin/python", "-m", "pip", "install", "--quiet", "pipx", "uv")
    return place / "venv/bin"


def check_command(clean: Clean, command: Path) -> None:
    """Server, inspector and a turn, by the command alone."""
    assert clean.run(command, "--version").split()[-1] == __version__
    assert "hello" in clean.run(command, "run", "--agent", "mock", "hello")
    server = subprocess.Popen(
        [command, "server", "--port", "0"], env=clean.env, cwd=clean.home, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip().removeprefix("listening on ")
        page = httpx.get(f"{url}/ui/").raise_for_status().text
        for asset in re.findall(r'(?:src|href)="\./([^"]+)"', page):
            assert httpx.get(f"{url}/ui/{asset}").raise_for_status().content
        assert "index-" in page
    finally:
        server.terminate()
        server.wait(timeout=15)
        if server.stdout is not None:
            server.stdout.close()


@pytest.mark.parametrize("python", list(_pythons()))
def test_pip_installs_the_wheel(clean: Clean, wheel: Path, python: str) -> None:
    clean.run(python, "-m", "venv", clean.home / "venv")
    inside = clean.home / "venv/bin/python"
    clean.run(inside, "-m", "pip", "install", "--quiet", wheel)
    clean.run(inside, "-m", "pip", "check")
    check_command(clean, clean.home / "venv/bin/sandbox-agent")
    assert "hello" in clean.run(inside, "-W", "error", "-c", SDK)


def test_pip_installs_the_sdist(clean: Clean, sdist: Path) -> None:
    clean.run(sys.executable, "-m", "venv", clean.home / "venv")
    clean.run(clean.home / "venv/bin/python", "-m", "pip", "install", "--quiet", sdist)
    check_command(clean, clean.home / "venv/bin/sandbox-agent")


def test_pipx_installs_the_wheel(clean: Clean, wheel: Path, installers: Path) -> None:
    clean.run(installers / "pipx", "install", "--python", sys.executable, wheel)
    check_command(clean, clean.home / ".local/bin/sandbox-agent")


def test_uv_installs_the_wheel(clean: Clean, wheel: Path, installers: Path) -> None:
    clean.run(installers / "uv", "tool", "install", "--quiet", "--python", sys.executable, wheel)
    check_command(clean, clean.home / ".local/bin/sandbox-agent")


def test_make_install_works_without_the_checkout(clean: Clean, sdist: Path) -> None:
    shutil.unpack_archive(sdist, clean.home / "checkout", filter="data")
    (checkout,) = (clean.home / "checkout").iterdir()
    prefix = clean.home / "prefix"
    said = clean.run("make", "install", f"PREFIX={prefix}", f"PYTHON={sys.executable}", cwd=checkout)
    assert f"add {prefix}/bin to your PATH" in said
    shutil.rmtree(clean.home / "checkout")
    check_command(clean, prefix / "bin/sandbox-agent")
