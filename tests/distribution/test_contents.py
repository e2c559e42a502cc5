"""What is in the packages, looked at without installing them."""

from __future__ import annotations

import re
import subprocess
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

from sandbox_agent.version import __version__
from support.dist import ROOT, build

NAME = "sandbox-agent-server"


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _info(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (found,) = (path for path in archive.namelist() if path.endswith(f".dist-info/{name}"))
        return archive.read(found).decode()


def test_the_distribution_has_a_name_of_its_own_while_command_and_import_stay(wheel: Path) -> None:
    metadata = Parser().parsestr(_info(wheel, "METADATA"))
    assert (metadata["Name"], metadata["Version"]) == (NAME, __version__)
    assert "sandbox-agent = sandbox_agent.cli:main" in _info(wheel, "entry_points.txt")
    assert {PurePosixPath(name).parts[0] for name in _names(wheel)} - {"sandbox_agent"} == {
        f"sandbox_agent_server-{__version__}.dist-info"
    }


def test_the_wheel_has_what_is_not_python_too(wheel: Path) -> None:
    wanted = {"py.typed", "agents/agents.toml", "http/ui_assets/index.html", "http/ui_assets/third-party-licenses.txt"}
    assert {f"sandbox_agent/{name}" for name in wanted} <= _names(wheel)
    assert any(name.endswith("/licenses/LICENSE") for name in _names(wheel))


def test_metadata_says_who_it_is_for(wheel: Path) -> None:
    metadata = Parser().parsestr(_info(wheel, "METADATA"))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert "Installation" in str(metadata.get_payload())


def test_the_sdist_is_the_whole_repository(sdist: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=20)
    if listed.returncode:
        pytest.skip("not a git checkout")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in listed.stdout.splitlines() if (ROOT / name).exists()} - packed <= {".gitignore"}


def test_a_wheel_built_from_the_sdist_has_the_same_files(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    (again,) = build(source, tmp_path / "again", "wheel").glob("*.whl")
    assert _names(again) == _names(wheel)


def test_no_page_says_to_install_the_package_of_somebody_else() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"] == NAME
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]
    wrong = re.compile(r"\b(pip|pipx|uv tool|uv pip)\b[^\n]* install [^\n]*\bsandbox-agent(?!-server|[-_/\w])")
    assert {page.name for page in pages if wrong.search(page.read_text())} == set()
