"""What a session gets from the directory that it starts in: MCP servers and skills that were configured there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.json_values import as_object
from sandbox_agent.errors import InvalidParams, SandboxAgentError
from sandbox_agent.files import FileService
from sandbox_agent.hub.directories.entries import DirectoryEntries, Entry, Kind, require_trust
from sandbox_agent.hub.directories.servers import check_server, resolved
from sandbox_agent.hub.directories.skills import Skills, check_skills

SkillsPlace = Callable[[AgentId], str | None]
"""Where in a working directory an agent looks for skills; None where it knows none."""
_PLACES = (".claude/skills", ".agents/skills", ".gemini/skills", ".opencode/skills", ".pi/skills", ".goose/skills")


class Equipment(msgspec.Struct, frozen=True):
    """`servers` are to be added to the client's own, with their secrets: for the agent only.

    `told` says of each server and skill whether it is there, and why not."""

    servers: list[dict[str, Any]] = msgspec.field(default_factory=list)
    told: dict[str, Any] = msgspec.field(default_factory=dict)


class Directories:
    def __init__(
        self, data_dir: Path, files: FileService, environ: Mapping[str, str], skills_place: SkillsPlace
    ) -> None:
        self.entries = DirectoryEntries(files, data_dir / "directory-config")
        self._skills = Skills(data_dir / "skills", files, environ)
        self._environ = environ
        self._skills_place = skills_place

    async def put(self, kind: Kind, directory: str, name: str, config: dict[str, Any]) -> None:
        """Raises InvalidParams for what can never be used."""
        if kind == "mcp":
            check_server(name, config)
            await self.entries.put(kind, directory, name, config)
            return
        wanted = check_skills(config)
        await self.entries.put(kind, directory, name, config)
        await self._skills.forget(wanted, directory)

    async def delete(self, kind: Kind, directory: str, name: str) -> None:
        gone = await self.entries.delete(kind, directory, name)
        if kind == "skills" and gone is not None:
            try:
                wanted = check_skills(gone)
            except InvalidParams:
                return  # somebody else has written it: nothing was laid for it
            await self._skills.remove(wanted, directory, list(_PLACES))

    async def problem(self, kind: Kind, entry: Entry) -> str | None:
        """Why a session cannot have it, as far as one can tell without starting anything."""
        try:
            if kind == "mcp":
                resolved(entry, self._environ)
            else:
                require_trust(is_trusted=entry.is_trusted)
                await self._skills.check_local(check_skills(entry.config), entry.directory)
        except SandboxAgentError as error:
            return error.detail
        except OSError as error:
            return str(error.strerror or error)
        return None

    async def equip(
        self, agent: AgentId, cwd: str | None, own: list[dict[str, Any]], capabilities: dict[str, Any], skills: Any
    ) -> Equipment:
        """Nothing in it stops a session: what cannot be used is told."""
        if cwd is None or not cwd.startswith("/"):
            return Equipment()
        servers, told = await self._servers(cwd, own, _transports(capabilities))
        laid = await self._lay(agent, cwd, skills)
        every = {name: value for name, value in (("mcp", told), ("skills", laid)) if value}
        return Equipment(servers, every)

    async def _servers(
        self, cwd: str, own: list[dict[str, Any]], capabilities: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        taken = {server.get("name") for server in own}
        servers: list[dict[str, Any]] = []
        told: dict[str, Any] = {}
        for entry in await self.entries.found("mcp", cwd):
            if entry.config.get("enabled") is False:
                continue
            if entry.name in taken:
                told[entry.name] = {"applied": False, "reason": "the client has one of this name"}
                continue
            try:
                servers.append(resolved(entry, self._environ, capabilities=capabilities))
                told[entry.name] = {"applied": True, "directory": entry.directory}
            except InvalidParams as error:
                told[entry.name] = {"applied": False, "directory": entry.directory, "reason": error.detail}
        return servers, told

    async def _lay(self, agent: AgentId, cwd: str, asked: Any) -> dict[str, Any]:
        wanted = [
            (entry.name, entry.directory, entry.config, entry.is_trusted)
            for entry in await self.entries.found("skills", cwd)
        ]
        if isinstance(asked, dict) and "sources" in asked:
            wanted.append(("session", cwd, asked, True))
        place = self._skills_place(agent)
        told: dict[str, Any] = {}
        for name, directory, config, is_trusted in wanted:
            try:
                if place is None:
                    raise InvalidParams(f"agent {agent!r} knows no skills")
                require_trust(is_trusted=is_trusted)
                laid = await self._skills.lay(check_skills(config), cwd, place, base=directory)
                told[name] = {"applied": True, "skills": laid, "place": place}
            except SandboxAgentError as error:
                told[name] = {"applied": False, "directory": directory, "reason": error.detail}
            except OSError as error:
                told[name] = {"applied": False, "directory": directory, "reason": str(error.strerror or error)}
        return told


def _transports(capabilities: dict[str, Any]) -> dict[str, Any]:
    """Over what else than stdio an agent talks to MCP servers, in both versions of its `initialize` answer."""
    newer = as_object(as_object(capabilities.get("session")).get("mcp"))
    older = as_object(capabilities.get("mcpCapabilities"))
    return {kind: older.get(kind) or newer.get(kind) is not None for kind in ("http", "sse")}
