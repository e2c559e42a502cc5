"""`/v1/config/mcp` and `/v1/config/skills`: what every session in a directory gets."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.errors import Forbidden, InvalidParams, NotFound, TooLarge, UnsupportedMediaType
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import Response
from sandbox_agent.http.asgi.routes import Content, Operation
from sandbox_agent.hub.directories.directories import Directories
from sandbox_agent.hub.directories.entries import Kind


class McpQuery(msgspec.Struct, rename="camel"):
    """Without a name, everything that holds in the directory is listed."""

    directory: str
    mcp_name: str | None = None


class SkillsQuery(msgspec.Struct, rename="camel"):
    directory: str
    skill_name: str | None = None


class DirectoryEntry(msgspec.Struct, frozen=True, rename="camel"):
    """`directory` is where it is configured: the one that was asked for, or one above it. `problem` says why sessions
    cannot have it: a command or folder that is not found, a variable that is not set."""

    name: str
    directory: str
    trusted: bool
    problem: str | None
    config: dict[str, Any]


class DirectoryEntryList(msgspec.Struct, frozen=True, rename="camel"):
    entries: list[DirectoryEntry]


_OBJECT = Content(("application/json",), {"type": "object", "additionalProperties": True})
_ERRORS = (InvalidParams, Forbidden, NotFound)
_PUT_ERRORS = (*_ERRORS, UnsupportedMediaType, TooLarge)
_WHERE = "Stored in `.sandbox-agent/config` of the directory. "
_MCP = (
    "`{type: local, command, args, env, cwd}` or `{type: remote, url, transport: http|sse, headers, bearerTokenEnvVar, "
    "envHeaders, oauth}`, with `enabled` and `timeoutMs`. `${NAME}` in values of `env` and `headers`, "
    "`bearerTokenEnvVar` and `envHeaders` name variables of the server's environment, looked up when a session starts."
)
_SKILLS = "`{sources: [{type: local|git|github, source, skills, ref, subpath}]}`."


def _operations(kind: str, what: str, query: type, shape: str) -> tuple[Operation, Operation, Operation]:
    tag, gone = "config", f"Remove {what} from a directory"
    return (
        Operation(
            f"read{kind}Config",
            f"Get {what} of a directory",
            tag,
            "Without a name, returns `{entries}`: all that a session there would get, also from directories above.",
            query=query,
            returns=_OBJECT,
            errors=_ERRORS,
        ),
        Operation(
            f"write{kind}Config",
            f"Set {what} for a directory",
            tag,
            _WHERE + shape + " Every new session there or below gets it; of one name, the nearest directory's.",
            query=query,
            body=_OBJECT,
            status=204,
            errors=_PUT_ERRORS,
        ),
        Operation(f"delete{kind}Config", gone, tag, query=query, status=204, errors=_ERRORS),
    )


READ_MCP, WRITE_MCP, DELETE_MCP = _operations("Mcp", "an MCP server", McpQuery, _MCP)
READ_SKILLS, WRITE_SKILLS, DELETE_SKILLS = _operations("Skills", "skills", SkillsQuery, _SKILLS)


class DirectoryConfigApi:
    def __init__(self, directories: Directories, kind: Kind) -> None:
        self._directories = directories
        self._kind = kind

    async def read(self, exchange: Exchange) -> dict[str, Any] | DirectoryEntryList:
        directory, name = self._named(exchange)
        if name is not None:
            return await self._directories.entries.get(self._kind, directory, name)
        found = await self._directories.entries.found(self._kind, directory)
        problems = [await self._directories.problem(self._kind, entry) for entry in found]
        return DirectoryEntryList(
            [
                DirectoryEntry(entry.name, entry.directory, entry.is_trusted, problem, entry.config)
                for entry, problem in zip(found, problems, strict=True)
            ]
        )

    async def write(self, exchange: Exchange) -> Response:
        directory, name = self._required(exchange)
        await self._directories.put(self._kind, directory, name, await exchange.json(dict[str, Any]))
        return Response(204)

    async def delete(self, exchange: Exchange) -> Response:
        directory, name = self._required(exchange)
        await self._directories.delete(self._kind, directory, name)
        return Response(204)

    def _named(self, exchange: Exchange) -> tuple[str, str | None]:
        if self._kind == "mcp":
            wanted = exchange.query(McpQuery)
            return wanted.directory, wanted.mcp_name
        asked = exchange.query(SkillsQuery)
        return asked.directory, asked.skill_name

    def _required(self, exchange: Exchange) -> tuple[str, str]:
        directory, name = self._named(exchange)
        if name is None:
            field = "mcpName" if self._kind == "mcp" else "skillName"
            raise InvalidParams(f"query: {field} is missing", field=field)
        return directory, name
