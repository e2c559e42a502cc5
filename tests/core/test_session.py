"""The life of a session, as the table has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.session import TRANSITIONS, Change, Phase, Session


def _session(phase: Phase) -> Session:
    return Session(SessionId("s"), phase)


@given(st.sampled_from(Phase), st.lists(st.sampled_from(Change), max_size=30))
def test_a_session_moves_by_the_table_alone_and_stays_where_it_is_when_a_change_is_refused(
    born: Phase, changes: list[Change]
) -> None:
    session = _session(born)
    for change in changes:
        before, was_muted = session.phase, session.is_muted
        if (before, change) in TRANSITIONS:
            assert session.change(change) is TRANSITIONS[before, change]
        else:
            with pytest.raises(ValueError, match=f"{before.name}.*{change.name}"):
                session.change(change)
            assert session.phase is before
            assert session.is_muted == was_muted
            continue
        is_given_up = was_muted and session.phase in {Phase.DORMANT, Phase.ENDED} and change is not Change.EXITED
        assert session.is_muted == (session.phase in {Phase.WAKING, Phase.SETTLING} or is_given_up)
        assert session.is_live == (session.phase in {Phase.LIVE, Phase.CLOSING})
        assert session.can_begin == (session.phase is Phase.LIVE)


@given(st.lists(st.sampled_from(Change), max_size=30))
def test_nothing_follows_the_end(changes: list[Change]) -> None:
    session = _session(Phase.LIVE)
    session.change(Change.END)
    for change in changes:
        if (session.phase, change) in TRANSITIONS:
            session.change(change)
        assert session.phase is Phase.ENDED


@pytest.mark.parametrize("phase", list(Phase))
def test_from_every_phase_a_lost_process_leaves_nothing_live_and_a_session_that_is_not_ended_can_be_woken(
    phase: Phase,
) -> None:
    session = _session(phase)
    session.change(Change.EXITED)
    if phase is Phase.ENDED:
        assert session.phase is Phase.ENDED
        with pytest.raises(ValueError, match="WAKE"):
            session.change(Change.WAKE)
        return
    for change in (Change.WAKE, Change.LOADED, Change.AWAKE):
        session.change(change)
    assert session.is_live


def test_every_phase_can_be_reached_from_a_new_session() -> None:
    reached = {Phase.LIVE}
    while True:
        further = {after for (before, _), after in TRANSITIONS.items() if before in reached} | reached
        if further == reached:
            break
        reached = further
    assert reached == set(Phase)
