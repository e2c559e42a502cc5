"""`sandbox-agent mcp` and `skills`: what every session in a directory gets."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from sandbox_agent.cli.lazy import SuggestingGroup
from sandbox_agent.cli.target import Target, run_async, target_options

_DIRECTORY = click.option(
    "--directory", "-C", help="Directory on the server's machine; it holds for all below it.  [default: current]"
)


@click.group(cls=SuggestingGroup)
def mcp() -> None:
    """Configure MCP servers for every new session in a directory and below it."""


@mcp.command(name="add")
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", help="Address of a remote server, instead of a command.")
@click.option("--transport", type=click.Choice(["http", "sse"]), help="Transport of a remote server.  [default: http]")
@click.option("--env", "-e", multiple=True, metavar="NAME=VALUE", help="Environment variable; ${X} is the server's X.")
@click.option("--header", multiple=True, metavar="NAME=VALUE", help="Header to send; ${X} is the server's X.")
@click.option("--bearer-token-env-var", metavar="NAME", help="Variable on the server that holds the bearer token.")
@_DIRECTORY
@target_options
def add_server(
    target: Target,
    name: str,
    command: tuple[str, ...],
    url: str | None,
    transport: str | None,
    env: tuple[str, ...],
    header: tuple[str, ...],
    bearer_token_env_var: str | None,
    directory: str | None,
) -> None:
    """Add an MCP server: sandbox-agent mcp add NAME -- COMMAND ARGS, or --url."""
    if (url is None) == (not command):
        raise click.UsageError("give a command, or a server with --url")
    if url is None:
        config: dict[str, Any] = {"type": "local", "command": command[0], "args": list(command[1:]), "env": _pairs(env)}
    else:
        given = {"transport": transport, "bearerTokenEnvVar": bearer_token_env_var, "headers": _pairs(header) or None}
        config = {"type": "remote", "url": url, **{key: value for key, value in given.items() if value is not None}}
    _request(target, "PUT", "mcp", directory, name, config)


@mcp.command(name="list")
@_DIRECTORY
@target_options
def list_servers(target: Target, directory: str | None) -> None:
    """List the MCP servers that a session in the directory would get."""
    _list(target, "mcp", directory, lambda config: str(config.get("url") or _words(config)))


@mcp.command(name="remove")
@click.argument("name")
@_DIRECTORY
@target_options
def remove_server(target: Target, name: str, directory: str | None) -> None:
    """Remove an MCP server from a directory."""
    _request(target, "DELETE", "mcp", directory, name)


@click.group(cls=SuggestingGroup)
def skills() -> None:
    """Configure skills for every new session in a directory and below it."""


@skills.command(name="add")
@click.argument("name")
@click.argument("source")
@click.option("--type", "kind", type=click.Choice(["local", "git", "github"]), help="Kind of source.")
@click.option("--skill", multiple=True, help="Use only this skill of the source (repeatable).")
@click.option("--ref", help="Branch or tag of a repository.")
@click.option("--subpath", help="Folder within the source.")
@_DIRECTORY
@target_options
def add_skills(
    target: Target,
    name: str,
    source: str,
    kind: str | None,
    skill: tuple[str, ...],
    ref: str | None,
    subpath: str | None,
    directory: str | None,
) -> None:
    """Add skills from a directory, a git repository, or a repository OWNER/NAME on GitHub."""
    given: dict[str, Any] = {"skills": list(skill) or None, "ref": ref, "subpath": subpath}
    described = {"type": kind or _kind_of(source), "source": source}
    described |= {key: value for key, value in given.items() if value is not None}
    _request(target, "PUT", "skills", directory, name, {"sources": [described]})


@skills.command(name="list")
@_DIRECTORY
@target_options
def list_skills(target: Target, directory: str | None) -> None:
    """List the skills that a session in the directory would get."""
    _list(target, "skills", directory, lambda config: ", ".join(s.get("source", "") for s in config.get("sources", [])))


@skills.command(name="remove")
@click.argument("name")
@_DIRECTORY
@target_options
def remove_skills(target: Target, name: str, directory: str | None) -> None:
    """Remove skills from a directory."""
    _request(target, "DELETE", "skills", directory, name)


def _request(
    target: Target, verb: str, kind: str, directory: str | None, name: str, body: dict[str, Any] | None = None
) -> None:
    async def asking() -> None:
        query = {"directory": _here(directory), ("mcpName" if kind == "mcp" else "skillName"): name}
        async with target.open(may_start=True) as sandbox:
            await sandbox.api.request(verb, f"/v1/config/{kind}", query=query, body=body)

    run_async(asking())


def _list(target: Target, kind: str, directory: str | None, describe: Any) -> None:
    async def asking() -> list[dict[str, Any]]:
        async with target.open(may_start=True) as sandbox:
            found: list[dict[str, Any]] = (await sandbox.api.get(f"/v1/config/{kind}", directory=_here(directory)))[
                "entries"
            ]
            return found

    entries = run_async(asking())
    if target.is_json:
        from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

        print_json(entries)
        return
    from sandbox_agent.cli.tables import print_table  # noqa: PLC0415

    rows = [(e["name"], describe(e["config"]), _state(e), e["directory"]) for e in entries]
    print_table(("NAME", "SOURCE", "STATUS", "DIRECTORY"), rows, empty="nothing is configured here")
    if any(not e["trusted"] for e in entries):
        click.echo("note: what was not added through this server is not used; add it again to use it", err=True)


def _state(entry: dict[str, Any]) -> str:
    if not entry["trusted"]:
        return "not used"
    return "disabled" if entry["config"].get("enabled") is False else "enabled"


def _words(config: dict[str, Any]) -> str:
    command = config.get("command", "")
    return " ".join([*(command if isinstance(command, list) else [command]), *config.get("args", [])])


def _here(directory: str | None) -> str:
    return os.path.normpath(Path.cwd() / (directory or "."))


def _kind_of(source: str) -> str:
    if source.startswith((".", "/")) or Path(source).is_dir():
        return "local"
    return "git" if ":" in source else "github"


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    if wrong := [name for name, equals, _ in pairs if not equals or not name]:
        click.echo(f"error: {wrong[0]!r} is not NAME=VALUE", err=True)
        sys.exit(2)
    return {name: value for name, _, value in pairs}
