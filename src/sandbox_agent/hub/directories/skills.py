"""Skills: folders with a `SKILL.md`, fetched from where they are and laid where an agent looks for them.

What is laid is a link into our own folder: so we know it again, and never touch what somebody else has put there.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from sandbox_agent.errors import InvalidParams, NotFound, SandboxAgentError
from sandbox_agent.files import FileService
from sandbox_agent.hub.processes.run import run
from sandbox_agent.process import child_environment

_FETCH_SECONDS = 120.0
_FETCH_OUTPUT = 4096
_SKILLS = 200
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}\Z")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+\Z")
_FILE = "SKILL.md"
_PLACES = ("", "skills")
"""Where in a source folders with skills are looked for, beside the source itself."""


class SkillSource(msgspec.Struct, frozen=True, omit_defaults=True):
    type: Literal["local", "git", "github"]
    source: str
    skills: list[str] | None = None
    ref: str | None = None
    subpath: str | None = None


class SkillsConfig(msgspec.Struct, frozen=True):
    sources: list[SkillSource]


def check_skills(config: dict[str, Any]) -> SkillsConfig:
    """Raises InvalidParams."""
    try:
        wanted = msgspec.convert(config, SkillsConfig)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"skills: {error}") from None
    for source in wanted.sources:
        words = [source.source, source.ref or "", source.subpath or "", *(source.skills or [])]
        if not source.source.strip() or any("\0" in word or word.startswith("-") for word in words):
            raise InvalidParams(f"skills: source {source.source[:100]!r} cannot be used")
        if source.type == "github" and not _REPOSITORY.match(source.source):
            raise InvalidParams(f"skills: a github source is owner/repository, not {source.source[:100]!r}")
        if ".." in Path(source.subpath or "").parts or (source.subpath or "").startswith("/"):
            raise InvalidParams("skills: subpath must stay within the source")
    return wanted


class Skills:
    """`folder` is ours: there lie what was fetched, and links to what is local."""

    def __init__(self, folder: Path, files: FileService, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._files = files
        self._environ = environ
        self._fetching: dict[str, asyncio.Lock] = {}

    async def lay(self, wanted: SkillsConfig, cwd: str, place: str, *, base: str) -> list[str]:
        """Have the skills found under `cwd`/`place`; gives their names. Raises why they cannot.

        Local folders are looked for from `base`, where the skills are configured."""
        found: dict[str, Path] = {}
        for source in wanted.sources:
            found |= await self._find(source, base)
        _require_some(found)
        await self._files.mkdir(place, base=Path(cwd))
        with await self._files.open_directory(place, base=Path(cwd)) as directory:
            for name, skill in found.items():
                await asyncio.to_thread(_link, name, skill, directory.fd, self._folder)
        return sorted(found)

    async def check_local(self, wanted: SkillsConfig, base: str) -> None:
        """Raises why they cannot be laid, as far as local folders tell; nothing is fetched."""
        local = [source for source in wanted.sources if source.type == "local"]
        found: dict[str, Path] = {}
        for source in local:
            with await self._files.open_directory(source.source, base=Path(base)) as directory:
                found |= await asyncio.to_thread(_chosen_in, Path(directory.path), source)
        if len(local) == len(wanted.sources):
            _require_some(found)

    async def remove(self, gone: SkillsConfig, directory: str, places: list[str]) -> None:
        """Take away what was laid for it, and what was fetched: another session fetches anew."""
        for source in gone.sources:
            root = self._root(source, directory)
            for place in places:
                try:
                    with await self._files.open_directory(place, base=Path(directory)) as opened:
                        await asyncio.to_thread(_unlink, opened.fd, root)
                except SandboxAgentError:
                    continue  # nothing was laid there
            await asyncio.to_thread(_discard, root)

    async def forget(self, changed: SkillsConfig, directory: str) -> None:
        """What was fetched before is fetched anew by the next session."""
        for source in changed.sources:
            await asyncio.to_thread(_discard, self._root(source, directory))

    def _root(self, source: SkillSource, base: str) -> Path:
        where = os.path.normpath(Path(base) / source.source) if source.type == "local" else source.source
        named = f"{source.type} {where} {source.ref or ''}"
        return self._folder / hashlib.sha256(named.encode()).hexdigest()[:24]

    async def _find(self, source: SkillSource, base: str) -> dict[str, Path]:
        root = self._root(source, base)
        async with self._fetching.setdefault(root.name, asyncio.Lock()):
            if source.type == "local":
                with await self._files.open_directory(source.source, base=Path(base)) as directory:
                    await asyncio.to_thread(_point, root, directory.path)
            elif not root.is_dir():
                await self._clone(source, root)
        return await asyncio.to_thread(_chosen_in, root, source)

    async def _clone(self, source: SkillSource, root: Path) -> None:
        git = shutil.which("git", path=self._environ.get("PATH"))
        if git is None:
            raise NotFound("git is not installed")
        url = f"https://github.com/{source.source}.git" if source.type == "github" else source.source
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = root.with_name(f"{root.name}.{os.getpid()}.new")
        shutil.rmtree(draft, ignore_errors=True)
        safe = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file"}
        branch = [] if source.ref is None else ["--branch", source.ref]
        done = await run(
            [git, "clone", "--quiet", "--depth", "1", *branch, "--", url, str(draft)],
            child_environment(self._environ, extra=safe),
            str(self._folder),
            timeout=_FETCH_SECONDS,
            output_bytes=_FETCH_OUTPUT,
        )
        if done.exit_code != 0:
            await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)
            said = "it took too long" if done.timed_out else done.stderr.strip().splitlines()[-1:]
            raise InvalidParams(f"{source.source} cannot be cloned: {said if isinstance(said, str) else ''.join(said)}")
        draft.rename(root)


def _require_some(found: dict[str, Path]) -> None:
    if not found:
        raise NotFound(f"no folder with a {_FILE} was found")


def _chosen_in(root: Path, source: SkillSource) -> dict[str, Path]:
    skills = _skills_in(root / (source.subpath or ""))
    missing = set(source.skills or ()) - skills.keys()
    if missing:
        raise NotFound(f"{source.source} has no skill {', '.join(sorted(missing))}")
    return {name: path for name, path in skills.items() if source.skills is None or name in source.skills}


def _skills_in(root: Path) -> dict[str, Path]:
    if (root / _FILE).is_file():
        name = root.resolve().name if root.is_symlink() else root.name
        return {_front_name(root / _FILE) or name: root}
    found: dict[str, Path] = {}
    for place in _PLACES:
        folder = root / place
        for skill in sorted(folder.iterdir()) if folder.is_dir() else ():
            if _NAME.match(skill.name) and (skill / _FILE).is_file():
                found.setdefault(skill.name, skill)
    if len(found) > _SKILLS:
        raise InvalidParams(f"more than {_SKILLS} skills in one source")
    return found


def _front_name(file: Path) -> str | None:
    """The name in the front matter, where the folder has none of its own."""
    with file.open(errors="replace") as lines:
        head = [next(lines, "") for _ in range(30)]
    found = [line.partition(":")[2].strip().strip("\"'") for line in head if line.startswith("name:")]
    return found[0] if found and _NAME.match(found[0]) else None


def _link(name: str, skill: Path, directory: int, ours: Path) -> None:
    """Raises InvalidParams where somebody else's entry has that name."""
    try:
        there = os.readlink(name, dir_fd=directory)
    except FileNotFoundError:
        os.symlink(skill, name, dir_fd=directory)
        return
    except OSError:
        raise InvalidParams(f"skill {name!r} is there already, and is not ours") from None
    if there == str(skill):
        return
    if not there.startswith(f"{ours}/"):
        raise InvalidParams(f"skill {name!r} is there already, and is not ours")
    os.unlink(name, dir_fd=directory)
    os.symlink(skill, name, dir_fd=directory)


def _unlink(directory: int, root: Path) -> None:
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
    try:
        for name in os.listdir(opened):  # noqa: PTH208 - of an open directory
            try:
                if os.readlink(name, dir_fd=opened).startswith(f"{root}"):
                    os.unlink(name, dir_fd=opened)
            except OSError:
                continue
    finally:
        os.close(opened)


def _point(link: Path, target: str) -> None:
    link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(target)


def _discard(root: Path) -> None:
    if root.is_symlink():
        root.unlink()
    else:
        shutil.rmtree(root, ignore_errors=True)
