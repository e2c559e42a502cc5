"""Simulated agents: they obey ACP as far as their character lets them, and do in a turn what the prompt tells them.

An agent's memory outlives its processes, as an agent's files would. Every update that it sends has a token of its own,
`BIRTH.NUMBER`: whose session it is, and the how manieth, so that whoever sees it can say if it is in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from simulation.child import SimulatedChild
from simulation.speech import Message, is_state, speech, told, update
from simulation.trace import Trace

META = "sandboxagent.dev"
_CLOSING = 1.9
"""Seconds that a turn has to end when its session is closed: 2 (docs/sessions.md), less the way to us."""


@dataclass(frozen=True, slots=True)
class Character:
    """What an agent can do, and which bad habits it has."""

    can: frozenset[str]
    """Of load, resume, fork, close, delete."""
    has_a_process_per_session: bool = False
    counts_anew: bool = False
    """Each process names its sessions from 1 on, and gives no name twice while it lives. Of several of one name it
    takes up the newest."""
    replays_late: bool = False
    """It answers `session/load` before it replays."""
    talks_early: bool = False
    """It sends updates of a session before it has told anybody of it."""
    ignores_cancel: bool = False
    ignores_eof: bool = False
    odd_answers: bool = False
    """Values of wrong types in the answer to `session/new`."""
    speaks: tuple[int, ...] = (1,)
    """Versions of ACP: its processes take turns, as if it had been updated."""
    acknowledges: str = "first"
    """When a prompt is, in version 2: one of MANNERS."""


@dataclass(slots=True)
class Conversation:
    """A session as the agent has it on its own disk."""

    birth: str
    said: list[int] = field(default_factory=list)
    parent: Conversation | None = None
    count: int = 0

    def next_token(self) -> str:
        self.count += 1
        self.said.append(self.count)
        return f"{self.birth}.{self.count}"


@dataclass(slots=True)
class Memory:
    """What outlives the agent's processes, and what the promises are checked against."""

    character: Character
    trace: Trace
    births: list[str]
    """Shared by all agents, so that no two sessions have one name."""
    conversations: dict[str, list[Conversation]] = field(default_factory=dict)
    """By name; where several sessions had one, the newest comes last, and is what the agent means."""
    given: dict[str, set[str]] = field(default_factory=dict)
    """The births of all that ever had a name."""
    turns: dict[tuple[str, str], int] = field(default_factory=dict)
    """How often each turnId was run in each session."""
    faults: list[str] = field(default_factory=list)
    """What the server has done wrong towards it."""
    finished: dict[str, list[str]] = field(default_factory=dict)
    """See `Facts`."""
    is_tame: bool = False

    def forget_untold(self, told: set[str], *, is_damaged: bool) -> None:
        """Of a session that nobody was told of for sure before a kill nobody can know that it took another's name;
        and what was known of any is gone where files were damaged.

        So the agent has forgotten it, and with it those whose name it has taken."""
        for named in self.conversations.values():
            is_known = all(conversation.birth in told for conversation in named)
            if not is_known or (is_damaged and len(named) > 1):
                named.clear()

    def born(self, parent: Conversation | None = None) -> Conversation:
        birth = f"b{len(self.births) + 1}"
        self.births.append(birth)
        return Conversation(birth, parent=parent)


