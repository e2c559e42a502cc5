"""Carry out an install: into a staging directory, verified there, then renamed into place."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import msgspec

from sandbox_agent.agents.manifest import Manifest
from sandbox_agent.agents.packages import install_npm, install_pypi, own_command
from sandbox_agent.agents.plan import (
    ArchiveStep,
    InstallRequest,
    NpmStep,
    Plan,
    PypiStep,
    check_installable,
    may_need_python,
    plan_install,
    satisfies,
)
from sandbox_agent.agents.programs import ask_initialize, kill_strays, program_environment, run
from sandbox_agent.agents.registry import Registry
from sandbox_agent.agents.shelf import (
    STAGING,
    AgentShelf,
    Artifact,
    Receipt,
    Source,
    expand,
    file_lock,
    read_receipt,
    write_receipt,
)
from sandbox_agent.agents.surroundings import survey
from sandbox_agent.agents.web import download
from sandbox_agent.errors import InstallError

VERIFY_DEADLINE = 120.0
DOWNLOAD_DEADLINE = 1200.0


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """`fraction` is None while nobody can know it; `bytes` is what has arrived so far."""

    agent: str
    step: str
    message: str
    fraction: float | None = None
    bytes: int = 0


ProgressCallback = Callable[[Progress], None]


class InstallResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    agent: str
    already_installed: bool
    artifacts: tuple[Artifact, ...]
    version: str | None = None
    source: Source


class Installer:
    """Installs under `data_dir`. `env` is what programs it starts may draw on, scrubbed."""

    def __init__(self, manifest: Manifest, registry: Registry, *, data_dir: Path, env: Mapping[str, str]) -> None:
        self._manifest = manifest
        self._registry = registry
        self._data_dir = data_dir
        self._env = env
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def installed(self, agent: str) -> tuple[Path, Receipt] | None:
        """The install in use and where it is."""
        home = AgentShelf(self._data_dir, agent).current()
        receipt = read_receipt(home) if home else None
        return (home, receipt) if home and receipt else None

    async def install(self, request: InstallRequest, progress: ProgressCallback | None = None) -> InstallResult:
        """Have what was asked for installed: at once if it is there already.

        Raises UnknownAgent, InvalidParams, InstallImpossible or InstallError; then nothing has changed.
        """
        done = self._have(request)
        if done is not None:
            return done
        if request.agent in self._manifest.agents:
            check_installable(self._manifest.agents[request.agent])
        lock = self._locks.setdefault(request.agent, asyncio.Lock())
        async with lock:
            done = self._have(request)  # whoever held the lock may have done it
            if done is not None:
                return done
            report = _Report(request.agent, progress)
            report("plan", "asking the registry and looking at this machine")
            index = await self._registry.index()
            pythons = may_need_python(request, self._manifest, index)
            machine = await survey(self._env, look_for_pythons=pythons)
            plan = plan_install(request, self._manifest, index, machine)
            for note in plan.notes:
                report("plan", note)
            shelf = AgentShelf(self._data_dir, request.agent)
            try:
                async with file_lock(shelf.lock):
                    return self._have(request) or await self._carry_out(plan, shelf, machine.npm, report)
            except OSError as error:
                raise InstallError(f"{request.agent} cannot be put under {shelf.path}: {error}") from error

    def _have(self, request: InstallRequest) -> InstallResult | None:
        if request.reinstall:
            return None
        there = self.installed(request.agent)
        if there and satisfies(there[1], request, self._manifest.agents.get(request.agent)):
            return _result(there[1], already=True)
        return None

    async def _carry_out(self, plan: Plan, shelf: AgentShelf, npm: str | None, report: _Report) -> InstallResult:
        for leftover in shelf.leftovers():
            kill_strays(shelf.path.resolve() / leftover.name)
            await _remove(leftover)
        staging = shelf.path / f"{STAGING}{os.getpid()}-{secrets.token_hex(4)}"
        staging.mkdir()
        try:
            await self._fill(plan, staging, npm, report)
            home = shelf.vacant(plan.version)
            receipt = await self._verify(plan, staging, home, report)
            write_receipt(staging, receipt)
            previous = shelf.current()
            staging.rename(home)
            shelf.point_to(home)
        except BaseException:
            await asyncio.shield(_remove(staging))
            raise
        await self._prune(shelf, keep={home, previous or home})
        report("done", f"installed {plan.agent} {plan.version} from {plan.source}", fraction=1.0)
        return _result(receipt, already=False)

    async def _fill(self, plan: Plan, staging: Path, npm: str | None, report: _Report) -> None:
        env, cache, log = program_environment(self._env), self._data_dir / "cache", staging / "install.log"
        cache.mkdir(parents=True, exist_ok=True)
        names = ", ".join(f"{artifact.name} {artifact.version}" for artifact in plan.artifacts)
        match plan.step:
            case NpmStep() as step:
                if npm is None:
                    raise InstallError("npm is not on PATH")
                async with report.watching(staging, "npm", f"installing {names}"):
                    await install_npm(step, staging, npm, cache=cache / "npm", env=env, log=log)
            case PypiStep() as step:
                async with report.watching(staging, "pypi", f"installing {names}"):
                    await install_pypi(step, staging, cache=cache, env=env, log=log)
            case ArchiveStep() as step:
                await self._fetch_archive(step, staging, report)

    async def _fetch_archive(self, step: ArchiveStep, staging: Path, report: _Report) -> None:
        archive, name = staging / "archive", Path(urlsplit(step.url).path).name

        def on_bytes(done: int, total: int | None) -> None:
            report("download", f"downloading {name}", fraction=done / total if total else None, size=done)

        try:
            async with asyncio.timeout(DOWNLOAD_DEADLINE):
                await download(step.url, archive, self._env, sha256=step.sha256, size=step.size, on_bytes=on_bytes)
        except TimeoutError:
            raise InstallError(f"{step.url} took longer than {DOWNLOAD_DEADLINE:.0f} s") from None
        from sandbox_agent.archives.unpack import unpack  # noqa: PLC0415 - all compressors, and installs are rare

        report("unpack", f"unpacking {name}")
        await asyncio.to_thread(unpack, archive, name, staging / "files", step.command)
        archive.unlink()
        program = staging / "files" / step.command
        if not program.is_file():
            raise InstallError(f"{name} has no {step.command!r} in it")
        program.chmod(0o755)

    async def _verify(self, plan: Plan, staging: Path, home: Path, report: _Report) -> Receipt:
        """Ask the staged agent for its version and for the ACP handshake, in a home of its own."""
        report("verify", f"asking {plan.agent} for its version and for initialize")
        command = plan.command or (*own_command(plan.layout, staging, plan.artifacts[0].name), *plan.args)
        private_node = isinstance(plan.step, NpmStep) and plan.step.private_node is not None
        scratch = staging / "scratch"
        scratch.mkdir()
        filled = {name: expand(value, staging, plan.layout) for name, value in plan.env.items()}
        env = {**program_environment(self._env), **filled, **plan.verify_env, "HOME": str(scratch)}
        if private_node:
            env["PATH"] = f"{staging}/runtime/bin{os.pathsep}{env.get('PATH', os.defpath)}"
        log, reported = staging / "verify.log", None
        if plan.verify:
            version = [expand(part, staging, plan.layout) for part in plan.verify]
            output = await run(version, env=env, cwd=scratch, log=log, deadline=VERIFY_DEADLINE)
            reported = output.strip().partition("\n")[0][:200]
        launch = [expand(part, staging, plan.layout) for part in command]
        answer = await ask_initialize(launch, env=env, cwd=scratch, log=log, deadline=VERIFY_DEADLINE)
        await _remove(scratch)
        return Receipt(
            agent=plan.agent,
            version=plan.version,
            source=plan.source,
            artifacts=await asyncio.to_thread(_artifacts, plan, staging, home),
            layout=plan.layout,
            command=command,
            env=plan.env,
            private_node=private_node,
            verified=True,
            reported=reported,
            protocol_version=answer["protocolVersion"],
            installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    async def _prune(self, shelf: AgentShelf, keep: set[Path]) -> None:
        for home in list(shelf.homes()):
            if home not in keep:
                doomed = home.with_name(f"{STAGING}pruned-{secrets.token_hex(4)}")
                home.rename(doomed)  # so that half a directory never looks like an install
                await _remove(doomed)


class _Report:
    """Turns what happens into Progress for one install."""

    def __init__(self, agent: str, callback: ProgressCallback | None) -> None:
        self._agent = agent
        self._callback = callback

    def __call__(self, step: str, message: str, *, fraction: float | None = None, size: int = 0) -> None:
        if self._callback is not None:
            self._callback(Progress(agent=self._agent, step=step, message=message, fraction=fraction, bytes=size))

    @asynccontextmanager
    async def watching(self, directory: Path, step: str, message: str) -> AsyncIterator[None]:
        """Report how much has arrived in `directory` now and every second."""
        self(step, message)

        async def watch() -> None:
            while True:
                await asyncio.sleep(1)
                self(step, message, size=await asyncio.to_thread(_size, directory))

        watcher = asyncio.create_task(watch()) if self._callback else None
        try:
            yield
        finally:
            if watcher:
                watcher.cancel()
                await asyncio.gather(watcher, return_exceptions=True)


def _result(receipt: Receipt, *, already: bool) -> InstallResult:
    return InstallResult(
        agent=receipt.agent,
        already_installed=already,
        artifacts=receipt.artifacts,
        version=receipt.version,
        source=receipt.source,
    )


def _artifacts(plan: Plan, staging: Path, home: Path) -> tuple[Artifact, ...]:
    """Where each will be, and its size; what nobody else accounts for belongs to the first."""
    places = [_place(plan, artifact.name) for artifact in plan.artifacts]
    sizes = [_size(staging / place) for place in places]
    sizes[0] = _size(staging) - sum(sizes[1:])
    return tuple(
        Artifact(
            kind=planned.kind,
            name=planned.name,
            version=planned.version,
            path=str(home / place),
            source=plan.source if planned.kind == "agent_process" else "fallback",
            size_bytes=size,
        )
        for planned, place, size in zip(plan.artifacts, places, sizes, strict=True)
    )


def _place(plan: Plan, package: str) -> str:
    return {"npm": f"node_modules/{package}", "pypi": "venv", "archive": "files"}[plan.layout]


def _size(directory: Path) -> int:
    """What it takes on disk, a file with several names counted once."""
    sizes: dict[int, int] = {}
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                found = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - hot over 10⁴ files
            except OSError:
                continue
            sizes[found.st_ino] = found.st_size
    return sum(sizes.values())


async def _remove(path: Path) -> None:
    def remove() -> None:
        if path.is_symlink() or path.is_file():
            path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path, ignore_errors=True)

    await asyncio.to_thread(remove)
