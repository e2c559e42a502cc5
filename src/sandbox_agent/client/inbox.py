"""What arrives for one session, and who gets it: the turn that runs, and whoever watches.

A turn that missed something, because the stream had a gap or the connection was replaced, is completed from the
session's history."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sandbox_agent.client.asking import (
    Answer,
    OpenRequest,
    PermissionHandler,
    PermissionRequest,
    QuestionHandler,
    QuestionRequest,
)
from sandbox_agent.client.updates import Envelope
from sandbox_agent.core.json_values import meta_value
from sandbox_agent.core.methods import STREAM_GAP
from sandbox_agent.errors import AgentUnsupported, NotFound

if TYPE_CHECKING:
    from sandbox_agent.client.connection import AgentConnection

EVENTS = "_sandboxagent/session/events"
_PAGE = 1000
_FULL = 16_384
"""A mailbox that holds this many makes the whole connection wait until it is read: the server keeps what comes."""


T = TypeVar("T")


class Mailbox(Generic[T]):
    """What is on its way to whoever iterates over it."""

    def __init__(self) -> None:
        self._held: deque[T] = deque()
        self._changed = asyncio.Event()
        self._is_closed = False
        self._has_room = asyncio.Event()
        self._has_room.set()

    def put(self, item: T) -> None:
        if self._is_closed:
            return
        self._held.append(item)
        self._changed.set()
        if len(self._held) >= _FULL:
            self._has_room.clear()

    def close(self) -> None:
        """What is held can still be taken."""
        self._is_closed = True
        self._changed.set()

    def abandon(self) -> None:
        """Nobody reads any more."""
        self._held.clear()
        self._has_room.set()
        self.close()

    async def take(self) -> T | None:
        """The next one; None when it is closed and empty."""
        while not self._held:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        item = self._held.popleft()
        if len(self._held) <= _FULL // 2:
            self._has_room.set()
        return item

    async def room(self) -> None:
        await self._has_room.wait()


class TurnBox:
    """Where the updates of one turn gather, live or, after a loss, out of the session's history."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.mailbox: Mailbox[Envelope | OpenRequest] = Mailbox()
        self.seen = 0
        """Updates that have been put here, of those that only come within turns."""
        self.is_sent = False
        self.is_left = False
        """It runs without us: whoever is attached answers what it asks."""
        self.waits_as: Any = None
        """The id of the request while it waits behind other prompts, as the server told us."""
        self.is_told = False
        """Whether the server has said that it waits, or that it runs."""
        self.moved = asyncio.Event()
        """Set each time that it says so."""
        self.answered = asyncio.Event()
        self.recovery: Recovery | None = None

    def put(self, envelope: Envelope) -> None:
        if _kind(envelope) not in _NEVER_OURS | _ANY_TIME:
            self.seen += 1
        self.mailbox.put(envelope)

    def move(self, waits_as: Any) -> None:
        self.waits_as = waits_as
        self.is_told = True
        self.moved.set()

    def finish(self) -> None:
        """The answer is there: nothing follows, but what a recovery still brings."""
        self.answered.set()
        if self.recovery is None:
            self.mailbox.close()
        else:
            self.recovery.poke()


