"""A session's updates from version 1 to 2."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core.versions.choices import mode_option, v2_options, with_choice
from sandbox_agent.core.versions.contents import BLOCK, BLOCKS
from sandbox_agent.core.versions.kinds import KINDS, TOOL_CALL, TOOL_CALL_UPDATE, V2_ONLY, is_same_call
from sandbox_agent.core.versions.pairs import keep, with_kept
from sandbox_agent.core.versions.recent import Recent
from sandbox_agent.core.versions.turns import idle_update
from sandbox_agent.core.versions.version import Object, Version

MADE_ID = "sandboxagent:"
"""How the ids of messages begin that we made up: version 1 need not name them, so the way back leaves them out."""
CHUNKS = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})
REMEMBERED = 4096
_V2 = Version.V2


class Upward:
    """Names messages, one id for each run of chunks of a kind in a turn; tells of turns as states."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._unplaced = 0
        self._prompt: bytes | None = None
        self._speaking: str | None = None
        self._message_id = ""
        self._calls: Recent[None] = Recent(REMEMBERED)
        self._options: list[Any] | None = None
        self._is_running = False
        self._open_asks = 0

    def update(self, kind: str, update: Object, sequence: int) -> list[Object]:
        if kind in CHUNKS:
            return [self._chunk(kind, update, sequence)]
        if kind in ("tool_call", "tool_call_update"):
            return [self._tool_call(kind, update)]
        if kind == "current_mode_update":
            return [self._mode(update)]
        if kind in V2_ONLY:
            return [keep(update, update, {}, Version.V1)]
        pair = KINDS[_V2].get(kind)
        there = update if pair is None else pair.read(update, _V2)
        if kind == "config_option_update":
            self.offer(there)
        return [there]

    def note(self, kind: str, update: Object) -> None:
        """An update whose version 2 came with it: remember what later ones depend on."""
        self._speaking = None
        if kind in ("tool_call", "tool_call_update"):
            self._calls.put(update.get("toolCallId"), None)

    def offer(self, answer: Any) -> None:
        """Learn the options, from an answer or an update of either version."""
        options = v2_options(answer)
        if options is not None:
            self._options = options

    def opened(self, answer: Any) -> list[Object]:
        self.offer(answer)
        return []

    def prompt_sent(self, key: bytes) -> None:
        self._prompt, self._speaking = key, None

    def answered(self, key: bytes) -> None:
        if key == self._prompt:
            self._prompt = self._speaking = None

    def prompt_started(self, message_id: str, prompt: Any) -> list[Object]:
        self._is_running, self._open_asks = True, 0
        content = BLOCKS.read(prompt, _V2) if isinstance(prompt, list) else []
        return [{"sessionUpdate": "user_message", "messageId": message_id, "content": content}, _state("running")]

    def prompt_ended(self, *, result: Any, error: Any) -> list[Object]:
        self._is_running, self._open_asks = False, 0
        return [idle_update(result=result, error=error)]

    def ask_opened(self) -> list[Object]:
        self._open_asks += 1
        return [_state("requires_action")] if self._is_running and self._open_asks == 1 else []

    def ask_closed(self) -> list[Object]:
        if self._open_asks == 0:
            return []
        self._open_asks -= 1
        return [_state("running")] if self._is_running and self._open_asks == 0 else []

    def _chunk(self, kind: str, update: Object, sequence: int) -> Object:
        content = update.get("content")
        read = BLOCK.read(content, _V2)
        there = update if read is content else {**update, "content": read}
        if isinstance(update.get("messageId"), str):
            self._speaking = None
            return there
        if kind != self._speaking:
            self._speaking = kind
            self._message_id = self._name(kind, sequence)
        named = {**there, "messageId": self._message_id}
        if "messageId" in update:  # null, or something else that is no id
            return keep(named, update, {**update, "messageId": self._message_id}, Version.V1)
        return named

    def _name(self, kind: str, sequence: int) -> str:
        """Of the message that begins here: the same for whoever reads the history again."""
        self._unplaced += not sequence
        place = sequence or f"new{self._unplaced}"
        return f"{MADE_ID}{self._session_id}.{kind.removesuffix('_chunk')}.{place}"

    def _tool_call(self, kind: str, update: Object) -> Object:
        if kind == "tool_call":
            self._speaking = None
        is_new = self._calls.put(update.get("toolCallId"), None)
        if is_new == (kind == "tool_call") and is_same_call(update) and (not is_new or "title" in update):
            return {**update, "sessionUpdate": "tool_call_update"} if is_new else update
        there = (TOOL_CALL if kind == "tool_call" else TOOL_CALL_UPDATE).plain(update, _V2, is_exact=True)
        expected = TOOL_CALL if is_new else TOOL_CALL_UPDATE  # what the way back will take it for
        return expected.keeping(there, update, Version.V1)

    def _mode(self, update: Object) -> Object:
        mode = update.get("currentModeId")
        if not isinstance(mode, str) or self._options is None or mode_option(self._options) is None:
            return carried(update, Version.V1)
        self._options = with_choice(self._options, "mode", mode)
        there = {name: member for name, member in update.items() if name != "currentModeId"}
        there |= {"sessionUpdate": "config_option_update", "configOptions": self._options}
        return keep(there, update, there, Version.V1)


def carried(update: Object, version: Version) -> Object:
    """An update of `version` that the other has no word for, kept in one that changes nothing."""
    return with_kept({"sessionUpdate": "session_info_update"}, {"fields": update}, version)


def _state(state: str) -> Object:
    return {"sessionUpdate": "state_update", "state": state}
