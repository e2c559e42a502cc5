"""Words that ask the client for something. They ask whether or not the client declared that it can answer."""

from __future__ import annotations

import asyncio
import shlex
from typing import Any

from sandbox_agent.mock_agent.turn import Misuse, Turn, TurnCancelled
from sandbox_agent.mock_agent.wire import Refusal, encode
from sandbox_agent.mock_agent.words.hosting import read_own, run_own, write_own
from sandbox_agent.mock_agent.words.table import number, word

PERMISSION_OPTIONS = [
    {"optionId": "yes-once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "yes-always", "name": "Allow always", "kind": "allow_always"},
    {"optionId": "no-once", "name": "Reject once", "kind": "reject_once"},
    {"optionId": "no-always", "name": "Reject always", "kind": "reject_always"},
]
_ALLOWING = {"yes-once", "yes-always"}


@word(
    "tool [COMMAND]",
    "a tool call of kind `execute` that asks for permission: on allow it runs (in play) and completes, on "
    "reject it fails, on `cancelled` the turn ends",
)
async def run_tool(turn: Turn, rest: str) -> None:
    command = rest or "echo hello"
    call = {
        "toolCallId": turn.new_call_id(),
        "title": f"Run {command}",
        "kind": "execute",
        "status": "pending",
        "rawInput": {"command": command},
    }
    if await _is_allowed(turn, call):
        output = f"(the output of {command})"
        _progress(turn, call, status="in_progress")
        _progress(turn, call, status="completed", content=[_text_content(output)], rawOutput={"exitCode": 0})
        turn.say("The tool ran.")


@word("edit [PATH]", "a tool call of kind `edit` with a diff, with permission as for `tool`; no file is changed")
async def run_edit(turn: Turn, rest: str) -> None:
    path = turn.resolve(rest or "notes.txt")
    diff = {"type": "diff", "path": path, "oldText": "hello\n", "newText": "hello, world\n"}
    call = {
        "toolCallId": turn.new_call_id(),
        "title": f"Edit {path}",
        "kind": "edit",
        "status": "pending",
        "locations": [{"path": path, "line": 1}],
        "content": [diff],
    }
    if await _is_allowed(turn, call):
        _progress(turn, call, status="in_progress")
        _progress(turn, call, status="completed", content=[diff])
        turn.say(f"Edited {path}.")


@word(
    "question [multi]",
    "asks `_sandboxagent/session/request_question` (with `multi`: several may be chosen) and says the answer as JSON",
)
async def question(turn: Turn, rest: str) -> None:
    answer = await turn.ask(
        "_sandboxagent/session/request_question",
        {
            "questionId": turn.new_call_id().replace("call", "question"),
            "prompt": "Which colour?",
            "options": [{"id": "red", "label": "Red"}, {"id": "green", "label": "Green"}],
            "multiSelect": rest == "multi",
        },
    )
    turn.say(f"The answer is {encode(answer).decode()}")


@word("elicit", "asks `elicitation/create` with a form of two fields and says the answer as JSON")
async def elicit(turn: Turn, rest: str) -> None:
    fields = {
        "name": {"type": "string", "title": "Name"},
        "colour": {"type": "string", "title": "Colour", "enum": ["red", "green"]},
    }
    schema = {"type": "object", "properties": fields, "required": ["name"]}
    params = {"mode": "form", "message": "Who are you?", "requestedSchema": schema}
    answer = await turn.ask("elicitation/create", params)
    turn.say(f"The answer is {encode(answer).decode()}")


@word(
    "read PATH [LINE [LIMIT]]",
    "reads a file through the client (`fs/read_text_file`; a relative PATH is taken from the session's "
    "directory) and says its text; in version 2 the agent reads it itself",
)
async def read(turn: Turn, rest: str) -> None:
    path, *window = shlex_split(rest)
    params: dict[str, Any] = {"path": turn.resolve(path)}
    for key, given in zip(("line", "limit"), window, strict=False):
        params[key] = number(given, default=None, low=0, high=2**31)
    if turn.client.version == 2:
        turn.say(read_own(params["path"], line=params.get("line"), limit=params.get("limit")))
        return
    answer = await turn.ask("fs/read_text_file", params)
    turn.say(_field(answer, "content"))


@word("write PATH TEXT", "writes TEXT to a file through the client (`fs/write_text_file`), in version 2 itself")
async def write(turn: Turn, rest: str) -> None:
    path, _, text = rest.partition(" ")
    if not path:
        raise Misuse("PATH is missing")
    if turn.client.version == 2:
        write_own(turn.resolve(path), text)
    else:
        await turn.ask("fs/write_text_file", {"path": turn.resolve(path), "content": text})
    turn.say(f"Wrote {len(text)} characters to {turn.resolve(path)}")


@word(
    "terminal CMD [ARG…]",
    "runs a command in the client's terminal (create, wait_for_exit, output, release; killed on cancel) as a "
    "tool call with terminal content, and says exit code and output; in version 2 in a terminal of its own",
)
async def terminal(turn: Turn, rest: str) -> None:
    command, *args = shlex_split(rest)
    if turn.client.version == 2:
        await run_own(turn, command, args)
        return
    params = {"command": command, "args": args, "cwd": turn.session.cwd, "outputByteLimit": 1_000_000}
    terminal_id = _field(await turn.ask("terminal/create", params), "terminalId")
    this = {"terminalId": terminal_id}
    call = {
        "toolCallId": turn.new_call_id(),
        "title": f"Run {rest}",
        "kind": "execute",
        "status": "in_progress",
        "content": [{"type": "terminal", "terminalId": terminal_id}],
    }
    turn.update({"sessionUpdate": "tool_call", **call})
    try:
        ended = await turn.ask("terminal/wait_for_exit", this)
        output = _field(await turn.ask("terminal/output", this), "output")
    except asyncio.CancelledError:
        for method in ("terminal/kill", "terminal/release"):
            turn.client.ask(method, {"sessionId": turn.session.session_id, **this})[1].cancel()
        raise
    await turn.ask("terminal/release", this)
    exit_code = ended.get("exitCode") if isinstance(ended, dict) else None
    _progress(turn, call, status="completed" if exit_code == 0 else "failed")
    turn.say(f"exit code {exit_code}\n{output}")


def shlex_split(rest: str) -> list[str]:
    try:
        parts = shlex.split(rest)
    except ValueError as error:
        raise Misuse(str(error)) from None
    if not parts:
        raise Misuse("an argument is missing")
    return parts


async def _is_allowed(turn: Turn, call: dict[str, Any]) -> bool:
    """Announce the call and ask; where it is not allowed, the call has failed. Raises TurnCancelled."""
    turn.update({"sessionUpdate": "tool_call", **call})
    try:
        named = {"toolCallId": call["toolCallId"]} if turn.quirks.bare_permissions else call
        answer = await turn.ask_permission({"toolCall": named, "options": PERMISSION_OPTIONS})
    except Refusal as error:
        _progress(turn, call, status="failed", content=[_text_content(f"no permission: {error.message}")])
        raise
    outcome = answer.get("outcome") if isinstance(answer, dict) else None
    chosen = outcome if isinstance(outcome, dict) else {}
    if chosen.get("outcome") == "cancelled":
        raise TurnCancelled
    if chosen.get("outcome") == "selected" and chosen.get("optionId") in _ALLOWING:
        return True
    reason = "withdrawn" if answer is None else "rejected"
    _progress(turn, call, status="failed", content=[_text_content(f"The permission was {reason}.")])
    turn.say(f"The permission was {reason}.")
    return False


def _progress(turn: Turn, call: dict[str, Any], **fields: Any) -> None:
    turn.update({"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], **fields})


def _text_content(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _field(answer: Any, name: str) -> str:
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, str):
        raise Refusal(0, f"an answer without {name}")
    return value
