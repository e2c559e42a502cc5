"""Start-up stays quick: what is slow to import is imported when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("acp", "httpx", "pydantic", "rich", "uvicorn", "asyncio")
UNUSED = (
    *("configparser", "csv", "difflib", "gzip", "html", "http.client", "logging.config", "logging.handlers"),
    *("multiprocessing", "pickle", "socketserver", "statistics", "tarfile", "unittest", "urllib.request", "xml"),
    "zipfile",
)
"""Of the standard library: what a start does not need, and takes long."""
FEW_DATACLASSES = 7
SERVER = """
from sandbox_agent.cli.main import cli
from sandbox_agent.errors import ConfigError
try:
    cli(["server", "--host", "256.0.0.1"], standalone_mode=False)
except ConfigError:
    pass
assert "sandbox_agent.hub.hub" in sys.modules
"""
"""A start as the command does it, as far as the address on which it cannot listen."""


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import sandbox_agent", SLOW),
        ("from sandbox_agent.cli.main import cli; cli(['--help'], standalone_mode=False)", SLOW),
        ("from sandbox_agent import SandboxAgent", ("acp", "httpx", "pydantic", "rich", "tarfile", "uvicorn")),
        ("from sandbox_agent import lazy_httpx; lazy_httpx.AsyncClient", ("click", "pygments", "rich")),
        ("import sandbox_agent.settings", ("sandbox_agent.agents.catalog", "sandbox_agent.process")),
        ("import sandbox_agent.serve", (*UNUSED, "acp", "httpx", "pydantic", "rich", "websockets")),
        (SERVER, (*UNUSED, "typing_extensions", "uvicorn.main", "sandbox_agent.http.api.openapi")),
        ("import sandbox_agent.mock_agent.__main__", (*UNUSED, "acp", "httpx", "pydantic", "sandbox_agent.core")),
        ("from sandbox_agent.cli.main import cli; cli(['run', '--help'], standalone_mode=False)", ("acp", "pydantic")),
    ],
)
def test_slow_modules_are_not_imported_by(program: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys\n{program}\nfound = [m for m in {heavy!r} if m in sys.modules]\nassert not found, found"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


def test_the_server_makes_few_dataclasses_at_its_start() -> None:
    """Each is written as source text and compiled when its module is imported: half a millisecond. Structs are not."""
    code = """
import sys, sandbox_agent.serve
made = {
    value
    for name, module in list(sys.modules.items()) if name.startswith("sandbox_agent.")
    for value in vars(module).values()
    if isinstance(value, type) and value.__module__ == name and "__dataclass_params__" in vars(value)
}
print(len(made))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert int(done.stdout) <= FEW_DATACLASSES


def test_what_a_start_leaves_out_is_there_for_whoever_asks_for_it_later() -> None:
    code = """
import sys, sandbox_agent.serve
left_out = [name for name in ("uvicorn.main", "logging.config", "configparser") if name not in sys.modules]
import configparser, logging.config, uvicorn, uvicorn.main, uvicorn.server
assert len(left_out) == 3, left_out
assert callable(uvicorn.main.run) and callable(logging.config.dictConfig) and configparser.RawConfigParser()
assert uvicorn.Server is uvicorn.server.Server is uvicorn.main.Server
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
