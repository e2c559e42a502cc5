"""Words that misbehave, on the wire or as a process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from sandbox_agent.mock_agent.turn import Turn
from sandbox_agent.mock_agent.wire import AUTH_REQUIRED, INTERNAL_ERROR, RpcError, encode, result_line
from sandbox_agent.mock_agent.words.table import number, word

_DEPTH = 100_000
_children: list[subprocess.Popen[bytes]] = []


@word("crash [CODE]", "writes three lines on stderr and exits at once with CODE, 3 by default")
async def crash(turn: Turn, rest: str) -> None:
    code = number(rest, default=3, low=0, high=255)
    turn.client.stdout.flush()
    sys.stderr.write(f"mock agent: about to crash\nmock agent: it was asked to\nmock agent: exit code {code}\n")
    sys.stderr.flush()
    os._exit(code)


@word("exit", "exits at once with code 0 and leaves the prompt unanswered")
async def leave(turn: Turn, rest: str) -> None:
    turn.client.stdout.flush()
    os._exit(0)


@word("hang", "never answers until cancelled")
async def hang(turn: Turn, rest: str) -> None:
    await asyncio.Event().wait()


@word("fail [CODE]", "answers the prompt with a JSON-RPC error, -32603 by default")
async def fail(turn: Turn, rest: str) -> None:
    code = number(rest, default=INTERNAL_ERROR, low=-(2**31), high=2**31)
    raise RpcError(code, "The prompt asked for a failure", {"word": "fail"})


@word("auth", "answers the prompt with error -32000, authentication required")
async def require_login(turn: Turn, rest: str) -> None:
    raise RpcError(AUTH_REQUIRED, "Authentication required")


@word("garbage", "writes a line that is not JSON, then says `after garbage`")
async def garbage(turn: Turn, rest: str) -> None:
    turn.client.stdout.send(b"this is not JSON {")
    turn.say("after garbage")


@word("badutf8", "writes a line that is not UTF-8, then says `after badutf8`")
async def badutf8(turn: Turn, rest: str) -> None:
    session_id = turn.session.session_id.encode()
    turn.client.stdout.send(
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"' + session_id + b'","update":'
        b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\xff\xfe\x80"}}}}'
    )
    turn.say("after badutf8")


@word("deep", "writes a line of JSON nested 100,000 levels deep, then says `after deep`")
async def deep(turn: Turn, rest: str) -> None:
    nested = b"[" * _DEPTH + b"]" * _DEPTH
    turn.client.stdout.send(b'{"jsonrpc":"2.0","method":"session/update","params":' + nested + b"}")
    turn.say("after deep")


@word("unknown-answer", "sends an answer with an id that nobody asked with, then says `after unknown-answer`")
async def unknown_answer(turn: Turn, rest: str) -> None:
    turn.client.stdout.send(encode({"jsonrpc": "2.0", "id": 987654321, "result": {}}))
    turn.say("after unknown-answer")


@word("null-answer", "sends error answers with id null and without an id, then says `after null-answer`")
async def null_answer(turn: Turn, rest: str) -> None:
    error = {"code": -32700, "message": "Parse error"}
    turn.client.stdout.send(encode({"jsonrpc": "2.0", "id": None, "error": error}))
    turn.client.stdout.send(encode({"jsonrpc": "2.0", "error": error}))
    turn.say("after null-answer")


@word("no-session", "sends the notification `_auth/status_update`, which names no session, then says `done`")
async def no_session(turn: Turn, rest: str) -> None:
    params = {"status": "signed-out"}
    turn.client.stdout.send(encode({"jsonrpc": "2.0", "method": "_auth/status_update", "params": params}))
    turn.say("done")


@word("double-answer", "answers the prompt twice")
async def double_answer(turn: Turn, rest: str) -> None:
    answer = result_line(turn.request_id, {"stopReason": "end_turn"})
    turn.after_answer.append(lambda: turn.client.stdout.send(answer))


@word("late-update", "sends one more message chunk right after the answer")
async def late_update(turn: Turn, rest: str) -> None:
    turn.after_answer.append(lambda: turn.say("late"))


@word("spawn", "starts `sleep 300` in the agent's process group and says `spawned PID`")
async def spawn(turn: Turn, rest: str) -> None:
    nowhere = subprocess.DEVNULL
    child = subprocess.Popen(["sleep", "300"], stdin=nowhere, stdout=nowhere, stderr=nowhere)  # noqa: ASYNC220
    _children.append(child)
    turn.say(f"spawned {child.pid}")
