"""`sandbox-agent processes`: what runs on the server's machine beside agents."""

from __future__ import annotations

import asyncio
import base64
import sys
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from sandbox_agent.cli.attaching import attach as attach_here
from sandbox_agent.cli.attaching import exit_code_of, stream
from sandbox_agent.cli.lazy import SuggestingGroup
from sandbox_agent.cli.target import Target, run_async, target_options
from sandbox_agent.client.processes import ProcessInfo

_OWNERS = click.Choice(["user", "agent"])


@click.group(cls=SuggestingGroup)
def processes() -> None:
    """List, follow, attach to and stop processes. Start one with `sandbox-agent exec`."""


@processes.command(name="list")
@click.option("--owner", type=_OWNERS, help="Only those of users, or of agents.")
@target_options
def list_(target: Target, owner: str | None) -> None:
    """List processes: those that run, and the newest that have exited."""

    async def ask() -> list[ProcessInfo]:
        async with target.open() as sandbox:
            return await sandbox.processes.list(owner=owner)

    found = run_async(ask())
    if target.is_json:
        _print_json(found)
        return
    from sandbox_agent.cli.tables import ago, print_table  # noqa: PLC0415

    rows = [
        (each.id, _status(each), each.owner, ago(_time(each.created_at_ms)), each.session_id or "", _words(each))
        for each in found
    ]
    print_table(("ID", "STATUS", "OWNER", "STARTED", "SESSION", "COMMAND"), rows, empty="no processes")


@processes.command()
@click.argument("process_id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the process exits.")
@click.option("--tail", type=click.IntRange(0), help="Start with the last N pieces of output.")
@target_options
def logs(target: Target, process_id: str, tail: int | None, *, follow: bool) -> None:
    """Print the output of a process."""
    run_async(_logs(target, process_id, tail, follow=follow))


@processes.command()
@click.argument("process_id", metavar="ID")
@click.option("--wait", type=click.FloatRange(0, 300), default=5.0, show_default=True, help="Seconds to wait.")
@target_options
def stop(target: Target, process_id: str, wait: float) -> None:
    """Stop a process and its whole process group (SIGTERM)."""
    _end(target, process_id, "stop", wait)


@processes.command()
@click.argument("process_id", metavar="ID")
@click.option("--wait", type=click.FloatRange(0, 300), default=5.0, show_default=True, help="Seconds to wait.")
@target_options
def kill(target: Target, process_id: str, wait: float) -> None:
    """Kill a process and its whole process group (SIGKILL)."""
    _end(target, process_id, "kill", wait)


@processes.command()
@click.argument("process_id", metavar="ID")
@target_options
def attach(target: Target, process_id: str) -> None:
    """Attach to a process: to its terminal (Ctrl-P Ctrl-Q detaches), or to its output. Exits with its exit code."""

    async def attaching() -> int:
        async with target.open() as sandbox:
            process = await sandbox.processes.get(process_id)
            if process.info.tty and sys.stdin.isatty():
                return await attach_here(process)
            return await stream(process, takes_input=process.info.interactive and process.info.is_running)

    sys.exit(run_async(attaching()))


@processes.command()
@click.argument("process_id", metavar="ID")
@target_options
def delete(target: Target, process_id: str) -> None:
    """Delete a process that has exited, with its output."""

    async def deleting() -> None:
        async with target.open() as sandbox:
            await (await sandbox.processes.get(process_id)).delete()

    run_async(deleting())


def _end(target: Target, process_id: str, verb: str, wait: float) -> None:
    async def ending() -> ProcessInfo:
        async with target.open() as sandbox:
            process = await sandbox.processes.get(process_id)
            return await (process.stop(wait=wait) if verb == "stop" else process.kill(wait=wait))

    info = run_async(ending())
    if target.is_json:
        _print_json(info)
    else:
        click.echo(f"{info.id}: {_status(info)}")
    if info.is_running:
        sys.exit(1)


async def _logs(target: Target, process_id: str, tail: int | None, *, follow: bool) -> None:
    async with target.open() as sandbox:
        page: dict[str, Any] = await sandbox.api.get(f"/v1/processes/{process_id}/logs", tail=tail)
        last = 0
        if page.get("cut"):
            click.echo(f"[the first {page['cut']['toSequence']} pieces of output are not kept any more]", err=True)
            last = page["cut"]["toSequence"]
        for entry in page["entries"]:
            last = entry["sequence"]
            _print(entry["stream"], base64.b64decode(entry["data"]))
        if follow:
            process = await sandbox.processes.get(process_id)
            async for output in process.output(after=last):
                await asyncio.to_thread(_print, output.stream, output.data)


def _print(stream_name: str, content: bytes) -> None:
    target = sys.stderr.buffer if stream_name == "stderr" else sys.stdout.buffer
    target.write(content)
    target.flush()


def _status(info: ProcessInfo) -> str:
    if info.is_running:
        return "running"
    return f"exited ({exit_code_of(info.exit_code, info.signal) if info.signal is None else info.signal})"


def _words(info: ProcessInfo) -> str:
    return " ".join([info.command, *info.args]).replace("\n", " ")


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


def _print_json(value: Any) -> None:
    from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

    print_json(msgspec.to_builtins(value))
