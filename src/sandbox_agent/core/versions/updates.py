"""A session's updates, as a reader of the other version expects them."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.versions.downward import Downward
from sandbox_agent.core.versions.kinds import KINDS
from sandbox_agent.core.versions.pairs import restore, unpack
from sandbox_agent.core.versions.upward import Upward
from sandbox_agent.core.versions.version import Object, Version


class UpdateTranslator:
    """The updates of one session for readers of one version, in order. Several readers at the same place can share it.

    Its state is bounded whatever the agent sends. `session_id` stands in the updates that it makes up itself."""

    def __init__(self, session_id: str, *, from_: Version, to: Version, is_replay: bool = False) -> None:
        """`is_replay`: while true, version 2's `user_message` becomes chunks for version 1; live it does not, since
        version 1 clients show their own prompt."""
        self._session_id = session_id
        self._to = to
        self._up = Upward(session_id) if from_ < to else None
        self._down = Downward(is_replay=is_replay) if from_ > to else None

    @property
    def is_replay(self) -> bool:
        return self._down is not None and self._down.is_replay

    @is_replay.setter
    def is_replay(self, is_replay: bool) -> None:
        if self._down is not None:
            self._down.is_replay = is_replay

    def update(self, params: Any, sequence: int = 0) -> list[Any]:
        """`params` of one `session/update` as those to deliver in its place: often one, sometimes none or several.

        `sequence` is its place in the session's history, 0 if it has none yet. The names of messages are made of it."""
        side = self._up or self._down
        update = params.get("update") if isinstance(params, dict) else None
        kind = update.get("sessionUpdate") if isinstance(update, dict) else None
        if side is None or not isinstance(update, dict) or not isinstance(kind, str):
            return [params]
        if "_meta" in update:
            is_kept, bare, kept = unpack(update, self._to)
            if is_kept:
                side.note(kind, update)
                return [] if kept is None else [{**params, "update": self._restored(kind, update, bare, kept)}]
        told = side.update(kind, update, sequence) if isinstance(side, Upward) else side.update(kind, update)
        if len(told) == 1:
            return [params] if told[0] is update else [{**params, "update": told[0]}]
        return self._spread(params, told)

    def session_opened(self, result: Any) -> list[Object]:
        """Learn what the session offers from the agent's own answer to new, load, resume or fork.

        Gives updates for what the other version has no member for in its answer (commands); deliver them after it."""
        side = self._up or self._down
        return [] if side is None else self._made(side.opened(result))

    def prompt_sent(self, key: bytes) -> None:
        """A prompt went to the agent under this JSON-RPC id: what comes now is of its turn."""
        if self._up is not None:
            self._up.prompt_sent(key)

    def answered(self, key: bytes) -> None:
        """The agent answered what was sent under this id: if that is the prompt, its turn is over."""
        if self._up is not None:
            self._up.answered(key)

    def prompt_started(self, message_id: str, prompt: Any) -> list[Object]:
        """A prompt (content blocks, spelled as in `from_`) goes to the agent under this id, unique in its session.

        From version 1 to 2: `user_message` and `state_update` running. Otherwise nothing: the agent tells it itself."""
        return [] if self._up is None else self._made(self._up.prompt_started(message_id, prompt))

    def prompt_ended(self, *, result: Any = None, error: Any = None) -> list[Object]:
        """The agent answered the prompt. From version 1 to 2: `state_update` idle with its stopReason."""
        return [] if self._up is None else self._made(self._up.prompt_ended(result=result, error=error))

    def ask_opened(self) -> list[Object]:
        """The agent asks for something and waits. From version 1 to 2: `state_update` requires_action."""
        return [] if self._up is None else self._made(self._up.ask_opened())

    def ask_closed(self) -> list[Object]:
        """It has its answer. From version 1 to 2, when no other ask is open: `state_update` running."""
        return [] if self._up is None else self._made(self._up.ask_closed())

    def _restored(self, kind: str, update: Object, bare: Object, kept: Any) -> Any:
        pair = KINDS[self._to].get(kind)
        return restore(bare, kept) if pair is None else pair.read(update, self._to)

    def _spread(self, params: Object, told: list[Object]) -> list[Object]:
        """Several updates in place of one; what else its params had stays with the one that stands for it."""
        other = Version.V1 if self._to is Version.V2 else Version.V2
        own = next((update for update in told if unpack(update, other)[::2] != (True, None)), None)
        bare = {"sessionId": params.get("sessionId")}
        return [{**(params if update is own else bare), "update": update} for update in told]

    def _made(self, updates: list[Object]) -> list[Object]:
        return [{"sessionId": self._session_id, "update": update} for update in updates]
