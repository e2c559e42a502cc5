"""`sandbox-agent api v1 …`: a thin mirror of the HTTP operations, made from one table."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from sandbox_agent.cli.api_rpc import events, rpc
from sandbox_agent.cli.lazy import SuggestingGroup
from sandbox_agent.cli.target import Target, run_async, target_options

Options = Mapping[str, str]
"""Names as the API spells them, each with the line that help shows."""


@dataclass(frozen=True, slots=True)
class Call:
    """One operation. `{name}` in the path and the names in `required` are arguments; the rest are options."""

    words: tuple[str, ...]
    verb: str
    path: str
    help: str
    required: tuple[str, ...] = ()
    query: Options = field(default_factory=dict)
    flags: Options = field(default_factory=dict)
    body: tuple[str, ...] = ()
    """Names of options and arguments that go into a JSON body, not into the query."""
    sends: str | None = None
    """The media type of a body that is read from a file."""
    numbers: tuple[str, ...] = ()
    """Names of arguments that are integers."""


_CONFIG = {"config": "Include models, modes and config options."}
_OWNER = {"agent": "Agent that owns the session, if the id is ambiguous."}
_SESSION = {"sessionId": "Resolve relative paths from this session's working directory."}
_WAIT = {"waitMs": "Wait up to this long for the exit.  [default: 0]"}
_JSON = "application/json"
CALLS = (
    Call(("health",), "GET", "/v1/health", "Show the server's health."),
    Call(("metrics",), "GET", "/v1/metrics", "Print metrics in the Prometheus format."),
    Call(("nodes", "list"), "GET", "/v1/nodes", "List the nodes of a cluster."),
    Call(("nodes", "drain"), "POST", "/v1/nodes/{id}/drain", "Have a node hand its sessions on."),
    Call(("nodes", "resume"), "POST", "/v1/nodes/{id}/resume", "Have a drained node take sessions again."),
    Call(("openapi",), "GET", "/v1/openapi.json", "Print the OpenAPI document."),
    Call(("agents", "list"), "GET", "/v1/agents", "List agents.", flags=_CONFIG),
    Call(("agents", "show"), "GET", "/v1/agents/{agent}", "Show an agent.", flags=_CONFIG),
    Call(
        ("agents", "logs"),
        "GET",
        "/v1/agents/{agent}/logs",
        "Show what an agent wrote to stderr.",
        query={"tail": "Number of lines, at most 1000.  [default: 100]"},
    ),
    Call(
        ("agents", "install"),
        "POST",
        "/v1/agents/{agent}/install",
        "Install an agent.",
        query={
            "agentVersion": "Version of the agent.",
            "agentProcessVersion": "Version of the agent's ACP adapter.",
        },
        flags={"reinstall": "Reinstall even if installed."},
        body=("agentVersion", "agentProcessVersion", "reinstall"),
    ),
    Call(
        ("sessions", "list"),
        "GET",
        "/v1/sessions",
        "List sessions, one page at a time.",
        query={
            "agent": "Filter by agent.",
            "cwd": "Filter by working directory.",
            "ended": "Filter by state: true for ended sessions, false for open ones.",
            "cursor": "Start at this page: `nextCursor` of the page before.",
            "limit": "Sessions per page, at most 1000.  [default: 100]",
        },
    ),
    Call(("sessions", "show"), "GET", "/v1/sessions/{session}", "Show a session.", query=_OWNER),
    Call(
        ("sessions", "transcript"),
        "GET",
        "/v1/sessions/{session}/transcript",
        "Export the history of a session.",
        query={"format": "Output format: jsonl or markdown.  [default: jsonl]", **_OWNER},
    ),
    Call(
        ("search",),
        "GET",
        "/v1/search",
        "Search the conversations of all sessions.",
        ("q",),
        {"limit": "Maximum number of sessions.  [default: 20]"},
    ),
    Call(("fs", "entries"), "GET", "/v1/fs/entries", "List a directory.", ("path",), _SESSION),
    Call(("fs", "stat"), "GET", "/v1/fs/stat", "Show type, size and modification time.", ("path",), _SESSION),
    Call(("fs", "read"), "GET", "/v1/fs/file", "Print a file.", ("path",), _SESSION),
    Call(
        ("fs", "write"),
        "PUT",
        "/v1/fs/file",
        "Write a file. FILE is the local source, or - for stdin.",
        ("path",),
        _SESSION,
        sends="application/octet-stream",
    ),
    Call(
        ("fs", "delete"),
        "DELETE",
        "/v1/fs/entry",
        "Delete a file or directory.",
        ("path",),
        _SESSION,
        flags={"recursive": "Delete directories and their contents."},
    ),
    Call(("fs", "mkdir"), "POST", "/v1/fs/mkdir", "Create a directory, with parents.", ("path",), _SESSION),
    Call(
        ("fs", "move"),
        "POST",
        "/v1/fs/move",
        "Move or rename a file or directory.",
        ("from", "to"),
        _SESSION,
        flags={"overwrite": "Replace an existing file."},
        body=("from", "to", "overwrite"),
    ),
    Call(
        ("fs", "upload-batch"),
        "POST",
        "/v1/fs/upload-batch",
        "Unpack a tar archive into a directory. FILE is the local archive, or - for stdin.",
        ("path",),
        _SESSION,
        sends="application/x-tar",
    ),
    Call(
        ("processes", "list"),
        "GET",
        "/v1/processes",
        "List processes.",
        query={"owner": "Filter by owner: user, agent, desktop or system."},
    ),
    Call(("processes", "show"), "GET", "/v1/processes/{id}", "Show a process."),
    Call(
        ("processes", "run"),
        "POST",
        "/v1/processes/run",
        "Run a command and wait for it. FILE is the JSON body, or - for stdin.",
        sends=_JSON,
    ),
    Call(
        ("processes", "start"),
        "POST",
        "/v1/processes",
        "Start a process. FILE is the JSON body, or - for stdin.",
        sends=_JSON,
    ),
    Call(
        ("processes", "stop"),
        "POST",
        "/v1/processes/{id}/stop",
        "Stop a process (SIGTERM).",
        query={**_WAIT, "signal": "TERM, INT, HUP, QUIT, USR1 or USR2.  [default: TERM]"},
    ),
    Call(("processes", "kill"), "POST", "/v1/processes/{id}/kill", "Kill a process (SIGKILL).", query=_WAIT),
    Call(("processes", "delete"), "DELETE", "/v1/processes/{id}", "Delete a process that has exited."),
    Call(
        ("processes", "logs"),
        "GET",
        "/v1/processes/{id}/logs",
        "Show or follow the output of a process.",
        query={
            "stream": "stdout, stderr, combined or pty.",
            "tail": "Only so many entries from the end.",
            "since": "Only entries after this number.",
        },
        flags={
            "follow": "Follow it as server-sent events.",
            "hold": "With --follow: let the process wait rather than drop output.",
        },
    ),
    Call(
        ("processes", "input"),
        "POST",
        "/v1/processes/{id}/input",
        "Write to a process's input. FILE is the JSON body, or - for stdin.",
        sends=_JSON,
    ),
    Call(
        ("processes", "resize"),
        "POST",
        "/v1/processes/{id}/terminal/resize",
        "Resize a process's terminal.",
        ("cols", "rows"),
        body=("cols", "rows"),
        numbers=("cols", "rows"),
    ),
    Call(("processes", "config"), "GET", "/v1/processes/config", "Show the limits of processes."),
    Call(
        ("processes", "set-config"),
        "POST",
        "/v1/processes/config",
        "Change the limits of processes. FILE is the JSON body, or - for stdin.",
        sends=_JSON,
    ),
    *(
        call
        for kind, name, what in (("mcp", "mcpName", "MCP servers"), ("skills", "skillName", "skills"))
        for call in (
            Call(
                ("config", kind),
                "GET",
                f"/v1/config/{kind}",
                f"Show the {what} of a directory.",
                ("directory",),
                {name: "Only the one with this name."},
            ),
            Call(
                ("config", f"set-{kind}"),
                "PUT",
                f"/v1/config/{kind}",
                f"Set {what} for a directory. FILE is the JSON body, or - for stdin.",
                ("directory", name),
                sends=_JSON,
            ),
            Call(
                ("config", f"delete-{kind}"),
                "DELETE",
                f"/v1/config/{kind}",
                f"Remove {what} from a directory.",
                ("directory", name),
            ),
        )
    ),
)


@click.group(cls=SuggestingGroup)
def api() -> None:
    """Call the HTTP API from a script. Responses are printed unchanged."""


@api.group(cls=SuggestingGroup)
def v1() -> None:
    """Version 1 of the API."""


def _operation(call: Call) -> click.Command:
    in_path = [part[1:-1] for part in call.path.split("/") if part.startswith("{")]

    @target_options
    def run(target: Target, **given: Any) -> None:
        values = {_spelled(name): value for name, value in given.items() if value is not None and name != "file"}
        run_async(_send(target, call, in_path, values, _read(given.get("file"))))

    params: list[click.Parameter] = [click.Argument([name]) for name in in_path]
    params += [
        click.Argument([_python(name)], metavar=_metavar(name), type=int if name in call.numbers else None)
        for name in call.required
    ]
    params += [click.Option([_option(name), _python(name)], help=text) for name, text in call.query.items()]
    params += [
        click.Option([_option(name), _python(name)], is_flag=True, default=None, help=text)
        for name, text in call.flags.items()
    ]
    if call.sends is not None:
        kind = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)
        params.append(click.Argument(["file"], type=kind))
    made = click.Command(call.words[-1], callback=run, help=f"{call.help} ({call.verb} {call.path})")
    made.params = [*params, *getattr(run, "__click_params__", [])[::-1]]
    return made


async def _send(target: Target, call: Call, in_path: list[str], values: dict[str, Any], content: bytes | None) -> None:
    path = call.path.format(**{name: values.pop(name) for name in in_path})
    body = {name: values.pop(name) for name in call.body if name in values}
    async with target.open() as sandbox:
        if call.verb == "GET":
            async with sandbox.api.stream(path, query=values) as response:
                async for piece in response.aiter_bytes():
                    sys.stdout.buffer.write(piece)
                    sys.stdout.buffer.flush()  # what is followed is wanted as it comes
        else:
            response = await sandbox.api.request(
                call.verb,
                path,
                query=values,
                body=body if call.body else None,
                content=content,
                headers={"Content-Type": call.sends} if call.sends else None,
                timeout=1800.0,
            )
            sys.stdout.buffer.write(response.content)
    if sys.stdout.isatty():
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def _read(source: Path | None) -> bytes | None:
    if source is None:
        return None
    return sys.stdin.buffer.read() if str(source) == "-" else source.read_bytes()


def _option(name: str) -> str:
    return "--" + "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


def _metavar(name: str) -> str:
    return _python(name).rstrip("_").upper()


def _python(name: str) -> str:
    plain = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
    return {"from": "from_"}.get(plain, plain)


def _spelled(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def _build() -> None:
    groups: dict[str, click.Group] = {}
    for call in CALLS:
        if len(call.words) == 1:
            v1.add_command(_operation(call))
            continue
        name = call.words[0]
        if name not in groups:
            groups[name] = SuggestingGroup(name, help=f"Call the endpoints under /v1/{name}.")
            v1.add_command(groups[name])
        groups[name].add_command(_operation(call))


_build()
v1.add_command(rpc)
v1.add_command(events)
