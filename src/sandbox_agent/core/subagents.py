"""Sessions that an agent makes by itself, for helpers of its own: it announces each in the session that it is part of.

What it says of such a child comes without anybody asking for it, so whoever is attached to the parent is attached to
the child too.
"""

from __future__ import annotations

from collections.abc import Callable

from sandbox_agent.core import frames, speaking
from sandbox_agent.core.effects import Announced, Effect, Noted
from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.session import Change, Phase, Session
from sandbox_agent.core.sessions import Sessions

SUBAGENT = "subagent_update"
MAX_CHILDREN = 1000
"""Of one process. Those beyond are told of, and what they say is not kept."""
_MAX_NAME = 256


class Subagents:
    def __init__(self, sessions: Sessions, name_session: Callable[[str], SessionId]) -> None:
        self._sessions = sessions
        self._name_session = name_session

    def told(self, parent: Session, raw: bytes) -> tuple[bytes, list[Effect]]:
        """The update with our id of the child in it, and what is new. The first of a child makes it a session."""
        update = speaking.update_in(raw)
        native = update.get("sessionId")
        if not isinstance(native, str) or not 0 < len(native) <= _MAX_NAME:
            return raw, [Noted(f"agent told of a subagent in session {parent.id!r} without a name that can be used")]
        child, effects = self._known(parent, native), list[Effect]()
        if child is None:
            if self._sessions.holds(native) or self._sessions.child_count >= MAX_CHILDREN:
                return raw, [Noted(f"agent told of a subagent {native!r}: the name is taken, or there are too many")]
            child = self._born(parent, native)
            effects.append(Announced(child.id, parent.id, native, _text(update.get("title")), _text(update.get("cwd"))))
        if child.id != native:
            raw = frames.with_params(raw, {"update": {**update, "sessionId": child.id}})
        return raw, effects

    def _known(self, parent: Session, native: str) -> Session | None:
        """The child, if it was announced before. A process that has taken up its parent has taken up the child too."""
        for child in self._sessions.children(parent.id):
            if child.native == native:
                if child.phase is Phase.DORMANT:
                    child.change(Change.WAKE)
                    child.change(Change.AWAKE)
                    self._sessions.hand_over(child, native)
                return child
        return None

    def _born(self, parent: Session, native: str) -> Session:
        child = Session(self._name_session(native), Phase.LIVE, parent.policy, native=native, parent=parent.id)
        for client in parent.attached.values():
            child.attach(client)
        self._sessions.add(child)
        self._sessions.look_at(child)
        return child


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
