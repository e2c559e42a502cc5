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

from sandbox_agent.cli.choices import refuse_what_was_not_applied
from sandbox_agent.cli.target import Target, run_async, target_options
from sandbox_agent.errors import SandboxAgentError

if TYPE_CHECKING:
    from sandbox_agent.client.sandbox import SandboxAgent
    from sandbox_agent.client.session import Session


@dataclass(frozen=True, slots=True)
class Wanted:
    prompt: str
    agent: str | None
    cwd: str
    resume: str | None
    approve: Any
    choices: dict[str, Any]


@click.command()
@click.argument("prompt")
@click.option("--agent", envvar="SANDBOX_AGENT_DEFAULT_AGENT", help="Agent to use.  [env: SANDBOX_AGENT_DEFAULT_AGENT]")
@click.option("--cwd", type=click.Path(path_type=Path), default=Path(), help="Working directory.  [default: current]")
@click.option("--model", help="Model to use.")
@click.option("--mode", help="Mode to use, such as plan or code.")
@click.option("--title", help="Title of the session.")
@click.option("--resume", metavar="SESSION", help="Resume a session, by id or alias.")
@click.option(
    "--approve",
    type=click.Choice(["ask", "allow", "reject"]),
    default="ask",
    show_default=True,
    help="How to answer permission requests.",
)
@target_options
def run(
    target: Target, prompt: str, agent: str | None, cwd: Path, resume: str | None, approve: str, **choices: str | None
) -> None:
    """Send a prompt to an agent and stream its answer. PROMPT may be - to read it from stdin.

    If no server is running, one is started for this command. Press Ctrl-C once to cancel the turn, twice to quit.
    The exit code tells how the turn ended."""
    if agent is None and resume is None:
        raise click.UsageError("--agent is missing; `sandbox-agent agents list` shows the available agents")
    text = sys.stdin.read() if prompt == "-" else prompt
    kept = {name: value for name, value in choices.items() if value is not None}
    wanted = Wanted(text, agent, str(cwd.resolve()), resume, approve, kept)
    sys.exit(run_async(_run_json(target, wanted) if target.is_json else _run(target, wanted)))


async def _run(target: Target, wanted: Wanted) -> int:
    from rich.console import Console  # noqa: PLC0415

    from sandbox_agent.cli.approval import Approval  # noqa: PLC0415
    from sandbox_agent.cli.exits import stop_code  # noqa: PLC0415
    from sandbox_agent.cli.keyboard import quiet_control_keys  # noqa: PLC0415
    from sandbox_agent.cli.rendering import TurnView  # noqa: PLC0415

    console = Console(highlight=False)
    view = TurnView(console)
    approval = Approval(wanted.approve, console, view)
    handlers = {"on_permission": approval.permission, "on_question": approval.question}
    async with target.open(may_start=True, **handlers) as sandbox:
        session = await _session(sandbox, wanted)
        console.print(f"[dim]{session.agent} · session {session.id}[/]")
        turn = session.prompt(wanted.prompt)
        with quiet_control_keys(), _interruptible(session, lambda text: view.note(text, "yellow")):
            async for update in turn:
                view.show(update)
        view.pause()
        console.print(f"[dim]stopped: {turn.stop_reason}[/]")
        return stop_code(turn.stop_reason)


async def _run_json(target: Target, wanted: Wanted) -> int:
    """One JSON object a line: `session`, then `update` and `permission`, then `stop` or `error`."""
    from sandbox_agent.cli.exits import exit_code, stop_code  # noqa: PLC0415
    from sandbox_agent.cli.jsonl import print_line  # noqa: PLC0415

    def decide(request: Any) -> Any:
        outcome = request.allow() if wanted.approve == "allow" else request.reject()
        print_line("permission", request=request.raw, answer=outcome)
        return outcome

    def decline(request: Any) -> Any:
        print_line("question", request=request.raw, answer=request.reject())
        return request.reject()

    try:
        async with target.open(may_start=True, on_permission=decide, on_question=decline) as sandbox:
            session = await _session(sandbox, wanted)
            print_line("session", sessionId=session.id, agent=session.agent, cwd=session.cwd)
            turn = session.prompt(wanted.prompt)
            with _interruptible(session, lambda _: None):
                async for envelope in turn.envelopes():
                    params = envelope.get("params", {})
                    print_line("update", sessionId=session.id, update=params.get("update", params))
            print_line("stop", sessionId=session.id, stopReason=turn.stop_reason)
            return stop_code(turn.stop_reason)
    except SandboxAgentError as error:
        print_line("error", error=error.kind, detail=error.detail, retryable=error.retryable)
        return exit_code(error)


async def _session(sandbox: SandboxAgent, wanted: Wanted) -> Session:
    if wanted.resume is None:
        session = await sandbox.create_session(agent=wanted.agent or "", cwd=wanted.cwd, **wanted.choices)
        await refuse_what_was_not_applied(session, wanted.choices)
        return session
    session = await sandbox.resume_session(wanted.resume, agent=wanted.agent)
    if "model" in wanted.choices:
        await session.set_model(wanted.choices["model"])
    if "mode" in wanted.choices:
        await session.set_mode(wanted.choices["mode"])
    return session


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