class Inbox:
    """Updates between `turn_started` and `turn_ended` of a turn are that turn's; others' turns are for watchers.

    A server of an earlier version does not say when turns start: then what comes while we have a turn is taken for
    its own."""

    def __init__(self, session_id: str, cwd: str, connection: AgentConnection) -> None:
        self.session_id = session_id
        self.cwd = cwd
        self.on_permission: PermissionHandler | None = None
        self.on_question: QuestionHandler | None = None
        self.handler_set = asyncio.Event()
        """Set when there is another handler, which is asked what is open still."""
        self.ended: dict[str, Any] | None = None
        self.replay: list[Envelope] | None = None
        """While it is a list, updates are a load's replay and gather here."""
        self.tells_turns = connection.tells_turns
        """Whether the server says which turn runs."""
        self._running: tuple[Any, TurnBox | None] = (None, None)
        """The turn that the server says runs, by its promptId, and ours if it is."""
        self._connection = connection
        self._turns: deque[TurnBox] = deque()
        self._watchers: set[Mailbox[Envelope]] = set()

    @property
    def is_our_turn(self) -> bool:
        """Whether the turn that runs was prompted here, by one who follows it."""
        turn = self._receiver()
        return turn is not None and not turn.is_left

    def begin(self, turn: TurnBox) -> TurnBox | None:
        """The turn that must end first: where two of ours overlap, an older server does not say whose an update is."""
        before = self._turns[-1] if self._turns else None
        self._turns.append(turn)
        return before

    def finish(self, turn: TurnBox) -> None:
        if turn in self._turns:
            self._turns.remove(turn)
        turn.finish()

    @contextlib.contextmanager
    def asking_in(self, turn: TurnBox) -> Iterator[None]:
        """What the agent asks meanwhile is put among the updates of the turn, instead of to handlers."""

        async def ask(request: PermissionRequest | QuestionRequest) -> Answer:
            asked = OpenRequest(request)
            turn.mailbox.put(asked)
            open_requests.append(asked)
            try:
                return await asked.answered()
            finally:
                open_requests.remove(asked)

        open_requests: list[OpenRequest] = []
        before = self.on_permission, self.on_question
        self.on_permission = self.on_question = ask
        self.handler_set.set()
        try:
            yield
        finally:
            self.on_permission, self.on_question = before
            for asked in open_requests:
                asked.answer(None)
            self.handler_set.set()

    def watch(self) -> Mailbox[Envelope]:
        mailbox: Mailbox[Envelope] = Mailbox()
        self._watchers.add(mailbox)
        return mailbox

    def unwatch(self, mailbox: Mailbox[Envelope]) -> None:
        self._watchers.discard(mailbox)
        mailbox.abandon()

    def update(self, envelope: Envelope) -> None:
        if self.replay is not None:
            self.replay.append(envelope)
            return
        self.notice(envelope)
        if self._turns and (recovery := self._turns[0].recovery) is not None:
            recovery.poke()
        elif (turn := self._receiver()) is not None:
            turn.put(envelope)

    def turn_queued(self, envelope: Envelope) -> None:
        self.tells_turns = True
        turn = self._ours(envelope)
        if turn is not None:
            turn.move(envelope["params"].get("requestId"))
        self.notice(envelope)

    def turn_started(self, envelope: Envelope) -> None:
        self.tells_turns = True
        turn = self._ours(envelope)
        self._running = (envelope["params"].get("promptId"), turn)
        if turn is not None:
            turn.move(None)
        self.notice(envelope)

    def turn_ended(self, envelope: Envelope) -> None:
        if envelope["params"].get("promptId") == self._running[0]:
            self._running = (None, None)
        self.notice(envelope)

    def notice(self, envelope: Envelope) -> None:
        """Something that watchers see."""
        for watcher in self._watchers:
            watcher.put(envelope)

    def lost(self, gap: Envelope | None) -> None:
        """Something may be missing from here on: what the running turn needs is read from history instead."""
        self.tells_turns = gap is None and self._connection.tells_turns  # on a new connection it is said again
        self._running = (None, None)
        if gap is not None:
            self.notice(gap)
        if self._turns and self._turns[0].recovery is None:
            turn = self._turns[0]
            turn.recovery = Recovery(self.session_id, turn, gap)
            self._connection.spawn(turn.recovery.run(self._connection))

    def end(self, envelope: Envelope) -> None:
        self.ended = envelope["params"]
        for watcher in self._watchers:
            watcher.close()

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.close()
        for turn in self._turns:
            turn.mailbox.close()

    async def room(self) -> None:
        for turn in list(self._turns):
            await turn.mailbox.room()
        for watcher in list(self._watchers):
            await watcher.room()

    def _receiver(self) -> TurnBox | None:
        """The turn of ours that an update belongs to."""
        if self.tells_turns:
            return self._running[1]
        return self._turns[0] if self._turns else None

    def _ours(self, envelope: Envelope) -> TurnBox | None:
        turn_id = envelope["params"].get("turnId")
        return next((turn for turn in self._turns if turn.turn_id == turn_id), None)


class Recovery:
    """From now on the live stream only says that there is more; the updates themselves come from history.

    So there is nothing to match up: the turn's updates stand in the history between its prompt and the next one, and
    `seen` of them are there already."""

    def __init__(self, session_id: str, turn: TurnBox, gap: Envelope | None) -> None:
        self._session_id = session_id
        self._turn = turn
        self._gap = gap
        self._more = asyncio.Event()
        self._after = 0
        self._position: int | None = None
        """How many of the turn's updates have been passed; None outside of the turn."""

    def poke(self) -> None:
        self._more.set()

    async def run(self, connection: AgentConnection) -> None:
        try:
            is_answered = False
            while not is_answered:
                is_answered = self._turn.answered.is_set()  # before we read, so that one more read follows the answer
                self._more.clear()
                await self._read_on(connection)
                if not is_answered:
                    await self._more.wait()
        except (AgentUnsupported, NotFound):  # no history to read: say so, and go on with what comes
            self._turn.put(self._gap or _gap(1))
            self._turn.recovery = None
        finally:
            if self._turn.answered.is_set():
                self._turn.mailbox.close()

    async def _read_on(self, connection: AgentConnection) -> None:
        has_more = True
        while has_more:
            wanted = {"sessionId": self._session_id, "after": self._after, "limit": _PAGE}
            page = await connection.call(EVENTS, wanted)
            for event in page.get("events", []):
                self._pass(int(event["sequence"]), event["envelope"])
            await self._turn.mailbox.room()
            has_more = bool(page.get("hasMore"))

    def _pass(self, sequence: int, envelope: Envelope) -> None:
        missing = sequence - self._after - 1
        self._after = sequence
        if envelope.get("method") == "session/prompt":
            is_ours = meta_value(envelope.get("params") or {}, "turnId") == self._turn.turn_id
            self._position = 0 if is_ours else None
        elif self._position is not None:
            if missing > 0:
                self._turn.put(_gap(missing))
            kind = _kind(envelope)
            if kind in _NEVER_OURS:
                return
            self._position += kind not in _ANY_TIME
            if self._position > self._turn.seen or (kind in _ANY_TIME and self._position == self._turn.seen):
                self._turn.put(envelope)


_NEVER_OURS = frozenset({None, "user_message_chunk"})
"""No update at all, or the user's own words, which are told to others only."""
_ANY_TIME = frozenset(
    {"available_commands_update", "config_option_update", "current_mode_update", "session_info_update"}
)
"""How the session is now. These come outside of turns as well, and may be told twice, so they are not counted."""


def _kind(envelope: Envelope) -> str | None:
    if envelope.get("method") != "session/update":
        return None
    update = envelope["params"].get("update")
    return str(update.get("sessionUpdate")) if isinstance(update, dict) else ""


def _gap(missing: int) -> Envelope:
    return {"jsonrpc": "2.0", "method": STREAM_GAP, "params": {"fromId": 1, "toId": missing}}
