"""`sandbox-agent nodes`: the servers of a cluster."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from sandbox_agent.cli.lazy import SuggestingGroup
from sandbox_agent.cli.target import Target, run_async, target_options


@click.group(cls=SuggestingGroup)
def nodes() -> None:
    """List the nodes of a cluster and take them out of service."""


@nodes.command("list")
@target_options
def list_(target: Target) -> None:
    """List nodes: state, version, sessions and address."""

    async def work() -> list[dict[str, Any]]:
        async with target.open() as sandbox:
            return list((await sandbox.api.get("/v1/nodes"))["nodes"])

    found = run_async(work())
    if target.is_json:
        from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415

        print_json(found)
        return
    from sandbox_agent.cli.tables import ago, print_table  # noqa: PLC0415

    rows = [
        (node["id"], node["state"], str(node["sessions"]), node["version"], ago(node["startedAt"]), node["url"])
        for node in found
    ]
    head = ("NODE", "STATE", "SESSIONS", "VERSION", "STARTED", "URL")
    print_table(head, rows, empty="this server is not part of a cluster")


@nodes.command()
@click.argument("node")
@target_options
def drain(target: Target, node: str) -> None:
    """Have NODE finish its turns, hand its sessions on and take no others."""
    _post(target, node, "drain")
    click.echo(f"node {node} drains; `sandbox-agent nodes list` shows when it has no sessions any more")


@nodes.command()
@click.argument("node")
@target_options
def resume(target: Target, node: str) -> None:
    """Have a drained NODE take sessions again."""
    _post(target, node, "resume")
    click.echo(f"node {node} takes sessions again")


def _post(target: Target, node: str, verb: str) -> None:
    async def work() -> None:
        async with target.open() as sandbox:
            await sandbox.api.post(f"/v1/nodes/{quote(node, safe='')}/{verb}")

    run_async(work())
