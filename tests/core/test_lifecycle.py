from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core.lifecycle import TRANSITIONS, Change, Lifecycle, State


def after(*changes: Change) -> Lifecycle:
    lifecycle = Lifecycle()
    for change in changes:
        lifecycle.apply(change)
    return lifecycle


def failed(times: int) -> Lifecycle:
    return after(*[Change.START, Change.EXIT] * times)


def test_a_life_goes_from_stopped_over_starting_and_running_to_stopped() -> None:
    lifecycle = Lifecycle()
    assert lifecycle.state is State.STOPPED
    for change, state in [
        (Change.START, State.STARTING),
        (Change.READY, State.RUNNING),
        (Change.STOP, State.STOPPING),
        (Change.EXIT, State.STOPPED),
    ]:
        assert lifecycle.apply(change) is state
    assert lifecycle.failures == 0


def test_every_change_is_in_the_table_or_refused_without_effect() -> None:
    for state, change in itertools.product(State, Change):
        lifecycle = Lifecycle()
        lifecycle.state = state
        if (state, change) in TRANSITIONS:
            assert lifecycle.apply(change) is TRANSITIONS[state, change]
        else:
            with pytest.raises(ValueError, match=f"{state.value} cannot {change.value}"):
                lifecycle.apply(change)
            assert (lifecycle.state, lifecycle.starts, lifecycle.failures) == (state, 0, 0)


def test_every_state_can_be_left_and_reached() -> None:
    assert {state for state, _ in TRANSITIONS} == set(State)
    assert set(TRANSITIONS.values()) == set(State)


@pytest.mark.parametrize("changes", [(Change.START, Change.EXIT), (Change.START, Change.READY, Change.EXIT)])
def test_an_exit_that_nobody_asked_for_is_a_failure(changes: tuple[Change, ...]) -> None:
    lifecycle = after(*changes)
    assert lifecycle.state is State.FAILED
    assert lifecycle.failures == 1
    assert lifecycle.state.value == "error"


def test_the_first_restart_is_at_once_then_the_delay_doubles_up_to_half_a_minute() -> None:
    assert [failed(times).delay for times in range(11)] == [0, 0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_five_failures_in_a_row_are_a_crash_loop() -> None:
    assert [failed(times).is_crash_loop for times in range(7)] == [False] * 5 + [True] * 2


def test_real_work_forgives_failures() -> None:
    lifecycle = failed(6)
    lifecycle.worked()
    assert (lifecycle.failures, lifecycle.delay, lifecycle.is_crash_loop) == (0, 0, False)


def test_restarts_are_the_starts_after_the_first() -> None:
    assert [failed(times).restarts for times in range(4)] == [0, 0, 1, 2]


@given(st.lists(st.sampled_from(Change)))
def test_the_delay_stays_within_its_bounds_whatever_happens(changes: list[Change]) -> None:
    lifecycle = Lifecycle(first_delay=1.0, longest_delay=3.0)
    for change in changes:
        if (lifecycle.state, change) in TRANSITIONS:
            lifecycle.apply(change)
        assert 0 <= lifecycle.delay <= 3.0
        assert lifecycle.failures <= lifecycle.starts


def test_an_agent_that_has_failed_for_days_still_has_a_delay() -> None:
    assert failed(5_000).delay == 30
