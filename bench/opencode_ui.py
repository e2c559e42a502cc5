"""`python -m bench.opencode_ui PROGRAM`: how soon OpenCode's terminal UI shows a long session, with either server.

The session is made here, with the built-in agent, and imported into OpenCode's own server: both show the same messages.
Each is opened in tmux in turn, several times; times are from the start of the UI to the newest message on the screen,
so that only their ratio within one run means anything. Our server's memory is measured before and after.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

_TURN = 100
_PAGE = 200
_LAST = "the very last words"
_PATIENCE = 240.0
_SWITCHES = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.opencode_ui", description=__doc__)
    parser.add_argument("program", type=Path, help="the program `opencode`")
    parser.add_argument("--updates", type=int, default=20_000, help="updates in the session")
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _compare(wanted.program.resolve(), Path(folder), wanted.updates, wanted.rounds)


def _compare(program: Path, root: Path, updates: int, rounds: int) -> None:
    work, home = root / "work", root / "home"
    work.mkdir()
    (home / "ours").mkdir(parents=True)
    ours = [sys.executable, "-m", "sandbox_agent", "server", "--port", "0", "--no-token"]
    with _serving(ours, home / "ours", work) as (address, pid):
        bridge = f"{address}/opencode"
        before = _memory(pid)
        session = _fill(bridge, work, updates)
        exported = root / "session.json"
        exported.write_text(json.dumps(_export(bridge, session)))
        subprocess.run(
            [str(program), "import", str(exported)], env=_environment(home), cwd=work, check=True, capture_output=True
        )
        theirs = [str(program), "serve", "--port", "0", "--hostname", "127.0.0.1"]
        with _serving(theirs, home, work) as (original, _):
            filled = _memory(pid)
            took: dict[str, list[float]] = {bridge: [], original: []}
            for _ in range(rounds + 1):
                for url, times in took.items():
                    times.append(_opened([str(program), "attach", url, "--session", session], home, work))
                    print(f"{url} {times[-1]:.2f} s", flush=True)
            print(f"{updates:,} updates, newest message on the screen, median of {rounds} after one to warm up:")
            mine, other = (statistics.median(times[1:]) for times in took.values())
            print(f"ours {mine:.2f} s, OpenCode's own {other:.2f} s, ratio {mine / other:.2f} ({mine - other:+.2f} s)")
            print(f"our server's memory: {before} MiB at rest, {filled} filled, {_memory(pid)} after all openings")


def _fill(bridge: str, work: Path, updates: int) -> str:
    """A session of so many updates in turns of a hundred, and one more turn with words to look for."""
    model = {"providerID": "mock", "id": "default"}
    made = _call(bridge, "POST", f"/session?directory={quote(str(work))}", {"title": "Long", "model": model})
    session = str(made["id"])
    for words in [*[f"chunks {_TURN} 25"] * (updates // _TURN), _LAST]:
        _call(bridge, "POST", f"/session/{session}/message", {"parts": [{"type": "text", "text": words}]})
    return session


def _export(bridge: str, session: str) -> dict[str, Any]:
    """As `opencode export` writes it."""
    messages: list[Any] = []
    more = ""
    while True:
        page = _call(bridge, "GET", f"/session/{session}/message?limit={_PAGE}{more}")
        messages = page + messages
        if len(page) < _PAGE:
            return {"info": _call(bridge, "GET", f"/session/{session}"), "messages": messages}
        more = f"&before={page[0]['info']['id']}"


def _opened(command: list[str], home: Path, work: Path) -> float:
    """Seconds until the last words are on the screen, twice: as they were said, and as they were answered."""
    tmux = ["tmux", "-L", f"bench-{uuid4().hex[:12]}", "-f", os.devnull]
    env = {**_environment(home), "TERM": "xterm-256color"}
    began = time.monotonic()
    subprocess.run(
        [*tmux, "new-session", "-d", "-x", "120", "-y", "45", "-c", str(work), shlex.join(command)], env=env, check=True
    )
    try:
        while time.monotonic() < began + _PATIENCE:
            shown = subprocess.run([*tmux, "capture-pane", "-p"], env=env, capture_output=True, text=True, check=True)
            if shown.stdout.count(_LAST) >= 2:
                return time.monotonic() - began
            time.sleep(0.05)
        raise TimeoutError(f"the session was not shown:\n{shown.stdout}")
    finally:
        subprocess.run([*tmux, "kill-server"], env=env, check=False, capture_output=True)


@contextmanager
def _serving(command: list[str], home: Path, work: Path) -> Iterator[tuple[str, int]]:
    log = home / "server.log"
    with log.open("wb") as output:
        env = {**_environment(home), "SANDBOX_AGENT_DATA_DIR": str(home / "data")}
        process = subprocess.Popen(command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        end = time.monotonic() + _PATIENCE
        while (found := re.search(r"listening on (http://\S+)", log.read_text(errors="replace"))) is None:
            if process.poll() is not None or time.monotonic() > end:
                raise ChildProcessError(log.read_text(errors="replace"))
            time.sleep(0.1)
        yield found[1], process.pid
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _call(bridge: str, method: str, path: str, body: Any = None) -> Any:
    address = urlsplit(bridge)
    connection = http.client.HTTPConnection(address.netloc, timeout=_PATIENCE)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, address.path + path, sent, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise ValueError(f"{method} {path} answered {answer.status}: {content[:500]!r}")
        return json.loads(content)
    finally:
        connection.close()


def _environment(home: Path) -> dict[str, str]:
    switched_off = {f"OPENCODE_DISABLE_{switch}": "1" for switch in _SWITCHES}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **switched_off}


def _memory(pid: int) -> int:
    """MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
