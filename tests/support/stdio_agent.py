"""A small ACP client over the stdio of an agent process. Every read has a deadline."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Responder = Callable[[Message], Message | None]

DEADLINE = 30.0


class StdioAgent:
    """`heard` collects every message in order; a line that is not JSON is kept as {"unparsed": bytes}."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self.heard: list[Message] = []
        self.respond: Responder = lambda _: None
        self._lines: deque[bytes] = deque()
        self._partial: list[bytes] = []
        self._ids = itertools.count(100)

    def send(self, message: Message) -> None:
        self.send_raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_raw(self, line: bytes) -> None:
        self.stdin.write(line + b"\n")

    def start(self, method: str, params: Message) -> int:
        request_id = next(self._ids)
        self.send({"id": request_id, "method": method, "params": params})
        return request_id

    async def read_line(self) -> bytes:
        while not self._lines:
            data = await asyncio.wait_for(self.stdout.read(1 << 20), DEADLINE)
            if not data:
                raise EOFError("the agent closed its output")
            *whole, rest = data.split(b"\n")
            for line in whole:
                self._lines.append(b"".join([*self._partial, line]))
                self._partial.clear()
            self._partial.append(rest)
        return self._lines.popleft()

    async def read(self) -> Message:
        """The next message; requests are answered on the way if `respond` gives a body for them."""
        line = await self.read_line()
        try:
            message: Message = json.loads(line)
        except (ValueError, RecursionError):
            message = {"unparsed": line}
        self.heard.append(message)
        if "method" in message and "id" in message and (body := self.respond(message)) is not None:
            self.send({"id": message["id"], **body})
        return message

    async def read_until(self, matches: Callable[[Message], bool]) -> Message:
        while True:
            message = await self.read()
            if matches(message):
                return message

    async def answer_to(self, request_id: int) -> Message:
        return await self.read_until(lambda message: message.get("id") == request_id and "method" not in message)

    async def call(self, method: str, params: Message) -> Any:
        """The result. An error answer fails the test."""
        answer = await self.answer_to(self.start(method, params))
        assert "error" not in answer, answer
        return answer["result"]

    async def refused(self, method: str, params: Message) -> Message:
        answer = await self.answer_to(self.start(method, params))
        assert "result" not in answer, answer
        error: Message = answer["error"]
        return error

    async def new_session(self, cwd: str = "/tmp") -> str:
        answer = await self.call("session/new", {"cwd": cwd, "mcpServers": []})
        session_id: str = answer["sessionId"]
        return session_id

    def start_prompt(self, session_id: str, text: str) -> int:
        return self.start("session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]})

    async def prompt(self, session_id: str, text: str) -> str:
        """Run a whole turn; the stop reason. What came meanwhile is all that `heard` holds then."""
        self.heard.clear()
        answer = await self.answer_to(self.start_prompt(session_id, text))
        assert "error" not in answer, answer
        stop: str = answer["result"]["stopReason"]
        return stop

    def updates(self, kind: str | None = None) -> list[Message]:
        found = [m["params"]["update"] for m in self.heard if m.get("method") == "session/update"]
        return [update for update in found if kind is None or update["sessionUpdate"] == kind]

    def said(self) -> str:
        chunks = self.updates("agent_message_chunk")
        return "".join(chunk["content"]["text"] for chunk in chunks if chunk["content"]["type"] == "text")

    async def exit_code(self) -> int:
        return await asyncio.wait_for(self.process.wait(), DEADLINE)


@asynccontextmanager
async def run_agent(*flags: str, state: Path, cwd: Path | None = None, **env: str) -> AsyncIterator[StdioAgent]:
    """The mock agent, not yet initialized; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sandbox_agent.mock_agent",
        *flags,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "SANDBOX_AGENT_MOCK_STATE": str(state), **env},
        cwd=cwd,
        limit=1024 * 1024,
        start_new_session=True,
    )
    agent = StdioAgent(process)
    try:
        yield agent
    finally:
        agent.stdin.close()
        if process.returncode is None:
            process.kill()
        await process.communicate()
