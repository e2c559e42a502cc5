"""`sandbox-agent run`: one prompt, its turn on the screen, an exit code by its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sandbox_agent.cli.completion import complete_agents, complete_sessions
from sandbox_agent.cli.target import Target, run_async, target_options
from sandbox_agent.errors import AgentTimeout, SandboxAgentError

if TYPE_CHECKING:
    from sandbox_agent.cli.opening import WantedSession
    from sandbox_agent.client.session import Session

_STOP = 10.0
"""Seconds that an agent may take to end a turn that ran out of time."""


@dataclass(frozen=True, slots=True)
class Wanted:
    prompt: str
    approve: Any
    timeout: float | None
    is_quiet: bool
    session: WantedSession


@click.command()
@click.argument("prompt")
@click.option(
    "--agent",
    envvar="SANDBOX_AGENT_DEFAULT_AGENT",
    shell_complete=complete_agents,
    help="Agent to use.  [env: SANDBOX_AGENT_DEFAULT_AGENT]",
)
@click.option("--cwd", type=click.Path(path_type=Path), default=Path(), help="Working directory.  [default: current]")
@click.option("--model", help="Model to use.")
@click.option("--mode", help="Mode to use, such as plan or code.")
@click.option("--title", help="Title of the session.")
@click.option("--resume", metavar="SESSION", shell_complete=complete_sessions, help="Resume a session, by id or alias.")
@click.option("--continue", "is_newest", is_flag=True, help="Resume the newest session in the working directory.")
@click.option("--session", "name", metavar="NAME", help="Resume the session with this alias, or create it.")
@click.option(
    "--approve",
    type=click.Choice(["ask", "allow", "reject"]),
    help="How to answer permission requests.  [default: ask]",
)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="Cancel the turn after this many seconds.")
@click.option(
    "--no-wait",
    is_flag=True,
    help="Return when the server has taken the prompt, and print the session id. Needs a running server.",
)
@click.option("--quiet", "-q", "is_quiet", is_flag=True, help="Print only the answer; notes go to stderr.")
@target_options
def run(
    target: Target,
    prompt: str,
    agent: str | None,
    cwd: Path,
    resume: str | None,
    name: str | None,
    approve: str | None,
    timeout: float | None,
    *,
    is_newest: bool,
    is_quiet: bool,
    no_wait: bool,
    **choices: str | None,
) -> None:
    """Send a prompt to an agent and stream its answer. PROMPT may be - to read it from stdin.

    Options that are not given are taken from the [run] table of sandbox-agent.toml in the working directory or above.
    If no server is running, one is started for this command. Press Ctrl-C once to cancel the turn, twice to quit.
    The exit code tells how the turn ended."""
    from sandbox_agent.cli.opening import WantedSession  # noqa: PLC0415

    if resume is None and not is_newest:
        defaults = _project_defaults(cwd)
        agent = agent or defaults.pop("agent", None)
        approve, timeout = approve or defaults.pop("approve", None), timeout or defaults.pop("timeout", None)
        choices |= {name: value for name, value in defaults.items() if choices.get(name, "") is None}
    approve = approve or "ask"
    if (resume is not None) + is_newest + (name is not None) > 1:
        raise click.UsageError("--resume, --continue and --session exclude each other")
    if agent is None and resume is None and name is None and not is_newest:
        raise click.UsageError("--agent is missing; `sandbox-agent agents list` shows the available agents")
    if no_wait and timeout is not None:
        raise click.UsageError("--timeout needs somebody who waits: it excludes --no-wait")
    kept = {name: value for name, value in choices.items() if value is not None}
    if no_wait and approve != "ask":
        kept["permission_mode"] = approve
    session = WantedSession(agent, str(cwd.resolve()), resume, name, is_newest, kept)
    text = sys.stdin.read() if prompt == "-" else prompt
    wanted = Wanted(text, approve, timeout, is_quiet, session)
    running = _send if no_wait else _run_json if target.is_json else _run
    sys.exit(run_async(running(target, wanted)))


def _project_defaults(cwd: Path) -> dict[str, Any]:
    from sandbox_agent.cli.project import find_project  # noqa: PLC0415

    project = find_project(cwd.resolve())
    return {} if project is None else project.run.given


async def _run(target: Target, wanted: Wanted) -> int:
    from rich.console import Console  # noqa: PLC0415

    from sandbox_agent.cli.approval import Approval  # noqa: PLC0415
    from sandbox_agent.cli.keyboard import quiet_control_keys  # noqa: PLC0415
    from sandbox_agent.cli.opening import open_session  # noqa: PLC0415
    from sandbox_agent.cli.rendering import AnswerView, TurnView, View  # noqa: PLC0415

    console = Console(highlight=False, stderr=wanted.is_quiet)
    view: View = AnswerView(console, sys.stdout) if wanted.is_quiet else TurnView(console)
    approval = Approval(wanted.approve, console, view)
    handlers = {"on_permission": approval.permission, "on_question": approval.question}
    async with target.open(may_start=True, **handlers) as sandbox:
        session = await open_session(sandbox, wanted.session)
        if not wanted.is_quiet:
            console.print(f"[dim]{session.agent} · session {session.id}[/]")
        turn = session.prompt(wanted.prompt)
        with (
            quiet_control_keys(),
            _interruptible(session, lambda text: view.note(text, "yellow")),
            _limited(session, wanted.timeout) as limit,
        ):
            async for envelope in turn.envelopes():
                view.show(envelope)
        view.pause()
        if not wanted.is_quiet or turn.stop_reason != "end_turn":
            console.print(f"[dim]stopped: {turn.stop_reason}[/]")
        return _code(turn.stop_reason, limit, was_unasked=approval.was_unasked)


async def _send(target: Target, wanted: Wanted) -> int:
    """Leave the prompt to the server. Permissions wait for whoever attaches, unless --approve decides."""
    from sandbox_agent.cli.jsonl import print_json  # noqa: PLC0415
    from sandbox_agent.cli.opening import open_session  # noqa: PLC0415

    async with target.open() as sandbox:
        session = await open_session(sandbox, wanted.session)
        turn_id = await session.prompt(wanted.prompt).start()
    if target.is_json:
        print_json({"sessionId": session.id, "agent": session.agent, "turnId": turn_id})
    else:
        click.echo(session.id)
    return 0


async def _run_json(target: Target, wanted: Wanted) -> int:
    """One JSON object a line: `session`, then `update` and `permission`, then `stop` or `error`."""
    from sandbox_agent.cli.exits import exit_code, next_step  # noqa: PLC0415
    from sandbox_agent.cli.jsonl import print_line  # noqa: PLC0415
    from sandbox_agent.cli.opening import open_session  # noqa: PLC0415

    unasked: list[Any] = []

    def decide(request: Any) -> Any:
        outcome = request.allow() if wanted.approve == "allow" else request.reject()
        if wanted.approve == "ask":
            unasked.append(request)
        print_line("permission", request=request.raw, answer=outcome)
        return outcome

    def decline(request: Any) -> Any:
        print_line("question", request=request.raw, answer=request.reject())
        return request.reject()

    try:
        async with target.open(may_start=True, on_permission=decide, on_question=decline) as sandbox:
            session = await open_session(sandbox, wanted.session)
            print_line("session", sessionId=session.id, agent=session.agent, cwd=session.cwd)
            turn = session.prompt(wanted.prompt)
            with _interruptible(session, lambda _: None), _limited(session, wanted.timeout) as limit:
                async for envelope in turn.envelopes():
                    params = envelope.get("params", {})
                    print_line("update", sessionId=session.id, update=params.get("update", params))
            print_line("stop", sessionId=session.id, stopReason=turn.stop_reason)
            return _code(turn.stop_reason, limit, was_unasked=bool(unasked))
    except SandboxAgentError as error:
        step = next_step(error)
        advice = {} if step is None else {"hint": step}
        print_line("error", error=error.kind, detail=error.detail, retryable=error.retryable, **advice, data=error.data)
        return exit_code(error)


def _code(stop_reason: str | None, limit: _Limit, *, was_unasked: bool) -> int:
    from sandbox_agent.cli.exits import TIMED_OUT, UNASKED, stop_code  # noqa: PLC0415

    if limit.is_over and stop_reason == "cancelled":
        return TIMED_OUT
    return stop_code(stop_reason) or (UNASKED if was_unasked else 0)


@dataclass(slots=True)
class _Limit:
    is_over: bool = False


@contextlib.contextmanager
def _limited(session: Session, seconds: float | None) -> Iterator[_Limit]:
    """Cancel the turn after `seconds`. Raises AgentTimeout if the agent does not end it then."""
    limit = _Limit()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if seconds is None or task is None:
        yield limit
        return
    cancelling: list[asyncio.Task[None]] = []

    def run_out() -> None:
        limit.is_over = True
        cancelling.append(loop.create_task(session.cancel()))

    timers = [loop.call_later(seconds, run_out), loop.call_later(seconds + _STOP, task.cancel)]
    try:
        yield limit
    except asyncio.CancelledError:
        if limit.is_over and task.uncancel() == 0:
            raise AgentTimeout(f"the agent did not end the turn within {_STOP:g} s of its cancellation") from None
        raise
    finally:
        for timer in timers:
            timer.cancel()


@contextlib.contextmanager
def _interruptible(session: Session, say: Callable[[str], None]) -> Iterator[None]:
    """The first Ctrl-C cancels the turn, the second leaves."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    presses: list[asyncio.Task[None]] = []

    def interrupt() -> None:
        if presses:
            loop.remove_signal_handler(signal.SIGINT)
            if task is not None:
                task.cancel()
            return
        presses.append(loop.create_task(session.cancel()))
        say("cancelling; Ctrl-C again to leave")

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    except asyncio.CancelledError:
        if presses:
            raise KeyboardInterrupt from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGINT)
