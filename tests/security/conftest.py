from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.served import TOKEN, served
from support.server import Server


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root").resolve()


@pytest.fixture(scope="module")
def open_server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Without a token, on loopback: what runs on a developer's machine."""
    with served(tmp_path_factory.mktemp("open"), "--fs-root", str(root)) as running:
        yield running


@pytest.fixture(scope="module")
def locked_server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("locked"), "--token", TOKEN, "--fs-root", str(root)) as running:
        yield running
