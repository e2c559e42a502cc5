"""The programs of docs/cookbook-web.md, with what they need installed, in Node and in a browser."""

from __future__ import annotations

import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from sandbox_agent import SandboxAgent
from support.browser import Browser
from support.command import Shell, serving
from support.dist import ROOT
from support.samples import samples

needs_registry = pytest.mark.skipif("SANDBOX_AGENT_DIST" not in os.environ, reason="`make dist` runs it: it downloads")
needs_npm = pytest.mark.skipif(shutil.which("npm") is None and os.environ.get("REQUIRE_ALL") != "1", reason="needs npm")
pytestmark = [needs_registry, pytest.mark.timeout(400)]
PINNED = ("react@19.3.1", "react-dom@19.3.1", "@types/react@19.3.0", "@types/react-dom@19.3.0")
FASTAPI = ("fastapi==0.162.7", "mypy")


def _sample(language: str) -> str:
    (found,) = (one.text for one in samples(language) if one.page == "cookbook-web")
    return found


def _run(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("artifacts"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project with the packed SDK, React, TypeScript and vite."""
    place = tmp_path_factory.mktemp("project")
    (tarball,) = (ROOT / os.environ["SANDBOX_AGENT_DIST"]).glob("*.tgz")
    (place / "package.json").write_text('{"name": "new", "private": true, "type": "module"}')
    development = json.loads((ROOT / "sdks/typescript/package.json").read_text())["devDependencies"]
    tools = [f"{name}@{development[name]}" for name in ("typescript", "vite", "@types/node")]
    _run("npm", "install", "--loglevel=error", "--no-audit", "--no-fund", str(tarball), *tools, *PINNED, cwd=place)
    return place


async def test_the_fastapi_app_streams_to_a_browser(wheel: Path, tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "app.py").write_text(_sample("python"))
    _run(sys.executable, "-m", "venv", "venv", cwd=tmp_path)
    _run("venv/bin/python", "-m", "pip", "install", "--quiet", wheel, *FASTAPI, cwd=tmp_path)
    _run("venv/bin/mypy", "--strict", "--config-file=", "app.py", cwd=tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [str(tmp_path / "venv/bin/python"), "-m", "uvicorn", "app:app", "--port", str(port)]
    with (tmp_path / "log").open("wb") as log:
        app = subprocess.Popen(command, cwd=tmp_path, env=Shell(tmp_path / "home").env, stderr=log, stdout=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/", app)
        await browser.open(f"http://127.0.0.1:{port}/")
        await browser.fill("input", "hello from a browser")
        await browser.click("button")
        await browser.until("document.title === 'done'")
        assert await browser.eval("document.querySelector('pre').textContent") == "hello from a browser"
    finally:
        app.terminate()
        app.wait(timeout=20)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            httpx.get(url, trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"nothing answers at {url}; exit code {process.poll()}")


@needs_npm
async def test_the_agent_in_typescript_is_short_strict_and_answers(project: Path, tmp_path: Path) -> None:
    text = _sample("ts")
    assert len(text.splitlines()) <= 40
    (project / "words.ts").write_text(text)
    options = {"strict": True, "target": "ES2022", "module": "NodeNext", "types": ["node"], "outDir": "out"}
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": ["words.ts"]}))
    _run("npx", "tsc", "-p", ".", cwd=project)
    config = tmp_path / "words.toml"
    config.write_text(f'[agents.words]\ncommand = ["node", "{project}/out/words.js"]\n')
    async with SandboxAgent.start(config=config, data_dir=tmp_path / "data", env={"HOME": str(tmp_path)}) as sandbox:
        session = await sandbox.create_session(agent="words", cwd="/tmp")
        assert await session.prompt("how many words are these").text() == "5 words"
        other = await sandbox.create_session(agent="words", cwd="/tmp")
        assert other.id != session.id


@needs_npm
async def test_the_chat_in_react_streams_and_asks(project: Path, tmp_path: Path, browser: Browser) -> None:
    (project / "chat.tsx").write_text(_sample("tsx"))
    (project / "index.html").write_text('<div id="root"></div><script type="module" src="/chat.tsx"></script>')
    options = {
        "strict": True,
        "noEmit": True,
        "target": "ES2022",
        "module": "ESNext",
        "moduleResolution": "Bundler",
        "jsx": "react-jsx",
        "lib": ["ES2022", "DOM", "DOM.AsyncIterable"],
        "types": [],
    }
    (project / "tsconfig.chat.json").write_text(json.dumps({"compilerOptions": options, "include": ["chat.tsx"]}))
    _run("npx", "tsc", "-p", "tsconfig.chat.json", cwd=project)
    _run("npx", "vite", "build", "--target", "es2022", "--logLevel", "warn", cwd=project)
    with _static(project / "dist") as page, serving(tmp_path, "--cors-allow-origin", page) as served:
        await browser.open(f"{page}/?server={served.env['SANDBOX_AGENT_ENDPOINT']}")
        await browser.until("!document.querySelector('input').disabled")
        await browser.fill("input", "hello from react")
        await browser.click("form button")
        await browser.until_text("agent: hello from react")
        await browser.fill("input", "tool make")
        await browser.click("form button")
        await browser.until_text("May the agent do this?")
        await browser.click("p button")
        await browser.until("!document.body.innerText.includes('May the agent')")


@contextmanager
def _static(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
