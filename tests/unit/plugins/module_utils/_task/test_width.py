"""The width: what holds for any sequence of results, and how it copes with healthy, limited and dead
services.
"""

from __future__ import annotations

import math

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.width import (
    FIRST,
    IN_A_ROW,
    NEUTRAL,
    OK,
    OVERLOADED,
    Width,
)
from hypothesis import given
from hypothesis import strategies as st
from support import UPDATE
from support.simulation import dead, healthy, limited_in_rate, limited_in_room, simulate

FEEDBACKS = st.tuples(
    st.sampled_from([OK, OVERLOADED, NEUTRAL]),
    st.booleans(),  # whether the asset is then in doubt
    st.floats(0, 5),  # seconds that elapse
    st.one_of(st.none(), st.floats(0, 10)),  # Retry-After
    st.integers(0, 300),  # which of the requests in flight it is
)


def dispatch_all(width: Width, now: float) -> list:
    dispatches = []
    while width.seconds_left(now) <= 0:
        dispatches.append(width.dispatch())
    return dispatches


def complete_all(width: Width, dispatches: list, feedback: str, now: float) -> None:
    for dispatch in dispatches:
        width.adapt(dispatch, feedback, now)


@given(st.integers(1, 256), st.lists(FEEDBACKS, max_size=120))
def test_never_more_at_once_than_allowed_nor_a_width_that_cost_an_asset(most, ends):
    width, now, in_flight, costly, last_before = Width(most), 0.0, [], math.inf, 0
    for feedback, in_doubt, passed, asked, which in ends:
        in_flight += dispatch_all(width, now)
        assert len(in_flight) == width.in_flight <= most
        if not in_flight:
            now += passed
            continue
        dispatch = in_flight.pop(which % len(in_flight))
        assert (
            dispatch.in_flight < max(costly, 2)
            or dispatch.in_flight == 1
            or dispatch.number <= last_before
        )
        now += passed
        width.adapt(dispatch, feedback, now, asked)
        if feedback == OVERLOADED and in_doubt:
            width.note_failed_item(dispatch, True)
            costly, last_before = min(costly, dispatch.in_flight), width.dispatched
        assert 1 <= width.now <= most


@given(st.lists(st.floats(0.5, 2), min_size=1, max_size=12))
def test_a_width_doubles_each_round_while_all_is_well(rounds):
    width, now, expected = Width(256), 0.0, FIRST
    for seconds in rounds:
        dispatches = dispatch_all(width, now)
        assert len(dispatches) == expected
        now += seconds
        complete_all(width, dispatches, OK, now)
        expected = min(256, 2 * expected)


def test_it_halves_once_for_all_that_left_before_and_then_grows_by_one_a_round():
    width = Width(64)
    complete_all(width, dispatch_all(width, 0), OK, 1)
    complete_all(width, dispatch_all(width, 1), OK, 2)
    first = dispatch_all(width, 2)
    assert len(first) == 16
    complete_all(width, first[:4], OVERLOADED, 3)
    complete_all(width, first[4:], OK, 3)
    for now, expected in ((3, 8), (4, 9), (5, 10)):
        dispatches = dispatch_all(width, now)
        assert len(dispatches) == expected
        complete_all(width, dispatches, OK, now + 1)


def test_nothing_but_one_probe_leaves_while_nothing_gets_through():
    width = Width(64)
    first = dispatch_all(width, 0)
    width.adapt(first[0], OVERLOADED, 1)
    assert width.seconds_left(1) == math.inf
    complete_all(width, first[1:], NEUTRAL, 1)
    (probe,) = dispatch_all(width, 1)
    assert probe.is_probe
    width.adapt(probe, OK, 2)
    assert len(dispatch_all(width, 2)) == 2


def test_a_retry_after_is_kept_by_all_until_something_that_left_later_gets_through():
    width = Width(4)
    first = dispatch_all(width, 0)
    width.adapt(first[0], OVERLOADED, 1, 7.0)
    complete_all(width, first[1:], OK, 1.5)
    assert width.seconds_left(2) == pytest.approx(6)
    probe = width.dispatch()
    width.adapt(probe, OK, 9)
    assert width.seconds_left(10) == 0


def test_no_retry_after_holds_the_list_for_longer_than_is_borne():
    width = Width(4, longest_wait=30)
    first = dispatch_all(width, 0)
    width.adapt(first[0], OVERLOADED, 1, 3600.0)
    width.adapt(first[1], OVERLOADED, 1, 3600.0)
    complete_all(width, first[2:], OK, 2)
    assert width.seconds_left(2) == pytest.approx(29)
    assert not width.stop_reason


def test_a_long_retry_after_of_one_asset_does_not_end_the_others():
    width = Width(4, longest_wait=0)
    for now in range(0, 400, 20):
        width.adapt(width.dispatch(), OVERLOADED, now, 3600.0)
        assert width.seconds_left(now + 10) <= 0
        width.adapt(width.dispatch(), OK, now + 11)
    assert not width.stop_reason


def test_failures_in_a_row_end_it_after_a_probe_and_a_success_between_does_not():
    width = Width(1)
    for number in range(3 * IN_A_ROW):
        dispatch = width.dispatch()
        if number % IN_A_ROW == IN_A_ROW - 1:
            width.adapt(dispatch, OK, number)
        else:
            width.adapt(dispatch, NEUTRAL, number)
            width.note_failed_item(dispatch, False)
        assert not width.stop_reason
    for number in range(IN_A_ROW):
        dispatch = width.dispatch()
        width.adapt(dispatch, NEUTRAL, 100 + number)
        width.note_failed_item(dispatch, False)
    assert f"the last {IN_A_ROW} failed" in width.stop_reason


@pytest.mark.parametrize("retry_after", [None, 2.0])
@pytest.mark.parametrize("max_unknown", [0, 1])
def test_a_dead_service_leaves_a_few_in_doubt(max_unknown, retry_after):
    ours = simulate(dead(503, retry_after), 1000, Width(64, 30), max_unknown=max_unknown)
    assert 1 <= ours.in_doubt <= 5
    assert ours.created == 0


def test_a_dead_service_is_not_asked_for_all_even_where_repeating_is_safe():
    ours = simulate(dead(503), 1000, Width(64, 30), resource=UPDATE)
    assert ours.in_doubt <= 5
    assert sum(ours.statuses.values()) <= 60


def test_a_service_that_is_well_gets_all_that_is_allowed_after_four_rounds():
    ours = simulate(healthy(1.0), 1000, Width(50))
    assert ours.created == 1000
    assert ours.peak == 50
    assert ours.seconds <= 1.25 * 1000 / 50


@pytest.mark.parametrize("slow_above", [16, 64])
def test_a_limit_of_room_costs_next_to_no_asset_and_little_throughput(slow_above):
    ours = simulate(limited_in_room(32, slow_above, 0.5), 1000, Width(64))
    assert 0 < ours.in_doubt <= 5
    assert ours.rate >= 0.8 * min(32, slow_above) / 0.5


@pytest.mark.parametrize("retry_after", [None, 1.0])
@pytest.mark.parametrize("seconds", [0.02, 0.5])
def test_a_limit_of_rate_costs_no_asset_and_little_throughput(seconds, retry_after):
    ours = simulate(limited_in_rate(50, seconds, retry_after), 1000, Width(64, 30))
    assert ours.created == 1000
    assert ours.rate >= 0.8 * 50
