"""What the server holds of a session that is followed does not grow with the session."""

from __future__ import annotations

from bench.opencode import held, made_up


def test_a_session_of_20000_updates_is_followed_in_the_memory_of_one_of_2000() -> None:
    short, long = held(made_up(2_000)), held(made_up(20_000))
    assert long < short + 64 * 1024
    assert long < 1024 * 1024
