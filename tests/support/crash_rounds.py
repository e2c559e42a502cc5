"""A server that is killed again and again while clients talk to it, on a disk that tears, flips and fills up.

After each death the files are read as they are: everything that a client was told must be in them, and every turn that
an agent ran. Then they are damaged, the server is started on them, and what is missing must be what the damage took.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from sandbox_agent.errors import StoreError
from sandbox_agent.store import SqliteStore
from support import counting_agent
from support.disk import SmallDisk
from support.rpc import Events, RpcClient, connected
from support.server import Server, running_server
from support.store_words import read_all, sqlite_store
from support.torn_files import Damage, inflict

TALKS = 3
ROUNDS_OF_A_TALK = 6
LOST = "_sandboxagent/history/lost"
_SPARE_BYTES = 4 * 1024 * 1024
"""Free on the disk after each round, when nobody else fills it: histories of so few sessions take a fraction."""
_WORDS = {"agent_message_chunk", "agent_thought_chunk"}

Word = tuple[str, str]
History = dict[int, dict[str, Any]]


class Broken(AssertionError):
    """A promise was not kept."""


@dataclass
class Talk:
    """One session as its clients know it."""

    session: str
    told: list[Word] = field(default_factory=list)
    """What the agent said, as it reached us or as we read it later."""
    texts: dict[str, str] = field(default_factory=dict)
    """Every turn that was ever sent, by its id."""
    answered: set[str] = field(default_factory=set)
    torn: set[str] = field(default_factory=set)
    """Turns that the damage made the server forget: sent again, they would run again."""
    unanswerable: set[str] = field(default_factory=set)
    """Turns that were answered, and whose answer was lost with a full disk or with damage: known to have run."""
    is_warned: bool = False
    """Whether its client was told in the last round that history is not being written."""
    rounds: int = 0

    def open_turns(self) -> list[str]:
        return [turn for turn in self.texts if turn not in self.answered | self.torn]


@dataclass(frozen=True)
class Kept:
    """What the files know of a session."""

    history: History
    turns: dict[str, tuple[bool, bytes | None]]
    """Whether a turn is known to have run, and its answer."""


@dataclass
class Tally:
    rounds: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)
    """What happened, in order: for whoever has to find out why a promise was broken."""


class CrashRounds:
    def __init__(
        self, home: Path, disk: SmallDisk, seed: int, *, longest: float = 1.0, keep: Path | None = None
    ) -> None:
        """`longest`: seconds that a server lives while clients talk to it. `keep`: where the files are copied to that
        broke a promise."""
        self.tally = Tally()
        self._keep = keep
        self._longest = longest
        self._home = home
        self._disk = disk
        self._choice = random.Random(seed)
        self._ledger = home / "ledger"
        self._database = disk.path / "history.db"
        self._talks: list[Talk] = []
        self._before: dict[str, Kept] = {}
        self._damage = Damage.NONE
        self._turns = 0
        self._is_killed = False
        self._was_full = False

    async def run(self, rounds: int) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        try:
            for _ in range(rounds):
                await self._round()
            async with self._server() as server:
                await self._check_restarted(server)
        except Broken:
            self._keep_evidence()
            raise

    def _keep_evidence(self) -> None:
        if self._keep is None:
            return
        shutil.copytree(self._disk.path, self._keep / "data", dirs_exist_ok=True)
        shutil.copytree(self._home, self._keep / "home", dirs_exist_ok=True)
        (self._keep / "story").write_text("\n".join(self.tally.story))
        told = {talk.session: talk.told for talk in self._talks}
        kept = {session: kept.history for session, kept in self._before.items()}
        (self._keep / "told.json").write_text(json.dumps({"told": told, "kept": kept}))

    async def _round(self) -> None:
        self._is_killed = self._was_full = False
        fills = self._choice.random() < 0.25
        async with self._server() as server:
            await self._check_restarted(server)
            await self._talk_until_killed(server, fills=fills)
        if self._disk.is_full and self._choice.random() < 0.5:
            has_started = await self._starts_on_a_full_disk()
            self.tally.facts["starts on a full disk" if has_started else "refusals to start on a full disk"] += 1
        self._disk.free()
        self._check_ledger()
        self._before = await self._look_into_files()
        self._check_kept()
        self._damage = self._choice.choice(list(Damage))
        if not inflict(self._damage, self._database, self._choice):
            self._damage = Damage.NONE
        kind = f"{self._damage}{', disk full' if self._was_full else ''}"
        self.tally.rounds[kind] += 1
        free = shutil.disk_usage(self._disk.path).free
        if free < _SPARE_BYTES:
            raise Broken(f"the server's own files have filled the disk: {free} bytes are free")
        self.tally.story.append(f"round {sum(self.tally.rounds.values())} ends with {kind}, {free} bytes free")
        if self._damage is not Damage.NONE:
            await self._note_torn_turns()

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[Server]:
        command = [sys.executable, str(Path(counting_agent.__file__)), str(self._ledger)]
        config = f'[agents.counting]\ncommand = {command!r}\nenv_passthrough = ["SANDBOX_AGENT_MOCK_STATE"]\n'
        flags = ("--no-token", "--data-dir", str(self._disk.path))
        async with running_server(self._home, *flags, config=config) as server:
            yield server

    async def _starts_on_a_full_disk(self) -> bool:
        """It may refuse, with a reason, but nothing may be worse for having tried."""
        try:
            async with self._server() as server:
                server.kill()
                await server.process.wait()
        except AssertionError as refused:
            if "full" not in str(refused) and "No space" not in str(refused):
                raise Broken(f"no reason given: {refused}") from refused
            return False
        return True

    async def _talk_until_killed(self, server: Server, *, fills: bool) -> None:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(connected(server.url, "counting")) for _ in range(TALKS)]
            for talk in [talk for talk in self._talks if talk.rounds >= ROUNDS_OF_A_TALK]:
                await clients[0].call("session/delete", {"sessionId": talk.session})
                self._talks.remove(talk)
            while len(self._talks) < TALKS:
                self._talks.append(Talk(await clients[0].new_session()))
            talking = [
                asyncio.create_task(self._talk(talk, client)) for talk, client in zip(self._talks, clients, strict=True)
            ]
            await asyncio.sleep(self._choice.uniform(0.05, self._longest))
            if fills:
                self._was_full = True
                self._disk.fill()
                await asyncio.sleep(self._choice.uniform(0.0, 0.6))
                if self._choice.random() < 0.5:
                    self._disk.free()
                    await asyncio.sleep(self._choice.uniform(0.0, 0.6))
            self._is_killed = True
            server.kill()
            await server.process.wait()
            await asyncio.gather(*talking)

    async def _talk(self, talk: Talk, client: RpcClient) -> None:
        talk.rounds += 1
        async with client.stream() as events:
            try:
                await client.call("session/resume", {"sessionId": talk.session, "cwd": "/tmp"})
                while not self._is_killed:
                    await self._turn(talk, client)
            except httpx.TransportError:
                if not self._is_killed:
                    raise
            await events.wait_until(lambda e: e.is_over)
        talk.told += _words_told(events, talk.session)
        talk.is_warned = any("store_degraded" in str(message) for message in events.messages)

    async def _turn(self, talk: Talk, client: RpcClient) -> None:
        """A new turn, or one whose answer did not come, or one that was answered; at times from two at once."""
        again = talk.open_turns() if self._choice.random() < 0.7 else sorted(talk.answered - talk.torn)
        if again and self._choice.random() < 0.5:
            turn = self._choice.choice(again)
            self.tally.facts["turns sent again"] += 1
        else:
            self._turns += 1
            turn = f"turn-{self._turns}"
            talk.texts[turn] = f"thought {turn}; chunks {self._choice.randrange(1, 300)} {20 + self._turns}"
        at_once = self._choice.choice((1, 1, 2))
        self.tally.story.append(f"sent {turn} in {talk.session} {at_once} times")
        sent = [asyncio.create_task(client.prompt(talk.session, talk.texts[turn], turnId=turn)) for _ in range(at_once)]
        for answer in await asyncio.gather(*sent, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            self.tally.story.append(f"answered {turn} {answer.get('error', 'with a result')}")
            if "result" in answer:
                talk.answered.add(turn)
            self.tally.answers[answer.get("error", {}).get("message", "a result")[:60]] += 1

    def _check_ledger(self) -> None:
        """No turn ran twice, but for those that a damaged file has forgotten."""
        ran = Counter(_turn_of(line) for line in self._ledger.read_text().splitlines())
        self.tally.facts["turns run"] = sum(ran.values())
        torn = {turn for talk in self._talks for turn in talk.torn}
        if twice := [turn for turn, times in ran.items() if times > 1 and turn not in torn]:
            told = [line for line in self.tally.story if line.startswith("round") or twice[0] in line.split()]
            raise Broken(f"ran twice: {twice}\n" + "\n".join(told[-40:]))
        for talk in self._talks:
            if never := talk.answered - ran.keys():
                raise Broken(f"answered and never run: {never}")

    async def _look_into_files(self) -> dict[str, Kept]:
        """By the store itself, on a copy."""
        copy = self._home / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for file in self._database.parent.glob("history.db*"):
            shutil.copy(file, copy / file.name)
        store = sqlite_store(copy / "history.db")
        await store.open()
        try:
            found = {talk.session: await _kept(store, talk) for talk in self._talks}
            return {session: kept for session, kept in found.items() if kept is not None}
        finally:
            await store.close()

    def _check_kept(self) -> None:
        """What clients were told is in the files of a server that was only killed."""
        ran = {_turn_of(line) for line in self._ledger.read_text().splitlines()}
        for talk in self._talks:
            kept = self._before.get(talk.session)
            if kept is None:
                raise Broken(f"session {talk.session} is gone")
            words = _words_kept(kept.history)
            if words[: len(talk.told)] != talk.told:
                missing = len(talk.told) - _common(words, talk.told)
                if not self._was_full:
                    raise Broken(f"{missing} of {len(talk.told)} words that a client was told are missing")
                warned = "after" if talk.is_warned else "in the half second before"
                self.tally.facts[f"words lost with a full disk, {warned} its warning"] += missing
            self.tally.facts["words compared"] += len(talk.told)
            talk.told = words
            for turn, (is_known, answer) in kept.turns.items():
                if turn in ran and not is_known and turn not in talk.torn:
                    raise Broken(f"{turn} ran, and is not known")
                if turn in talk.answered - talk.torn - talk.unanswerable and answer is None:
                    if not self._was_full:
                        raise Broken(f"{turn} was answered, and its answer is not known")
                    talk.unanswerable.add(turn)

    async def _note_torn_turns(self) -> None:
        try:
            left = await self._look_into_files()
        except StoreError as error:
            raise Broken(f"the damaged store does not open: {error}") from error
        for talk in self._talks:
            before = self._before[talk.session].turns
            after = left[talk.session].turns if talk.session in left else {}
            torn = {turn for turn, (is_known, _) in before.items() if is_known and not after.get(turn, (False,))[0]}
            talk.torn |= torn
            self.tally.story += [f"forgotten {turn}" for turn in torn]
            talk.unanswerable |= {turn for turn, (_, answer) in after.items() if answer is None}
            self.tally.facts["turns forgotten by damage"] += len(torn)

    async def _check_restarted(self, server: Server) -> None:
        """What the server gives is what the files had before the damage, less what the damage took."""
        self.tally.facts["starts"] += 1
        async with connected(server.url, "counting") as client:
            health = (await client.http.get("/v1/health")).json()
            for talk in list(self._talks):
                before = self._before.get(talk.session)
                if before is None:
                    continue
                after = await _history(client, talk.session)
                if after is None:
                    self._allow(f"session {talk.session}", Damage.CUT, Damage.FLIPPED, Damage.WAL)
                    self.tally.facts["sessions gone with damage"] += 1
                    self._talks.remove(talk)
                    continue
                self._compare(before.history, after, is_told=bool(health["store"]["setAside"]))
                talk.told = _words_kept(after)
        for aside in self._disk.path.glob("*.damaged.*"):
            aside.unlink()

    def _compare(self, before: History, after: History, *, is_told: bool) -> None:
        told = _told_as_lost(after)
        last = max(after, default=0)
        changed = [number for number in before.keys() & after.keys() if before[number] != after[number]]
        changed = [number for number in changed if number not in told]
        gone = before.keys() - after.keys() - told
        tail = {number for number in gone if number > last}
        if changed and self._damage in {Damage.NONE, Damage.TORN}:
            raise Broken(f"entries {changed[:9]} are others than before")
        if gone - tail:
            raise Broken(f"entries {sorted(gone - tail)[:9]} are missing, and nobody is told")
        if tail:
            self._allow(f"entries {min(tail)} to {max(tail)}", Damage.CUT, Damage.FLIPPED, Damage.WAL)
            if self._damage is Damage.FLIPPED and not is_told:
                raise Broken(f"entries {min(tail)} to {max(tail)} are gone, and health does not say so")
        self.tally.facts["entries compared"] += len(before)
        self.tally.facts["entries lost inside, told"] += len(told & before.keys() - _notices(before))
        self.tally.facts["entries lost at the end"] += len(tail)

    def _allow(self, what: str, *damages: Damage) -> None:
        if self._damage not in damages:
            raise Broken(f"{what} gone after {self._damage}")


async def _kept(store: SqliteStore, talk: Talk) -> Kept | None:
    records = await store.find_sessions(talk.session)
    if not records:
        return None
    key = records[0].key
    history = {entry.sequence: json.loads(entry.envelope) for entry in await read_all(store, key.stream)}
    _check_holes(history)
    stored = {turn: await store.get_turn(key, turn) for turn in talk.texts}
    # What was refused is stored with an empty answer, and may run: damage can take the turn back to that.
    has_run = {turn: (is_known and answer != b"", answer or None) for turn, (is_known, answer) in stored.items()}
    return Kept(history, has_run)


async def _history(client: RpcClient, session: str) -> History | None:
    """None when the server does not know the session."""
    found: History = {}
    has_more = True
    while has_more:
        params = {"sessionId": session, "after": max(found, default=0), "limit": 10_000}
        answer = await client.request("_sandboxagent/session/events", params)
        if "error" in answer:
            if "no session" not in answer["error"]["message"]:
                raise Broken(f"{answer}")
            return None
        found |= {event["sequence"]: event["envelope"] for event in answer["result"]["events"]}
        has_more = answer["result"]["hasMore"]
    _check_holes(found)
    return found


def _check_holes(history: History) -> None:
    expected = 1
    for number, envelope in history.items():
        first = envelope["params"]["fromSequence"] if envelope.get("method") == LOST else number
        if first > expected or number < expected:
            raise Broken(f"entry {number} follows {expected - 1}, and no notice says why")
        expected = number + 1


def _notices(history: History) -> set[int]:
    return {number for number, envelope in history.items() if envelope.get("method") == LOST}


def _told_as_lost(history: History) -> set[int]:
    told: set[int] = set()
    for number in _notices(history):
        params = history[number]["params"]
        told.update(range(params["fromSequence"], params["toSequence"] + 1))
    return told


def _words_told(events: Events, session: str) -> list[Word]:
    return [word for message in events.messages if (word := _word(message)) and _session(message) == session]


def _words_kept(history: History) -> list[Word]:
    return [word for envelope in history.values() if (word := _word(envelope))]


def _word(message: dict[str, Any]) -> Word | None:
    if message.get("method") != "session/update":
        return None
    update = message["params"]["update"]
    kind = update["sessionUpdate"]
    return (kind, update["content"]["text"]) if kind in _WORDS else None


def _session(message: dict[str, Any]) -> str:
    return str(message["params"]["sessionId"])


def _common(one: list[Word], other: list[Word]) -> int:
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


def _turn_of(line: str) -> str:
    return line.partition(";")[0].removeprefix("thought ")
