"""`sandbox-agent sessions`: conversations, running or past."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sandbox_agent.cli.completion import complete_agents, complete_sessions
from sandbox_agent.cli.lazy import SuggestingGroup
from sandbox_agent.cli.target import Target, run_async, target_options

if TYPE_CHECKING:
    from sandbox_agent.cli.approval import Approval
    from sandbox_agent.client.sandbox import SearchResult
    from sandbox_agent.client.session import Session

_AGENT = click.option(
    "--agent", shell_complete=complete_agents, help="Agent that owns the session, if the id is ambiguous."
)


@click.group(cls=SuggestingGroup)
def sessions() -> None:
    """List, watch, export and end sessions. SESSION is an id or an alias."""


@sessions.command("list")
@click.option("--agent", shell_complete=complete_agents, help="Filter by agent.")
@click.option("--cwd", help="Filter by working directory.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of sessions.")
@target_options
def list_(target: Target, agent: str | None, cwd: str | None, limit: int) -> None:
    """List sessions, newest first."""

    async def work() -> list[Any]:
        async with target.open(may_start=True) as sandbox:
            return list(await sandbox.list_sessions(agent=agent, cwd=cwd, limit=limit))

    found = run_async(work())
    if target.is_json:
        import msgspec  # noqa: PLC0415

        return _print_json(msgspec.to_builtins(found))
    from sandbox_agent.cli.tables import ago, print_table  # noqa: PLC0415

    rows = [
        (s.alias or s.session_id, s.agent, "ended" if s.ended else "open", ago(s.updated_at), s.title or "")
        for s in found
    ]
    return print_table(("SESSION", "AGENT", "STATUS", "UPDATED", "TITLE"), rows, empty="no sessions")


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="Maximum number of sessions.")
@target_options
def search(target: Target, words: tuple[str, ...], limit: int) -> None:
    """Search the conversations of all sessions for WORDS. The newest hit comes first."""

    async def work() -> SearchResult:
        async with target.open(may_start=True) as sandbox:
            return await sandbox.search(" ".join(words), limit=limit)

    found = run_async(work())
    if target.is_json:
        import msgspec  # noqa: PLC0415

        return _print_json(msgspec.to_builtins(found))
    from sandbox_agent.cli.tables import print_hits  # noqa: PLC0415

    return print_hits(found)


@sessions.command()
@click.argument("session", shell_complete=complete_sessions)
@_AGENT
@target_options
def show(target: Target, session: str, agent: str | None) -> None:
    """Show details of a session, with pending permission requests and questions."""

    async def work() -> dict[str, Any]:
        async with target.open(may_start=True) as sandbox:
            found: dict[str, Any] = await sandbox.api.get(f"/v1/sessions/{session}", agent=agent)
            return found

    found = run_async(work())
    if target.is_json:
        return _print_json(found)
    from sandbox_agent.cli.tables import print_facts  # noqa: PLC0415

    waiting = [*found.get("pendingPermissions", []), *found.get("pendingQuestions", [])]
    return print_facts(
        [
            *((name, _plain(found.get(key))) for name, key in _SHOWN),
            ("attached", str(len(found.get("attachedConnections", [])))),
            ("waiting", ", ".join(map(_ask_title, waiting)) or None),
        ]
    )


@sessions.command()
@click.argument("session", shell_complete=complete_sessions)
@click.option("--after", type=click.IntRange(0), default=0, help="Start after this sequence number.")
@click.option("--limit", type=click.IntRange(1), help="Maximum number of events.")
@click.option("--legacy", is_flag=True, help="Use the event format of the previous API.")
@_AGENT
@target_options
def events(target: Target, session: str, after: int, limit: int | None, agent: str | None, *, legacy: bool) -> None:
    """Print the history of a session as JSON lines."""

    async def work() -> None:
        async with target.open(may_start=True) as sandbox:
            found = await sandbox.get_session(session, agent=agent)
            if legacy:
                async for event in found.legacy_events(after=after, limit=limit):
                    _print_json(event)
            else:
                async for entry in found.events(after=after, limit=limit):
                    _print_json(asdict(entry))

    run_async(work())


@sessions.command()
@click.argument("session", shell_complete=complete_sessions)
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "jsonl"]),
    default="markdown",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file instead of stdout."
)
@_AGENT
@target_options
def export(target: Target, session: str, form: str, output: Path | None, agent: str | None) -> None:
    """Export a session as Markdown, or as JSON lines with every message."""

    async def work() -> None:
        async with target.open(may_start=True) as sandbox:
            query = {"format": form, "agent": agent}
            async with sandbox.api.stream(f"/v1/sessions/{session}/transcript", query=query) as response:
                sink = output.open("wb") if output is not None else sys.stdout.buffer
                try:
                    async for piece in response.aiter_bytes():
                        sink.write(piece)
                    sink.flush()
                finally:
                    if output is not None:
                        sink.close()

    run_async(work())


@sessions.command()
@click.argument("session", shell_complete=complete_sessions)
@_AGENT
@target_options
def terminate(target: Target, session: str, agent: str | None) -> None:
    """End a session for all clients. Its history is kept."""

    async def work() -> None:
        async with target.open(may_start=True) as sandbox:
            await (await sandbox.get_session(session, agent=agent)).terminate()

    run_async(work())
    if target.is_json:
        _print_json({"terminated": True})
    else:
        click.echo("terminated")


@sessions.command()
@click.argument("session", shell_complete=complete_sessions)
@click.option("--replay/--no-replay", default=True, show_default=True, help="Show the conversation so far first.")
@_AGENT
@target_options
def attach(target: Target, session: str, agent: str | None, *, replay: bool) -> None:
    """Follow a session live and answer its permission requests. Ctrl-C detaches; the session continues."""
    run_async(_attach(target, session, agent, replay=replay))


async def _attach(target: Target, name: str, agent: str | None, *, replay: bool) -> None:
    from rich.console import Console  # noqa: PLC0415

    from sandbox_agent.cli.approval import Approval  # noqa: PLC0415
    from sandbox_agent.cli.keyboard import quiet_control_keys  # noqa: PLC0415
    from sandbox_agent.cli.rendering import TurnView  # noqa: PLC0415

    console = Console(highlight=False)
    view = TurnView(console)
    approval = Approval("ask", console, view, leaves_unasked=True)
    async with target.open() as sandbox:
        join = sandbox.load_session if replay else sandbox.resume_session
        session = await join(name, agent=agent)
        if target.is_json:
            _answer_with(approval, session)
            async for envelope in session.envelopes():
                _print_json(envelope)
            return
        for envelope in session.replayed:
            view.show(envelope)
        view.pause()
        console.print(f"[dim]attached to {session.id} of {session.agent}; press Ctrl-C to detach[/]")
        _answer_with(approval, session)  # what is open is asked below the conversation that led to it
        with quiet_control_keys():
            async for envelope in session.envelopes():
                view.show(envelope)
                await asyncio.sleep(0)
        view.pause()
        console.print("[dim]the session has ended[/]")


def _answer_with(approval: Approval, session: Session) -> None:
    session.on_permission(approval.permission)
    session.on_question(approval.question)


_SHOWN = (
    ("session", "sessionId"),
    ("agent", "agent"),
    ("alias", "alias"),
    ("title", "title"),
    ("cwd", "cwd"),
    ("mode", "mode"),
    ("model", "model"),
    ("created", "createdAt"),
    ("updated", "updatedAt"),
    ("busy", "isBusy"),
    ("ended", "ended"),
    ("because", "endedReason"),
    ("events", "eventCount"),
)


def _plain(value: Any) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None else str(value)


def _ask_title(ask: dict[str, Any]) -> str:
    params = ask.get("params", {})
    if isinstance(params.get("title"), str):  # as version 2 of ACP asks
        return str(params["title"])
    return str((params.get("toolCall") or {}).get("title") or params.get("prompt") or ask.get("method"))


def _print_json(value: Any) -> None:
    from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

    print_json(value)
