"""Who wants to know that a session's history has grown. What is new there, they read as anybody else does."""

from __future__ import annotations

from collections.abc import Callable

from sandbox_agent.core.ids import SessionKey

Follower = Callable[[SessionKey, int], None]
"""Is told the session and the first entry that is new."""


class Growth:
    """Costs nothing while nobody follows."""

    def __init__(self) -> None:
        self._followers: list[Follower] = []
        self.is_followed = False

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Call `follower` whenever the history of a session grows. Gives the function that ends it."""
        self._followers.append(follower)
        self.is_followed = True
        return lambda: self._unfollow(follower)

    def _unfollow(self, follower: Follower) -> None:
        if follower in self._followers:
            self._followers.remove(follower)
        self.is_followed = bool(self._followers)

    def tell(self, key: SessionKey, first: int) -> None:
        for follower in list(self._followers):
            follower(key, first)
