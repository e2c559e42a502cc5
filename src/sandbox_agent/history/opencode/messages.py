"""Messages with their parts, made of what was told: what a client that listened from the start would have."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox_agent.core.json_values import Object
from sandbox_agent.history.opencode.telling import Told


class Messages:
    """The newest `limit` messages; None keeps all. With `before`, those that came before that message."""

    def __init__(self, limit: int | None = None, before: str | None = None) -> None:
        self._limit = limit
        self._before = before
        self._infos: dict[str, Object] = {}
        self._parts: dict[str, dict[str, Object]] = {}
        self._texts: dict[str, list[str]] = {}
        """What was added to parts since they were last told whole."""
        self._last_left_out = ""
        self.has_earlier = False
        """Messages were left out because of the limit."""
        self.is_past = before is None
        """The message was met before which those stand that are wanted."""

    def apply(self, told: Iterable[Told]) -> None:
        for type_, properties in told:
            if type_ == "message.part.delta":
                if properties["partID"] in self._parts.get(properties["messageID"], ()):
                    self._texts.setdefault(properties["partID"], []).append(properties["delta"])
            elif type_ == "message.part.updated":
                part = properties["part"]
                parts = self._parts.get(part["messageID"])
                if parts is not None:
                    parts[part["id"]] = part
                    self._texts.pop(part["id"], None)
            elif type_ == "message.updated":
                self._take_message(properties["info"])

    def listed(self) -> list[Object]:
        """Oldest first."""
        return [self._whole(message_id) for message_id in self._infos]

    @property
    def oldest(self) -> str | None:
        return next(iter(self._infos), None)

    def get(self, message_id: str) -> Object | None:
        return self._whole(message_id) if message_id in self._infos else None

    def answer_to(self, message_id: str) -> Object | None:
        """The newest message of the assistant that answers this one."""
        for info in reversed(self._infos.values()):
            if info.get("parentID") == message_id:
                return self._whole(info["id"])
        return None

    def newest(self, role: str) -> Object | None:
        for info in reversed(self._infos.values()):
            if info["role"] == role:
                return self._whole(info["id"])
        return None

    def _take_message(self, info: Object) -> None:
        message_id = info["id"]
        if self._before is not None:
            self.is_past = self.is_past or message_id == self._before
            if message_id not in self._infos and self.is_past:
                return
        if message_id == self._last_left_out:
            return  # told again, when the turn that it began is over
        self._infos[message_id] = info
        self._parts.setdefault(message_id, {})
        if self._limit is not None and len(self._infos) > self._limit:
            oldest = next(iter(self._infos))
            del self._infos[oldest]
            self._last_left_out = oldest
            for part_id in self._parts.pop(oldest):
                self._texts.pop(part_id, None)
            self.has_earlier = True

    def _whole(self, message_id: str) -> Object:
        return {"info": self._infos[message_id], "parts": [self._part(p) for p in self._parts[message_id].values()]}

    def _part(self, part: Object) -> Object:
        added = self._texts.get(part["id"])
        return part if added is None else {**part, "text": part["text"] + "".join(added)}
