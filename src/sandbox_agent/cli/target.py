"""Which server a command talks to, and how its output looks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from sandbox_agent.client.sandbox import DEFAULT_URL, SandboxAgent
from sandbox_agent.errors import ConnectionLost, SandboxAgentError, Unauthorized

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_PROBE = 2.0


@dataclass(frozen=True, slots=True)
class Target:
    endpoint: str | None = None
    token: str | None = None
    is_json: bool = False
    ca_file: str | None = None

    @contextlib.asynccontextmanager
    async def open(self, *, may_start: bool = False, **handlers: Any) -> AsyncIterator[SandboxAgent]:
        """The server that was named; else the daemon, or whatever serves the default address; else, if it may, one
        for this command alone."""
        found = await self._find()
        if found is not None:
            url, token = found
            connecting = SandboxAgent.connect(url, token=token, retry_for=20.0, ca_file=self.ca_file, **handlers)
            async with connecting as sandbox:
                yield sandbox
            return
        if not may_start:
            raise ConnectionLost(f"no server answers at {DEFAULT_URL}")
        async with contextlib.AsyncExitStack() as stack:
            yield await _start(stack, handlers)

    @property
    def is_elsewhere(self) -> bool:
        """Whether a server was named or a daemon runs: its agents may be others than those of the files here."""
        from sandbox_agent.cli.daemon_state import read_state  # noqa: PLC0415

        state = None if self.endpoint is not None else read_state()
        return self.endpoint is not None or (state is not None and state.is_alive())

    async def _find(self) -> tuple[str, str | None] | None:
        if self.endpoint is not None:
            return self.endpoint, self.token
        from sandbox_agent.cli.daemon_state import read_state  # noqa: PLC0415

        state = read_state()
        if state is not None and state.is_alive():
            return state.url, self.token or state.token
        return (DEFAULT_URL, self.token) if await is_serving(DEFAULT_URL) else None


async def is_serving(url: str) -> bool:
    """Whether a server of ours answers there, with or without a token; another program may have the port."""
    try:
        async with asyncio.timeout(_PROBE):
            async with SandboxAgent.connect(url) as sandbox:
                health = await sandbox.health()
    except Unauthorized:
        return True
    except (SandboxAgentError, ValueError, TimeoutError):
        return False
    return isinstance(health, dict) and {"status", "version", "store"} <= health.keys()


async def _start(stack: contextlib.AsyncExitStack, handlers: dict[str, Any]) -> SandboxAgent:
    """A server of our own. A data directory that another server uses costs the history, not the run."""
    sandbox = await stack.enter_async_context(SandboxAgent.start(flags=("--log-level", "warning"), **handlers))
    kept = (await sandbox.health())["store"]
    if kept["kind"] == "memory" and kept.get("problem"):
        click.echo("note: another server uses the data directory; this session's history is not kept", err=True)
    return sandbox


def target_options(command: F) -> F:
    """--endpoint, --token, --ca-file and --json, as on the main command; those given here win. Passes `target`."""

    @click.option("--endpoint", metavar="URL", help="Server to use.  [env: SANDBOX_AGENT_ENDPOINT]")
    @click.option("--token", metavar="TOKEN", help="Access token of the server.  [env: SANDBOX_AGENT_TOKEN]")
    @click.option(
        "--ca-file",
        metavar="FILE",
        help="Trust the certificate authorities in this PEM file.  [env: SANDBOX_AGENT_CA_FILE]",
    )
    @click.option("--json", "is_json", is_flag=True, default=None, help="Output JSON.")
    @functools.wraps(command)
    def wrapped(
        *args: Any, endpoint: str | None, token: str | None, ca_file: str | None, is_json: bool | None, **kwargs: Any
    ) -> Any:
        given = click.get_current_context().find_object(dict) or {}
        target = Target(
            endpoint or given.get("endpoint"),
            token or given.get("token"),
            bool(is_json or given.get("is_json")),
            ca_file or given.get("ca_file"),
        )
        return command(*args, target=target, **kwargs)

    return wrapped  # type: ignore[return-value]


def run_async(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone; nothing to say to it
        sys.exit(0)
