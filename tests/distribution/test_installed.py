"""The packages in clean environments, with nothing of the repository: only `make dist` runs this."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sandbox_agent.version import __version__
from support.browser import Browser, Inspector

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
    """A home of its own, and an environment that knows nothing of this checkout. Only downloads are shared."""

    def __init__(self, home: Path, downloads: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SANDBOX_AGENT"))}
        path = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if ".venv" not in part)
        strange = {"HOME": str(home), "PATH": path, "XDG_DATA_HOME": "", "VIRTUAL_ENV": ""}
        self.env = {**kept, **strange, "PIP_CACHE_DIR": str(downloads), "UV_CACHE_DIR": str(downloads / "uv")}

    def run(self, *command: str | Path, cwd: Path | None = None, **env: str) -> str:
        done = subprocess.run(
            command, env={**self.env, **env}, cwd=cwd or self.home, capture_output=True, text=True, timeout=500
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture
def clean(tmp_path: Path, downloads: Path) -> Clean:
    return Clean(tmp_path, downloads)


@pytest.fixture(scope="session")
def installers(tmp_path_factory: pytest.TempPathFactory, downloads: Path) -> Path:
    """A directory with pipx and uv."""
    place = tmp_path_factory.mktemp("installers")
    clean = Clean(place, downloads)
    clean.run(sys.executable, "-m", "venv", place / "venv")
    clean.run(place / "venv/bin/python", "-m", "pip", "install", "--quiet", "pipx", "uv")
    return place / "venv/bin"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("artifacts"))
    yield opened
    opened.close()


@contextmanager
def serving(clean: Clean, command: Path) -> Iterator[str]:
    """The address of a server that runs for as long as the block lasts."""
    arguments = [str(command), "server", "--port", "0"]
    server = subprocess.Popen(arguments, env=clean.env, cwd=clean.home, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    with server, server.stdout:
        try:
            yield server.stdout.readline().strip().removeprefix("listening on ")
        finally:
            server.terminate()
            server.wait(timeout=15)


async def check(clean: Clean, command: Path, python: Path, browser: Browser) -> None:
    """The command, a server with its documentation and its inspector, and the SDK, as they were installed."""
    assert clean.run(command, "--version").split()[-1] == __version__
    assert "hello" in clean.run(command, "run", "--agent", "mock", "hello")
    assert "hello" in clean.run(python, "-W", "error", "-c", SDK)
    with serving(clean, command) as url:
        assert "Quickstart" in httpx.get(f"{url}/docs/quickstart.html").raise_for_status().text
        inspector = Inspector(browser, url)
        await inspector.open()
        await inspector.start_session()
        await inspector.say("hello from a browser")
        await inspector.until_answer("hello from a browser")


ON_EACH_PYTHON = pytest.mark.parametrize("python", list(_pythons()), ids=lambda path: Path(path).parents[1].name)


@ON_EACH_PYTHON
async def test_pip_installs_the_wheel(clean: Clean, wheel: Path, python: str, browser: Browser) -> None:
    clean.run(python, "-m", "venv", clean.home / "venv")
    inside = clean.home / "venv/bin/python"
    clean.run(inside, "-m", "pip", "install", "--quiet", wheel)
    clean.run(inside, "-m", "pip", "check")
    await check(clean, clean.home / "venv/bin/sandbox-agent", inside, browser)


@ON_EACH_PYTHON
async def test_pipx_installs_the_wheel(
    clean: Clean, wheel: Path, python: str, installers: Path, browser: Browser
) -> None:
    clean.run(installers / "pipx", "install", "--python", python, wheel)
    place = clean.run(installers / "pipx", "environment", "--value", "PIPX_LOCAL_VENVS").strip()
    inside = Path(place) / "sandbox-agent-server/bin/python"
    await check(clean, clean.home / ".local/bin/sandbox-agent", inside, browser)


@ON_EACH_PYTHON
async def test_uv_installs_the_wheel(
    clean: Clean, wheel: Path, python: str, installers: Path, browser: Browser
) -> None:
    clean.run(installers / "uv", "tool", "install", "--quiet", "--python", python, wheel)
    inside = Path(clean.run(installers / "uv", "tool", "dir").strip()) / "sandbox-agent-server/bin/python"
    await check(clean, clean.home / ".local/bin/sandbox-agent", inside, browser)


async def test_pip_installs_the_sdist(clean: Clean, sdist: Path, browser: Browser) -> None:
    clean.run(sys.executable, "-m", "venv", clean.home / "venv")
    inside = clean.home / "venv/bin/python"
    clean.run(inside, "-m", "pip", "install", "--quiet", sdist)
    await check(clean, clean.home / "venv/bin/sandbox-agent", inside, browser)


def test_make_demo_works_in_a_new_checkout(clean: Clean, sdist: Path) -> None:
    shutil.unpack_archive(sdist, clean.home / "checkout", filter="data")
    (checkout,) = (clean.home / "checkout").iterdir()
    for _ in range(2):
        said = clean.run("make", "demo", f"PYTHON={sys.executable}", cwd=checkout)
        assert "stopped  end_turn" in said
        assert "start your own with: .venv/bin/sandbox-agent server" in " ".join(said.split())


async def test_make_install_works_without_the_checkout(clean: Clean, sdist: Path, browser: Browser) -> None:
    shutil.unpack_archive(sdist, clean.home / "checkout", filter="data")
    (checkout,) = (clean.home / "checkout").iterdir()
    prefix = clean.home / "prefix"
    said = clean.run("make", "install", f"PREFIX={prefix}", f"PYTHON={sys.executable}", cwd=checkout)
    assert f"add {prefix}/bin to your PATH" in said
    shutil.rmtree(clean.home / "checkout")
    await check(clean, prefix / "bin/sandbox-agent", prefix / "lib/sandbox-agent/bin/python", browser)
