from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.served import client, served
from support.server import Server


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only directory that the server's file operations may touch."""
    return tmp_path_factory.mktemp("root").resolve()


@pytest.fixture(scope="module")
def shared_server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("home"), "--fs-root", str(root)) as running:
        yield running


@pytest.fixture
def http(shared_server: Server) -> Iterator[httpx.Client]:
    with client(shared_server) as opened:
        yield opened
