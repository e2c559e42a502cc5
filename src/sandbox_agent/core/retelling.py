"""A session's history in the words of the other version of ACP, entry by entry: the same live and out of the record."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core import frames, versions
from sandbox_agent.core.json_values import as_object, read_json
from sandbox_agent.core.methods import PROMPT, UPDATE
from sandbox_agent.core.versions import UpdateTranslator, Version


class Retelling:
    """Have it note every entry, and tell those that readers are told of. Readers at the same place can share it."""

    def __init__(self, session_id: str, *, from_: Version, is_replay: bool = False) -> None:
        self.from_ = from_
        self._to = Version.V2 if from_ is Version.V1 else Version.V1
        self.translator = UpdateTranslator(session_id, from_=from_, to=self._to, is_replay=is_replay)

    def note(self, source: str, line: bytes) -> None:
        """An entry of whatever kind: from prompts and their answers it learns where turns begin and end."""
        frame = frames.parse(line)
        if source == "client" and frame.method == PROMPT:
            self.translator.prompt_sent(frame.key)
        elif source == "agent" and frame.is_answer:
            self.translator.answered(frame.key)

    def tell(self, sequence: int, line: bytes) -> list[bytes]:
        """What the reader is told of entry `sequence`: often one line, sometimes none or several."""
        message = as_object(read_json(line))
        method, params = message.get("method"), message.get("params")
        if method == UPDATE:
            return [update_line(said) for said in self.translator.update(params, sequence)]
        if not isinstance(method, str) or method.startswith("_"):
            return [line]
        method, params = versions.ask(method, params, from_=self.from_, to=self._to)
        if "id" in message:
            return [frames.request(frames.member(line, "id") or b"null", method, params)]
        return [frames.notification(method, params)]

    def opened(self, result: Any) -> list[bytes]:
        """Learn what the session offers from the agent's answer to new, load, resume or fork; what to tell of it."""
        return [update_line(said) for said in self.translator.session_opened(result)]


def update_line(params: Any) -> bytes:
    return frames.notification(UPDATE, params)
