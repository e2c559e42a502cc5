from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox_agent.files import FileService
from support.limits import file_limits


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the root, with a secret in it."""
    path = tmp_path / "outside"
    path.mkdir()
    (path / "secret").write_bytes(b"SECRET")
    return path


@pytest.fixture
async def confined(root: Path) -> AsyncIterator[FileService]:
    service = FileService([root], root, file_limits(), data_dir=None)
    yield service
    await service.close()


@pytest.fixture
async def free(root: Path) -> AsyncIterator[FileService]:
    """A service without roots."""
    service = FileService([], root, file_limits(), data_dir=None)
    yield service
    await service.close()
