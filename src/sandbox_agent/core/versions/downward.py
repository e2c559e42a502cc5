"""A session's updates from version 2 to 1."""

from __future__ import annotations

from typing import Any

import msgspec

from sandbox_agent.core.json_values import as_list, as_object
from sandbox_agent.core.versions.choices import mode_option
from sandbox_agent.core.versions.contents import BLOCK, BLOCKS
from sandbox_agent.core.versions.gathering import Gathering
from sandbox_agent.core.versions.kinds import CHUNK, COMMANDS, KINDS
from sandbox_agent.core.versions.pairs import keep, with_kept
from sandbox_agent.core.versions.recent import Recent
from sandbox_agent.core.versions.upward import MADE_ID, REMEMBERED, carried
from sandbox_agent.core.versions.version import Object, Version

_V1 = Version.V1


class Downward:
    """Tells whole messages as chunks, gathers what version 1 can only replace, and keeps the rest."""

    def __init__(self, *, is_replay: bool) -> None:
        self.is_replay = is_replay
        self._told: Recent[None] = Recent(REMEMBERED)
        self._tools = Gathering()
        self._mode: Any = None
        self._listed: int | None = None

    def update(self, kind: str, update: Object) -> list[Object]:
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            return [self._chunk(update)]
        match kind:
            case "user_message_chunk":
                return [self._chunk(update) if self.is_replay else carried(update, Version.V2)]
            case "user_message" if not self.is_replay:
                return [carried(update, Version.V2)]
            case "user_message" | "agent_message" | "agent_thought":
                return self._message(kind, update)
            case "state_update":
                flushed = self._tools.flush() if update.get("state") == "idle" else []
                return [*flushed, carried(update, Version.V2)]
            case "tool_call_update":
                return [self._tools.call_updated(update)]
            case "tool_call_content_chunk":
                return [self._tools.content_added(update)]
            case "terminal_update" | "terminal_output_chunk":
                return [self._tools.terminal_updated(kind, update)]
            case "config_option_update":
                return self._options(update)
            case "available_commands_update" if self._were_listed(update.get("availableCommands")):
                return [carried(update, Version.V2)]
            case "tool_call" | "plan" | "current_mode_update":
                return [keep(update, update, {}, Version.V2)]
        pair = KINDS[_V1].get(kind)
        return [update if pair is None else pair.read(update, _V1)]

    def note(self, kind: str, update: Object) -> None:
        """An update whose version 1 came with it: remember what later ones depend on."""
        if kind == "tool_call_update":
            self._tools.known(update.get("toolCallId"))

    def opened(self, answer: Any) -> list[Object]:
        answer = as_object(answer)
        self._mode = as_object(mode_option(answer.get("configOptions"))).get("currentValue")
        commands = as_list(answer.get("availableCommands"))
        if not commands:
            return []
        self._listed = hash(msgspec.json.encode(commands))
        update = {"sessionUpdate": "available_commands_update", "availableCommands": COMMANDS.read(commands, _V1)}
        return [with_kept(update, None, Version.V2)]

    def _were_listed(self, commands: Any) -> bool:
        """Whether these are the commands of the answer, of which version 1 was told by an update already."""
        listed, self._listed = self._listed, None
        return listed is not None and listed == hash(msgspec.json.encode(commands))

    def _chunk(self, update: Object) -> Object:
        message_id = update.get("messageId")
        self._told.put(message_id, None)
        content = update.get("content")
        read = BLOCK.read(content, _V1)
        if read is not content:
            update = {**update, "content": read}
        if isinstance(message_id, str) and message_id.startswith(MADE_ID):
            return {name: member for name, member in update.items() if name != "messageId"}
        return update

    def _message(self, kind: str, update: Object) -> list[Object]:
        """A whole message: as chunks if none of it was told yet, since version 1 cannot take back what it was told."""
        blocks = update.get("content")
        if not isinstance(blocks, list) or not blocks or not self._told.put(update.get("messageId"), None):
            return [carried(update, Version.V2)]
        rest = {name: member for name, member in update.items() if name in ("messageId", "_meta")}
        first, *more = (
            {"sessionUpdate": f"{kind}_chunk", **rest, "content": block}
            for block in BLOCKS.read(blocks, _V1, is_exact=False)
        )
        first = CHUNK.keeping(first, update, Version.V2)
        return [first, *(with_kept(chunk, None, Version.V2) for chunk in more)]

    def _options(self, update: Object) -> list[Object]:
        there = KINDS[_V1]["config_option_update"].read(update, _V1)
        mode = as_object(mode_option(update.get("configOptions"))).get("currentValue")
        if not isinstance(mode, str) or mode == self._mode:
            return [there]
        self._mode = mode
        return [there, with_kept({"sessionUpdate": "current_mode_update", "currentModeId": mode}, None, Version.V2)]
