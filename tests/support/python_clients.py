"""Clients from PyPI for tests: installed once from a committed lock into `.cache`, beside no environment of ours."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path

import pytest

from support.node import CLIENTS, ROOT, require_tool

CACHE = ROOT / ".cache" / "python-clients"
_TRIES = 4


def python_of(*versions: str) -> str:
    """A Python of one of these versions: the one that runs us, one on the PATH, or one of pyenv's.

    Skips the test without it, or fails it where everything is demanded."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    kept = Path.home() / ".pyenv" / "versions"
    for version in versions:
        named = [sys.executable] if version == ours else []
        found = shutil.which(f"python{version}")
        for path in chain(named, [found] if found else [], map(str, kept.glob(f"{version}.*/bin/python"))):
            if _runs(path, version):  # a shim may have nothing behind it
                return path
    return require_tool(f"python{versions[0]}")


def installed_python(folder: str, python: str = sys.executable) -> Path:
    """A directory for PYTHONPATH with the packages that `tests/clients/FOLDER/requirements.lock` names."""
    lock_file = CLIENTS / folder / "requirements.lock"
    target = CACHE / folder
    target.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = hashlib.sha256(lock_file.read_bytes() + python.encode()).hexdigest()
        stamp = target / ".installed"
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(target)
            target.mkdir()
            _install(python, lock_file, target)
            stamp.write_text(wanted)
    return target


def _runs(python: str, version: str) -> bool:
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30)
    return said.returncode == 0 and said.stdout.strip() == version


def _install(python: str, lock_file: Path, target: Path) -> None:
    command = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--target", str(target), "-r", str(lock_file)]
    for attempt in range(_TRIES):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode == 0:
            return
        time.sleep(attempt)
    pytest.fail(f"pip failed {_TRIES} times for {lock_file}:\n{done.stderr[-3000:]}")
