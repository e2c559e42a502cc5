from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core.ids import AgentId, SessionId, SessionKey
from sandbox_agent.store.paging import MoveLog, Position

KEYS = [SessionKey(AgentId("a"), SessionId(f"s{number}")) for number in range(4)]


def test_a_session_that_moves_for_ever_has_one_place_in_the_log_while_nobody_pages() -> None:
    log = MoveLog("x")
    for moved_at in range(5000):
        for key in KEYS:
            log.record(key, float(moved_at))
    assert len(log) == len(KEYS)


@given(st.lists(st.one_of(st.sampled_from(KEYS), st.none()), max_size=60), st.data())
def test_whoever_looked_finds_every_session_that_has_moved_since(
    acts: list[SessionKey | None], data: st.DataObject
) -> None:
    """None is a look; against a log of every single move."""
    log = MoveLog("x")
    moves: list[tuple[SessionKey, float]] = []
    looks: list[tuple[int, int]] = []
    updated = dict.fromkeys(KEYS, 0.0)
    for now, act in enumerate(acts, 1):
        if act is None:
            looks.append((log.look(), len(moves)))
        else:
            moves.append((act, updated[act]))
            log.record(act, updated[act])
            updated[act] = float(now)
    if looks:
        number, place = data.draw(st.sampled_from(looks))
        after: Position = (data.draw(st.integers(0, 60)) + 0.5, AgentId("a"), SessionId("s"))
        assert set(log.escaped(number, after)) == {key for key, before in moves[place:] if before < after[0]}
        assert set(log.escaped(number, None)) == {key for key, _ in moves[place:]}