class AgentProgram:
    """One process of an agent."""

    def __init__(self, name: str, memory: Memory) -> None:
        self._name = name
        self._memory = memory
        self._character = memory.character
        versions = memory.character.speaks
        self._speech = speech(versions[int(name.partition("/")[2]) % len(versions)], memory.character.acknowledges)
        self._held: dict[str, Conversation] = {}
        self._known: set[str] = set()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._cancelled: set[str] = set()
        self._told_to_stop: dict[str, float] = {}
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._ask_count = 0
        self._session_count = 0
        self._unstuck = asyncio.Event()
        self._child: SimulatedChild | None = None
        self.is_over = False
        self.is_cut_off = False

    @property
    def child(self) -> SimulatedChild:
        assert self._child is not None
        return self._child

    def started(self, child: SimulatedChild) -> None:
        self._child = child

    def closed(self) -> None:
        if not self._character.ignores_eof:
            self.exit(0)

    def signalled(self, number: int) -> None:
        self.exit(128 + number)

    def exit(self, code: int) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._memory.trace.add(self._name, f"exits {code}")
        for task in self._running.values():
            task.cancel()
        self.child.exit(code)

    def tame(self) -> None:
        """No more bad habits: whatever it was stuck in ends."""
        self._unstuck.set()
        if self._child is not None:  # else it is about to start
            self._child.read(is_reading=True)

    def heard(self, lines: list[bytes]) -> None:
        for line in lines:
            if not self.is_over:
                self._memory.trace.add(self._name, "hears", line)
                self._hear(msgspec.json.decode(line))

    def _hear(self, message: dict[str, Any]) -> None:
        method, key, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            self._hear_answer(message)
        elif method == "initialize":
            self._answer(key, self._speech.introduction(self._character.can))
        elif method == "session/new":
            self._make(key, None)
        elif method == "session/fork":
            self._make(key, self._held.get(params["sessionId"]))
        elif method in ("session/load", "session/resume"):
            is_load = method == "session/load" or params.get("replayFrom") is not None
            self._take_up(key, params.get("sessionId"), is_load=is_load)
        elif method in ("session/close", "session/delete"):
            self._let_go(key, params.get("sessionId"), is_forgotten=method == "session/delete")
        elif method == "session/prompt":
            self._prompted(key, params)
        elif method == "session/cancel":
            self._cancel(params.get("sessionId"))
        elif key is not None:
            self._send({"id": key, "error": {"code": -32601, "message": f"no {method} here"}})

    def _make(self, key: Any, parent: Conversation | None) -> None:
        conversation = self._memory.born(parent)
        name = self._new_name() if self._character.counts_anew else f"s-{conversation.birth}"
        self._held[name] = conversation
        self._known.add(name)
        self._memory.conversations.setdefault(name, []).append(conversation)
        self._memory.given.setdefault(name, set()).add(conversation.birth)
        if self._character.talks_early:
            self._say(name, conversation, 2)
        result: dict[str, Any] = {"sessionId": name, "_meta": {"birth": conversation.birth}}
        if self._character.odd_answers:
            result |= self._speech.odd_answer()
        self._answer(key, result)

    def _new_name(self) -> str:
        """Another than those that this process has known; earlier processes may have used it."""
        while True:
            self._session_count += 1
            name = f"{self._name.partition('/')[0]}-{self._session_count}"
            if name not in self._known:
                return name

    def _take_up(self, key: Any, name: Any, *, is_load: bool) -> None:
        named = self._memory.conversations.get(name)
        conversation = named[-1] if named else None
        if conversation is None:
            self._send({"id": key, "error": {"code": -32002, "message": f"no session {name!r}"}})
            return
        self._held[name] = conversation
        self._known.add(name)
        told = self._told_to_stop.pop(name, None)
        if name in self._running and told is not None and asyncio.get_running_loop().time() - told >= _CLOSING:
            del self._running[name]  # it was closed, and a turn that does not end by then is not waited for
        replay = [self._speech.chunk(name, f"{conversation.birth}.{number}") for number in conversation.said]
        if is_load and not self._character.replays_late:
            self._send(*replay)
        self._answer(key, {"_meta": {"birth": conversation.birth}})
        if is_load and self._character.replays_late:
            self._send(*replay)

    def _let_go(self, key: Any, name: Any, *, is_forgotten: bool) -> None:
        self._cancel(name, is_closed=True)
        self._held.pop(name, None)
        if is_forgotten:
            self._memory.conversations.pop(name, None)
        self._answer(key, {})

    def _prompted(self, key: Any, params: dict[str, Any]) -> None:
        name = params["sessionId"]
        conversation = self._held.get(name)
        if conversation is None:
            self._send({"id": key, "error": {"code": -32002, "message": f"no session {name!r} here"}})
            return
        if name in self._running:
            self._memory.faults.append(f"a second prompt in {name} while the first one runs")
        prompt = msgspec.json.decode(params["prompt"][0]["text"])
        turn_id = ((params.get("_meta") or {}).get(META) or {}).get("turnId")
        if turn_id is not None:
            turn = (conversation.birth, turn_id)
            self._memory.turns[turn] = self._memory.turns.get(turn, 0) + 1
        if prompt["birth"] != conversation.birth:
            self._memory.faults.append(f"a prompt for {prompt['birth']} came to {conversation.birth}")
        self._cancelled.discard(name)
        self._told_to_stop.pop(name, None)
        self._running[name] = asyncio.get_running_loop().create_task(self._turn(key, name, conversation, prompt))

    async def _turn(self, key: Any, name: str, conversation: Conversation, prompt: dict[str, Any]) -> None:
        said: list[str] = []
        self._send(*self._speech.begins(key, name, prompt))
        for act in prompt["acts"]:
            if name in self._cancelled or self.is_over:
                break
            said += told(await self._act(act, key, name, conversation))
        if self.is_over:
            return
        is_given_up = self._running.get(name) is not asyncio.current_task()
        if not is_given_up:
            del self._running[name]
        self._memory.finished[prompt["n"]] = said
        reason = "cancelled" if name in self._cancelled else "end_turn"
        self._send(*self._speech.ends(key, name, prompt, reason, is_given_up=is_given_up))

    async def _act(self, act: Sequence[Any], key: Any, name: str, conversation: Conversation) -> Sequence[Message]:
        """Gives what it said of the session."""
        match act:
            case ["say", count]:
                return self._say(name, conversation, count)
            case ["murmur", count, seconds]:
                return await self._murmur(name, conversation, count, seconds)
            case ["pause", seconds]:
                await self._rest(seconds)
            case ["ask", waits]:
                answer = self._ask(name, conversation)
                if waits:
                    await self._first(answer)
                self._send_in_turn(name, *self._speech.goes_on(name))
            case ["title"]:
                return self._send(update(name, "session_info_update", title=conversation.next_token()))
            case _:
                await self._misbehave(act, key, name)
        return ()

    async def _misbehave(self, act: Sequence[Any], key: Any, name: str) -> None:
        match act:
            case ["stall"]:
                await self._rest(None)
            case ["garbage", count]:
                self.child.say(*[b"this is no JSON"] * count)
            case ["strange"]:
                nobodys = self._speech.chunk("nobody's", "x.1")
                self._send({"id": 999_999, "result": {}}, nobodys, {"method": 5, "id": []})
            case ["twice"]:
                if self._send(*self._speech.ends_early(key)):
                    self._running.pop(name, None)  # as far as the server can know
            case ["deaf", seconds]:
                self.child.read(is_reading=False)
                await self._rest(seconds)
                self.child.read(is_reading=True)
            case ["die", code]:
                self.exit(code)

    def _say(self, name: str, conversation: Conversation, count: int) -> Sequence[Message]:
        return self._send(*[self._speech.chunk(name, conversation.next_token()) for _ in range(count)])

    async def _murmur(self, name: str, conversation: Conversation, count: int, pause: float) -> Sequence[Message]:
        """One after the other: whatever happens meanwhile happens between two of them."""
        said: list[Message] = []
        while len(said) < count and name not in self._cancelled and not self.is_over:
            said += self._say(name, conversation, 1)
            await self._rest(pause)
        return said

    def _ask(self, name: str, conversation: Conversation) -> asyncio.Future[Any]:
        self._ask_count += 1
        key = self._ask_count - 1  # some count from 0
        answer = self._asked[key] = asyncio.get_running_loop().create_future()
        self._send_in_turn(name, *self._speech.asks(key, name, conversation.next_token()))
        return answer

    def _hear_answer(self, message: dict[str, Any]) -> None:
        waiting = self._asked.get(message["id"])
        if waiting is None:
            self._memory.faults.append(f"an answer to what was never asked: {message}")
        elif waiting.done() and not waiting.cancelled():
            self._memory.faults.append(f"a second answer: {message}")
        else:
            waiting.set_result(message)

    def _cancel(self, name: Any, *, is_closed: bool = False) -> None:
        if name in self._running:
            self._told_to_stop.setdefault(name, asyncio.get_running_loop().time())
        if name in self._running and (is_closed or not self._character.ignores_cancel):
            self._cancelled.add(name)
            self._unstuck.set()
            self._unstuck.clear()

    async def _rest(self, seconds: float | None) -> None:
        if self._memory.is_tame:
            return
        waking = asyncio.ensure_future(self._unstuck.wait())
        try:
            await asyncio.wait([waking], timeout=seconds)
        finally:
            waking.cancel()

    async def _first(self, answer: asyncio.Future[Any]) -> None:
        """The answer, or whatever else ends the wait."""
        waking = asyncio.ensure_future(self._unstuck.wait())
        try:
            if not self._memory.is_tame:
                await asyncio.wait([waking, answer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waking.cancel()

    def _answer(self, key: Any, result: dict[str, Any]) -> None:
        self._send({"id": key, "result": result})

    def _send_in_turn(self, name: str, *messages: Message) -> None:
        """Without what would be taken for the state of a later turn, if this one was given up."""
        is_given_up = self._running.get(name) is not asyncio.current_task()
        self._send(*[message for message in messages if not (is_given_up and is_state(message))])

    def _send(self, *messages: Message) -> Sequence[Message]:
        """Gives them back, for whoever counts what was said."""
        if messages and not self.is_over:
            lines = [msgspec.json.encode({"jsonrpc": "2.0", **message}) for message in messages]
            self._memory.trace.add(self._name, "says", *lines)
            self.child.say(*lines)
        return messages
