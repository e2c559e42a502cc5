"""A PostgreSQL of the tests' own: on a free port, in a directory of its own, ended with them."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

USER, PASSWORD = "tester", "s3cret"
_numbers = count(1)


def find_programs() -> Path | None:
    """The directory with initdb and pg_ctl, which distributions keep out of PATH."""
    on_path = shutil.which("pg_ctl")
    if on_path is not None:
        return Path(on_path).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def require_programs() -> Path:
    """Skip the test where there is no PostgreSQL; fail where nothing may be skipped."""
    found = find_programs()
    if found is None:
        why = "PostgreSQL is not installed (Debian: postgresql)"
        if os.environ.get("REQUIRE_ALL"):
            pytest.fail(why)
        pytest.skip(why)
    return found


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    server = PostgresServer(require_programs())
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.remove()


class PostgresServer:
    def __init__(self, programs: Path, *, fsync: bool = False) -> None:
        self._programs = programs
        self._user = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
        self.directory = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self._data = self.directory / "data"
        self._fsync = fsync
        self.port = _free_port()
        if self._user is not None:
            shutil.chown(self.directory, self._user)

    def make(self) -> None:
        word = self.directory / "word"
        word.write_text(PASSWORD)
        word.chmod(0o644)
        auth = ["--auth", "scram-sha-256", "--pwfile", str(word)]
        self._run("initdb", "-D", str(self._data), "-U", USER, "-E", "UTF8", "--locale", "C.UTF-8", *auth)

    def start(self, *options: str) -> None:
        settings = [f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self.directory}"]
        settings += ["max_connections=60", f"fsync={'on' if self._fsync else 'off'}", *options]
        words = " ".join(f"-c {setting}" for setting in settings)
        log = self.directory / "log"
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "60", "-l", str(log), "-o", words, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "60", "-m", "immediate", "stop", is_checked=False)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str, *, user: str = USER, password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"history{next(_numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """What psql prints."""
        env = {**os.environ, "PGPASSWORD": PASSWORD}
        command = [str(self._programs / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]
        command += ["-p", str(self.port), "-U", USER, "-d", database, "-c", statement]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def _run(self, program: str, *arguments: str, is_checked: bool = True) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=is_checked,
            user=self._user,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
        )


def _free_port() -> int:
    """One that the system gives to nobody else meanwhile: also while the database is stopped."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
