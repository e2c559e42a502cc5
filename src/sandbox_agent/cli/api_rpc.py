"""`sandbox-agent api v1 rpc` and `events`: raw envelopes to and from `/v1/rpc`, and the changes of everything."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from sandbox_agent.cli.jsonl import print_json
from sandbox_agent.cli.lazy import SuggestingGroup
from sandbox_agent.cli.target import Target, run_async, target_options
from sandbox_agent.core.frames import META
from sandbox_agent.errors import InvalidParams

if TYPE_CHECKING:
    from sandbox_agent.client.rpc.sse import ServerEvent

_PATH = "/v1/rpc"
_CONNECTION = "X-ACP-Connection-Id"
_LIMIT = click.option("--limit", type=click.IntRange(1), help="Stop after this many events.")
_ON = click.option("--connection", required=True, help="Connection id, as printed by `post` for initialize.")


@click.group(cls=SuggestingGroup)
def rpc() -> None:
    """Send JSON-RPC messages and stream events."""


@rpc.command()
@click.argument("text", metavar="MESSAGE")
@click.option("--connection", help="Connection id. Not needed for initialize, which opens a connection.")
@click.option("--agent", help="Agent to connect to, for initialize.")
@target_options
def post(target: Target, text: str, connection: str | None, agent: str | None) -> None:
    """Send a JSON-RPC message and print the response. MESSAGE is JSON, or - to read it from stdin.

    The id of a new connection is printed to stderr as `connection: ID`."""
    raw = sys.stdin.read() if text == "-" else text
    try:
        message = msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidParams(f"the message is not a JSON object: {error}") from None
    if agent is not None:
        ours = message.setdefault("params", {}).setdefault("_meta", {}).setdefault(META, {})
        ours["agent"] = agent
    run_async(_post(target, message, connection))


@rpc.command()
@_ON
@click.option(
    "--last-event-id", type=click.IntRange(0), help="Start after this event; replaces another reader of the stream."
)
@_LIMIT
@target_options
def stream(target: Target, connection: str, last_event_id: int | None, limit: int | None) -> None:
    """Stream events as JSON lines, each with `id` and `message`, until Ctrl-C."""
    run_async(_stream(target, connection, last_event_id, limit))


@click.command()
@click.option("--after", help="Resume after this event, as printed in `id`.")
@_LIMIT
@target_options
def events(target: Target, after: str | None, limit: int | None) -> None:
    """Follow every change on the server as JSON lines, each with `id` and `event`, until Ctrl-C."""

    async def work() -> None:
        headers = {} if after is None else {"Last-Event-ID": after}
        async for event in _follow(target, "/v1/events", headers, limit):
            print_json({"id": event.position, "event": msgspec.Raw(event.data)})

    run_async(work())


@rpc.command()
@_ON
@target_options
def close(target: Target, connection: str) -> None:
    """Close a connection. Its sessions continue."""

    async def work() -> None:
        async with target.open() as sandbox:
            await sandbox.api.request("DELETE", _PATH, headers={_CONNECTION: connection})

    run_async(work())


async def _post(target: Target, message: dict[str, Any], connection: str | None) -> None:
    headers = {_CONNECTION: connection} if connection is not None else {}
    async with target.open() as sandbox:
        response = await sandbox.api.request("POST", _PATH, body=message, headers=headers, timeout=None)
    opened = response.headers.get(_CONNECTION)
    if connection is None and opened is not None:
        click.echo(f"connection: {opened}", err=True)
    if response.content:
        sys.stdout.write(response.text + "\n")


async def _stream(target: Target, connection: str, last_event_id: int | None, limit: int | None) -> None:
    headers = {_CONNECTION: connection}
    if last_event_id is not None:
        headers["Last-Event-ID"] = str(last_event_id)
    async for event in _follow(target, _PATH, headers, limit):
        print_json({"id": event.id, "message": msgspec.Raw(event.data)})


async def _follow(target: Target, path: str, headers: dict[str, str], limit: int | None) -> AsyncIterator[ServerEvent]:
    """The events of a stream, `limit` of them at most."""
    from sandbox_agent.client.rpc.sse import EventParser  # noqa: PLC0415

    parser = EventParser()
    count = 0
    accepting = {**headers, "Accept": "text/event-stream"}
    async with target.open() as sandbox, sandbox.api.stream(path, headers=accepting, timeout=60.0) as response:
        async for chunk in response.aiter_raw():
            for event in parser.feed(chunk):
                yield event
                count += 1
                if count == limit:
                    return
