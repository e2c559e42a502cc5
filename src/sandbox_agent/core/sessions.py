"""The sessions of one agent process: by our id, and by what the process calls them."""

from __future__ import annotations

from sandbox_agent.core import frames
from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.permission_policy import PermissionPolicy
from sandbox_agent.core.session import IDLE, Phase, Session
from sandbox_agent.core.versions import Version


class Sessions:
    """Which there are, which of them the process holds, and which have a client of another version than its own."""

    def __init__(self, policy: PermissionPolicy) -> None:
        self.default_policy = policy
        self.by_id: dict[SessionId, Session] = {}
        self.held: dict[str, Session] = {}
        """What the process calls the sessions that it was given or has made."""
        self._children: dict[SessionId, dict[SessionId, Session]] = {}
        self._barred: set[str] = set()
        """Names of which nobody can say whether the process means the older or the newer session by them."""
        self.version = Version.V1
        """What the process speaks; each client may speak another."""
        self.mixed: set[SessionId] = set()
        """The sessions to which a client of another version is attached."""

    def get(self, session: SessionId | None) -> Session | None:
        return self.by_id.get(session) if session is not None else None

    def children(self, parent: SessionId) -> list[Session]:
        """The sessions of the helpers that the agent announced in this one."""
        return list(self._children.get(parent, {}).values())

    @property
    def child_count(self) -> int:
        """Of all sessions together."""
        return sum(map(len, self._children.values()))

    def open(self, session: SessionId, phase: Phase, policy: PermissionPolicy | None) -> Session:
        """The session, made in this phase if it is not known here."""
        found = self.by_id.get(session)
        if found is None:
            found = self.by_id[session] = Session(session, phase, policy or self.default_policy)
            if phase is not Phase.DORMANT:
                self.held[found.native] = found
        return found

    def add(self, session: Session) -> None:
        """The process has made it."""
        self.by_id[session.id] = self.held[session.native] = session
        if session.parent is not None:
            self._children.setdefault(session.parent, {})[session.id] = session

    def hand_over(self, session: Session, native: str) -> None:
        """The process gets it, and calls it so."""
        session.rename(native)
        self.held[native] = session

    def holds(self, native: str) -> bool:
        """Whether the process has a session under way that it calls so, or may have."""
        held = self.held.get(native)
        return native in self._barred or (held is not None and held.phase not in (Phase.DORMANT, Phase.ENDED))

    def is_held(self, session: Session) -> bool:
        return self.held.get(session.native) is session

    def bar(self, native: str) -> None:
        """As long as this process lives, what it says under that name reaches nobody."""
        self._barred.add(native)
        self.held.pop(native, None)

    def let_go(self, session: Session) -> None:
        """The process has not got it: the name is free for another."""
        if self.is_held(session):
            del self.held[session.native]

    def process_gone(self) -> None:
        self.held.clear()
        self._barred.clear()

    def forget(self, session: Session) -> None:
        del self.by_id[session.id]
        self._children.pop(session.id, None)
        if session.parent in self._children:
            self._children[session.parent].pop(session.id, None)
        self.mixed.discard(session.id)
        self.let_go(session)

    def speak(self, version: Version) -> None:
        """The process that has started speaks this version."""
        self.version = version
        self.mixed.clear()
        for session in self.by_id.values():
            session.activity = dict(IDLE)
            self.look_at(session)

    def look_at(self, session: Session) -> None:
        """Whoever is attached has changed."""
        if any(client.hears(self.version) is not self.version for client in session.attached.values()):
            self.mixed.add(session.id)
        else:
            self.mixed.discard(session.id)


def addressed(line: bytes, session: Session | None) -> bytes:
    """The line with the session's name as the agent has it."""
    if session is None or session.native == session.id:
        return line
    return frames.with_params(line, {"sessionId": session.native})
