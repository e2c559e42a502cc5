"""What arrives for one session, and who gets it: the turn that runs, and whoever watches."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from sandbox_agent.client.asking import PermissionHandler, QuestionHandler
from sandbox_agent.client.mailbox import Mailbox
from sandbox_agent.client.recovery import Recovery, is_counted
from sandbox_agent.client.updates import Envelope

if TYPE_CHECKING:
    from sandbox_agent.client.connection import AgentConnection


class TurnBox:
    """Where the updates of one turn gather, live or, after a loss, out of the session's history."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.mailbox = Mailbox()
        self.seen = 0
        """Updates of the agent that have been put here."""
        self.is_sent = False
        self.answered = asyncio.Event()
        self.recovery: Recovery | None = None

    def put(self, envelope: Envelope) -> None:
        if is_counted(envelope):
            self.seen += 1
        self.mailbox.put(envelope)

    def finish(self) -> None:
        """The answer is there: nothing follows, but what a recovery still brings."""
        self.answered.set()
        if self.recovery is None:
            self.mailbox.close()
        else:
            self.recovery.poke()


class Inbox:
    def __init__(self, session_id: str, cwd: str, connection: AgentConnection) -> None:
        self.session_id = session_id
        self.cwd = cwd
        self.on_permission: PermissionHandler | None = None
        self.on_question: QuestionHandler | None = None
        self.ended: dict[str, Any] | None = None
        self.replay: list[Envelope] | None = None
        """While it is a list, updates are a load's replay and gather here."""
        self._connection = connection
        self._turns: deque[TurnBox] = deque()
        self._watchers: set[Mailbox] = set()

    @property
    def has_turn(self) -> bool:
        return bool(self._turns)

    def begin(self, turn: TurnBox) -> TurnBox | None:
        """The turn that must end first: where two of ours overlap, nobody could say whose an update is."""
        before = self._turns[-1] if self._turns else None
        self._turns.append(turn)
        return before

    def finish(self, turn: TurnBox) -> None:
        if turn in self._turns:
            self._turns.remove(turn)
        turn.finish()

    def watch(self) -> Mailbox:
        mailbox = Mailbox()
        self._watchers.add(mailbox)
        return mailbox

    def unwatch(self, mailbox: Mailbox) -> None:
        self._watchers.discard(mailbox)
        mailbox.abandon()

    def update(self, envelope: Envelope) -> None:
        if self.replay is not None:
            self.replay.append(envelope)
            return
        for watcher in self._watchers:
            watcher.put(envelope)
        if not self._turns:
            return
        turn = self._turns[0]
        if turn.recovery is None:
            turn.put(envelope)
        else:
            turn.recovery.poke()

    def notice(self, envelope: Envelope) -> None:
        """A notification that is no update: for watchers only."""
        for watcher in self._watchers:
            watcher.put(envelope)

    def lost(self, gap: Envelope | None) -> None:
        """Something may be missing from here on: what the running turn needs is read from history instead."""
        if gap is not None:
            for watcher in self._watchers:
                watcher.put(gap)
        if self._turns and self._turns[0].recovery is None:
            turn = self._turns[0]
            turn.recovery = Recovery(self.session_id, turn, gap)
            self._connection.spawn(turn.recovery.run(self._connection))

    def end(self, why: dict[str, Any]) -> None:
        self.ended = why
        for watcher in self._watchers:
            watcher.close()

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.close()
        for turn in self._turns:
            turn.mailbox.close()

    async def room(self) -> None:
        for mailbox in [*(turn.mailbox for turn in self._turns), *self._watchers]:
            await mailbox.room()
