"""Install npm and PyPI packages into a private directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.agents.names import check_command_name
from sandbox_agent.agents.plan import NpmStep, PypiStep
from sandbox_agent.agents.programs import run
from sandbox_agent.errors import InstallError, InvalidParams

DEADLINE = 1200.0


async def install_npm(
    step: NpmStep,
    root: Path,
    npm: str,
    *,
    cache: Path,
    env: Mapping[str, str],
    log: Path,
    deadline: float = DEADLINE,
) -> None:
    """Fill `root/node_modules`. With a private Node.js, `root/runtime/bin` holds it and nothing else."""
    command = [npm, "install", "--prefix", str(root), "--cache", str(cache), "--no-save", "--no-package-lock"]
    command += ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    command += [] if step.install_scripts else ["--ignore-scripts"]
    (root / "package.json").write_text('{"private": true}\n', "utf-8")  # or npm climbs to one further up
    packages = [f"{package.name}@{package.version}" for package in step.packages]
    await run([*command, "--", *packages], env=env, cwd=root, log=log, deadline=deadline)
    for package in step.packages:
        found = _package_json(root, package.name).get("version")
        if found != package.version:
            raise InstallError(f"npm installed {package.name} {found!r} where {package.version} was asked for")
    if step.private_node:
        shelf = root / "runtime" / "bin"
        shelf.mkdir(parents=True)
        (shelf / "node").symlink_to(f"../../node_modules/{step.private_node.name}/bin/node")


async def install_pypi(
    step: PypiStep, root: Path, *, cache: Path, env: Mapping[str, str], log: Path, deadline: float = DEADLINE
) -> None:
    """Make `root/venv` with the package in it."""
    venv, python = str(root / "venv"), str(root / "venv" / "bin" / "python")
    package = f"{step.package.name}=={step.package.version}"
    env = {"UV_CACHE_DIR": str(cache / "uv"), "PIP_CACHE_DIR": str(cache / "pip"), **env}
    if step.uv:
        make = [step.uv, "venv", "--quiet", "--no-project", "--python", step.python, venv]
        fill = [step.uv, "pip", "install", "--quiet", "--python", python, "--", package]
    else:
        make = [step.python, "-m", "venv", venv]
        fill = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
            "--",
            package,
        ]
    await run(make, env=env, cwd=root, log=log, deadline=120)
    await run(fill, env=env, cwd=root, log=log, deadline=deadline)


def own_command(layout: str, root: Path, package: str) -> tuple[str, ...]:
    """How a package that the manifest does not describe is started: what `npx` or `uvx` would run."""
    plain = package.rpartition("/")[2]
    if layout == "pypi":
        if not (root / "venv" / "bin" / plain).is_file():
            raise InstallError(f"PyPI package {package} has no command {plain!r}")
        return ("{python}", f"{{bin}}/{plain}")
    bins = _package_json(root, package).get("bin")
    names = list(bins) if isinstance(bins, dict) else [plain] if isinstance(bins, str) else []
    if not names:
        raise InstallError(f"npm package {package} has no command")
    try:
        return (f"{{bin}}/{check_command_name(plain if plain in names else names[0])}",)
    except InvalidParams as error:
        raise InstallError(f"npm package {package}: {error}") from error


def _package_json(root: Path, package: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode((root / "node_modules" / package / "package.json").read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise InstallError(f"npm left no usable {package}: {error}") from error
