"""What a server that shares an agent must know of it: each check is one conversation with the agent itself.

The prompts are plain words, so that any model can follow them; they also hold the directives that scripted models of
tests obey.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from sandbox_agent.core.launch import Isolation, LaunchSpec
from sandbox_agent.errors import RemoteError, SandboxAgentError
from sandbox_agent.hub.agents.authentication import AUTH_REQUIRED
from sandbox_agent.hub.agents.host import Host
from sandbox_agent.hub.conformance.driver import Driver, allow, driving, leave_open, reject
from sandbox_agent.process import table

Verdict = Literal["ok", "note", "fail", "skipped"]
_MARK = "SANDBOX_AGENT_CHECK"
_LEFT_BEHIND = 2.0
"""Seconds that a process which the agent has detached may take to end by itself."""
_ROUNDS_AT_ONCE = 4
"""Turns of two sessions at the same time: some agents mix them up in one turn of several only."""
_QUIET = 0.5
"""Seconds in which what comes late is waited for."""


class Finding(msgspec.Struct, frozen=True):
    """`note` is a way of the agent that the server handles, or that users should know of."""

    check: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True, slots=True)
class Phrases:
    """How the agent is asked for something."""

    say: str = "Reply with this word only: {word}"
    run: str = "Run exactly this shell command with your tools, then say done.\nRUN:{command}"
    slow: str = "Count slowly from 1 to 300, one number a line, and do nothing else. SLOW:300"


MOCK = Phrases(say="{word}", run="tool {command}", slow="slow 300")


@dataclass(frozen=True, slots=True)
class Subject:
    """The agent, and where and how long it may work."""

    launch: LaunchSpec
    env: Mapping[str, str]
    host: Host
    work: Path
    timeout: float
    isolation: Isolation


class Conformance:
    """Runs every check against one agent. A check that cannot be made says why; the others are made all the same."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._token = secrets.token_hex(8)
        self._phrases = Phrases()

    async def __call__(self, found: Callable[[Finding], None] = lambda finding: None) -> list[Finding]:
        """`found` hears of each finding as it comes."""
        findings: list[Finding] = []
        checks: list[tuple[str, Callable[[], Awaitable[tuple[Verdict, str]]]]] = [
            ("handshake", self._handshake),
            ("turn", self._turn),
            ("sessions apart", self._sessions_apart),
            ("permission asked", self._permission_asked),
            ("permission rejected", self._permission_rejected),
            ("cancel", self._cancel),
            ("cancel while asking", self._cancel_while_asking),
            ("prompt not echoed", self._echo),
            ("resumes after a kill", self._resume),
            ("nothing left behind", self._nothing_left),
        ]
        stopped: str | None = None
        for name, check in checks:
            if stopped is not None and check != self._nothing_left:
                finding = Finding(name, "skipped", stopped)
            else:
                finding = await self._found(name, check)
            if name in {"handshake", "turn"} and finding.verdict != "ok":
                stopped = f"no {name}"
            findings.append(finding)
            found(finding)
        return findings

    async def _found(self, name: str, check: Callable[[], Awaitable[tuple[Verdict, str]]]) -> Finding:
        try:
            return Finding(name, *await check())
        except RemoteError as error:
            if error.body.get("code") == AUTH_REQUIRED:
                return Finding(name, "skipped", f"it needs a login: {error.detail}")
            return Finding(name, "fail", f"it answered with an error: {error.detail}")
        except SandboxAgentError as error:
            return Finding(name, "fail", error.detail)

    @asynccontextmanager
    async def _driving(self) -> AsyncIterator[Driver]:
        subject = self._subject
        env = {**subject.env, _MARK: self._token}
        async with driving(subject.launch, env, subject.host, str(subject.work), timeout=subject.timeout) as driver:
            if driver.agent_info.get("name") == "mock":
                self._phrases = MOCK
            yield driver

    async def _new_session(self, driver: Driver) -> str:
        return await driver.new_session(timeout=self._subject.timeout)

    async def _prompt(self, driver: Driver, session: str, text: str) -> str:
        return await driver.prompt(session, text, timeout=self._subject.timeout)

    def _word(self) -> str:
        return f"zebra{secrets.token_hex(4)}"

    def _file(self) -> Path:
        return self._subject.work / self._word()

    async def _handshake(self) -> tuple[Verdict, str]:
        async with self._driving() as driver:
            name = " ".join(str(driver.agent_info[part]) for part in ("name", "version") if part in driver.agent_info)
            return "ok", f"{name or 'it does not name itself'}, protocol version {int(driver.initialized.version)}"

    async def _turn(self) -> tuple[Verdict, str]:
        async with self._driving() as driver:
            session, word = await self._new_session(driver), self._word()
            reason = await self._prompt(driver, session, self._phrases.say.format(word=word))
            if reason != "end_turn":
                return "fail", f"the turn ended with {reason!r}"
            if word not in driver.said(session, "agent_message_chunk"):
                return "fail", "the answer does not contain what was asked for"
            return "ok", "answered"

    async def _sessions_apart(self) -> tuple[Verdict, str]:
        async with self._driving() as driver:
            sessions = [await self._new_session(driver), await self._new_session(driver)]
            words = [self._word(), self._word()]
            texts = [self._phrases.say.format(word=word) for word in words]
            for _ in range(_ROUNDS_AT_ONCE):
                await asyncio.gather(*(self._prompt(driver, *pair) for pair in zip(sessions, texts, strict=True)))
            for session, text in zip(sessions, texts, strict=True):
                await self._prompt(driver, session, text)
            await asyncio.sleep(_QUIET)  # what comes late is seen too
            mixed = any(
                word in driver.said(session)
                for session in driver.updates
                for word, own in zip(words, sessions, strict=True)
                if own != session
            )
            if not mixed:
                return "ok", "each session heard its own"
            said = "one session's updates come under another session's id"
            if self._subject.isolation == "session":
                return "note", f'{said}; with isolation = "session" the server keeps them apart'
            return "fail", f'{said}: set isolation = "session"'

    async def _permission_asked(self) -> tuple[Verdict, str]:
        async with self._driving() as driver:
            made = self._file()
            session = await self._new_session(driver)
            driver.answer = allow
            await self._prompt(driver, session, self._phrases.run.format(command=f"touch {made}"))
            if driver.permissions:
                return "ok", "it asks"
            if made.exists() or "tool_call" in driver.kinds(session):
                return "note", "it never asks: what it may do depends on its own settings and on the sandbox"
            return "skipped", "it made no tool call"

    async def _permission_rejected(self) -> tuple[Verdict, str]:
        async with self._driving() as driver:
            made = self._file()
            session = await self._new_session(driver)
            driver.answer = reject
            reason = await self._prompt(driver, session, self._phrases.run.format(command=f"touch {made}"))
            if not driver.permissions:
                return "skipped", "it did not ask"
            if made.exists():
                return "fail", "it did what was rejected"
            return "ok", f"obeyed; the turn ended with {reason!r}"

    async def _cancel(self) -> tuple[Verdict, str]:
        async with self._driving() as driver:
            session = await self._new_session(driver)
            turn = asyncio.ensure_future(self._prompt(driver, session, self._phrases.slow))
            return await self._cancelled(driver, session, turn, lambda d: "agent_message_chunk" in d.kinds(session))

    async def _cancel_while_asking(self) -> tuple[Verdict, str]:
        async with self._driving() as driver:
            made = self._file()
            session = await self._new_session(driver)
            driver.answer = leave_open
            turn = asyncio.ensure_future(
                self._prompt(driver, session, self._phrases.run.format(command=f"touch {made}"))
            )
            verdict, detail = await self._cancelled(driver, session, turn, lambda d: d.permissions)
            return ("fail", "it did what was cancelled") if made.exists() and driver.permissions else (verdict, detail)

    async def _cancelled(
        self, driver: Driver, session: str, turn: asyncio.Future[str], begun: Callable[[Driver], object]
    ) -> tuple[Verdict, str]:
        try:
            is_begun = await driver.until(lambda d: begun(d) or turn.done(), timeout=self._subject.timeout)
            if not is_begun or turn.done():
                return "skipped", "the turn was over before it could be cancelled"
            driver.cancel(session)
            try:
                reason = await asyncio.wait_for(asyncio.shield(turn), self._subject.timeout)
            except (TimeoutError, SandboxAgentError) as error:
                return "fail", f"the cancelled turn was not answered: {error or 'too late'}"
            before = len(driver.updates.get(session, ()))
            await asyncio.sleep(_QUIET)
            if "agent_message_chunk" in driver.kinds(session)[before:]:
                return "fail", "it goes on after it has answered"
            return ("ok", "ended") if reason == "cancelled" else ("note", f"ended with {reason!r}, not 'cancelled'")
        finally:
            turn.cancel()
            with contextlib.suppress(asyncio.CancelledError, SandboxAgentError):
                await turn

    async def _echo(self) -> tuple[Verdict, str]:
        async with self._driving() as driver:
            session, word = await self._new_session(driver), self._word()
            await self._prompt(driver, session, self._phrases.say.format(word=word))
            if word in driver.said(session, "user_message_chunk"):
                return "note", "it sends prompts back as user_message_chunk; the server passes them on once"
            return "ok", "no"

    async def _resume(self) -> tuple[Verdict, str]:
        async with self._driving() as driver:
            session, word = await self._new_session(driver), self._word()
            verbs = [verb for verb in ("resume", "load") if driver.initialized.can(verb)]
            await self._prompt(driver, session, self._phrases.say.format(word=word))
            await driver.kill()
        if not verbs:
            return "note", "it can neither resume nor load sessions: they end with its process"
        async with self._driving() as driver:
            params = {"sessionId": session, "cwd": str(self._subject.work), "mcpServers": []}
            failures = []
            for verb in verbs:
                try:
                    await driver.request(f"session/{verb}", params, timeout=self._subject.timeout)
                    break
                except RemoteError as error:
                    failures.append(f"{verb}: {error.detail}")
            else:
                return "fail", f"it cannot take its session up again: {'; '.join(failures)}"
            await asyncio.sleep(_QUIET)  # some replay only after their answer
            driver.updates.clear()
            word = self._word()
            await self._prompt(driver, session, self._phrases.say.format(word=word))
            if word not in driver.said(session, "agent_message_chunk"):
                return "fail", f"after {verb} it did not go on"
            return "ok", f"by {verb}"

    async def _nothing_left(self) -> tuple[Verdict, str]:
        """After all the processes above have been stopped."""
        deadline = asyncio.get_running_loop().time() + _LEFT_BEHIND
        while left := await asyncio.to_thread(self._left):
            if asyncio.get_running_loop().time() > deadline:
                for pid in left:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                return "note", f"{len(left)} processes that it had detached; the server ends them when it stops"
            await asyncio.sleep(0.1)
        return "ok", "all ended"

    def _left(self) -> set[int]:
        return {pid for pid in table.everyone() if table.carries(pid, _MARK, self._token)}
