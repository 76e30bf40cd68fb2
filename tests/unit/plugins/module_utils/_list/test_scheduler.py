# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scheduler: each item is processed once, nothing is started after a stop, and every item is
accounted for.

All but one run in virtual time.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import replace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    REJECTED,
    UNKNOWN,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.congestion import (
    NEUTRAL,
    OK,
    OVERLOADED,
    RATE_LIMITED,
    CongestionControl,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from support.scheduling import Scheduled
from support.virtual_time import VirtualTime

DONE = Result(outcome=ACCEPTED)
DOUBTFUL = Result(outcome=UNKNOWN, failed=True)
REFUSED = Result(outcome=REJECTED, failed=True)


def nothing() -> str:
    return ""


def run_of(
    items: int,
    do,
    most: int = 16,
    watch=nothing,
    grace: float = 1.0,
    time: VirtualTime | None = None,
    **limits,
) -> Scheduled:
    """Return a scheduler that has finished; `do` processes one item, given its number and its slot."""
    time = time or VirtualTime()
    scheduler = Scheduled(
        items, do, CongestionControl(most), clock=time.monotonic, threads=time, **limits
    )
    scheduler.run(most, grace, watch, nothing)
    return scheduler


def send(slot, feedback: str = OK, retry_after: float | None = None) -> bool:
    """Make one attempt; return whether it was allowed."""
    if not slot.acquire():
        return False
    slot.release(feedback, retry_after)
    return True


class AtOnce:
    """Makes attempts that take some time each; `peak`: how many were in flight at once."""

    def __init__(self, sleep) -> None:
        self._sleep, self._in_flight, self._lock = sleep, 0, threading.Lock()
        self.peak, self.seen = 0, []

    def do(self, item, slot) -> Result:
        """Process an item."""
        assert slot.acquire()
        with self._lock:
            self._in_flight += 1
            self.peak = max(self.peak, self._in_flight)
            self.seen.append(item)
        self._sleep(0.001)
        with self._lock:
            self._in_flight -= 1
        slot.release(OK)
        return replace(DONE, item=str(item))

    def check(self, scheduler: Scheduled, items: int, most: int) -> None:
        """Each item is done once, and no more at once than allowed."""
        assert sorted(self.seen) == list(range(items))
        results = {item: each.item for item, each in scheduler.ended.items()}
        assert results == {item: str(item) for item in range(items)}
        assert 4 <= self.peak <= most
        assert (scheduler.begun, scheduler.reason) == ({}, "")


def test_each_item_is_done_once_by_real_threads():
    attempts = AtOnce(time.sleep)
    scheduler = Scheduled(500, attempts.do, CongestionControl(16))
    scheduler.run(16, 60.0, nothing, nothing)
    attempts.check(scheduler, 500, 16)


@pytest.mark.parametrize("seed", range(10))
def test_each_item_is_done_once_in_whatever_order_the_threads_run(seed):
    virtual = VirtualTime(seed)
    attempts = AtOnce(virtual.sleep)
    attempts.check(run_of(60, attempts.do, most=8, time=virtual), 60, 8)


@pytest.mark.parametrize("seed", range(10))
def test_items_that_are_retried_or_held_are_all_done_in_whatever_order_the_threads_run(seed):
    virtual, chance, held = VirtualTime(seed), random.Random(seed), set(range(0, 40, 7))

    def do(item, slot):
        if item in held:
            held.remove(item)
            return None
        while feedback := chance.choice([OK, OK, RATE_LIMITED, OVERLOADED]):
            assert slot.acquire()
            virtual.sleep(chance.random())
            slot.release(feedback)
            if feedback == OK:
                return DONE
            slot.pause(chance.random())

    scheduler = run_of(40, do, most=6, time=virtual)
    assert (sorted(scheduler.ended), scheduler.begun, scheduler.reason) == (list(range(40)), {}, "")
    assert (scheduler.control.in_flight, scheduler.begun) == (0, {})


def test_an_item_that_another_run_holds_is_put_back_and_holds_up_no_other():
    virtual, order, tried = VirtualTime(), [], []

    def do(item, slot):
        if item == 0:
            tried.append(virtual.monotonic())
            if virtual.monotonic() < 1.2:
                return None
        order.append(item)
        send(slot)
        return DONE

    run_of(50, do, most=1, time=virtual)
    assert order == [*range(1, 50), 0]
    assert tried == [0.0, 0.5, 1.0, 1.5]


def test_a_slot_is_released_while_an_item_waits_before_a_further_attempt():
    virtual, at = VirtualTime(), {}

    def do(item, slot):
        send(slot, NEUTRAL if item == 0 else OK)
        if item == 0:
            slot.pause(60)
            send(slot)
        at[item] = virtual.monotonic()
        return DONE

    run_of(20, do, most=2, time=virtual)
    assert at == {**dict.fromkeys(range(1, 20), 0.0), 0: 60.0}


@pytest.mark.parametrize("seed", range(5))
def test_a_further_attempt_goes_before_a_new_item(seed):
    virtual, order = VirtualTime(seed), []

    def do(item, slot):
        for _attempt in range(2 if item == 0 else 1):
            assert slot.acquire()
            order.append(item)
            virtual.sleep(1)
            slot.release(OK)
            slot.pause(0.5)
        return DONE

    scheduler = Scheduled(4, do, CongestionControl(1), clock=virtual.monotonic, threads=virtual)
    scheduler.run(3, 1.0, nothing, nothing)
    assert order == [0, 1, 0, 2, 3]


@pytest.mark.parametrize("most", [1, 16])
@pytest.mark.parametrize(
    ("limits", "ended", "why"),
    [
        ({"max_unknown": 3}, DOUBTFUL, "the list stopped at 3 in doubt (max_unknown: 3)"),
        ({"max_failures": 5}, REFUSED, "the list stopped at 5 failures (max_failures: 5)"),
    ],
)
def test_limits_let_nothing_further_begin(limits, ended, why, most):
    virtual = VirtualTime()

    def do(item, slot):
        assert slot.acquire()
        virtual.sleep(0.002)
        slot.release(OK)
        return ended if item % 10 == 0 else DONE

    scheduler = run_of(1000, do, most, time=virtual, **limits)
    assert scheduler.reason == why
    assert len(scheduler.ended) <= 10 * (max(limits.values()) - 1) + most
    assert scheduler.begun == {}


def test_what_was_refused_without_an_attempt_is_no_new_doubt():
    scheduler = run_of(100, lambda item, slot: DOUBTFUL, max_unknown=1)
    assert (len(scheduler.ended), scheduler.reason) == (100, "")


def test_failures_before_it_began_count():
    scheduler = run_of(10, lambda item, slot: REFUSED, most=1, max_failures=3, failures=2)
    assert len(scheduler.ended) == 1


def test_nothing_is_begun_when_enough_failed_before():
    scheduler = run_of(10, lambda item, slot: DONE, most=1, max_failures=2, failures=2)
    assert (scheduler.ended, scheduler.reason) == (
        {},
        "the list stopped at 2 failures (max_failures: 2)",
    )


def test_a_service_from_which_nothing_gets_through_is_not_asked_for_all():
    def do(_item, slot):
        send(slot, OVERLOADED)
        return DOUBTFUL

    scheduler = run_of(1000, do, most=64)
    assert len(scheduler.ended) <= 5
    assert "nothing got through" in scheduler.reason


def test_a_repeatable_item_that_lacks_room_is_finished_before_others_are_begun():
    virtual = VirtualTime()

    def do(_item, slot):
        for _attempt in range(3):
            if not slot.acquire():
                break
            virtual.sleep(0.1)
            slot.release(OVERLOADED)
            slot.pause(1)
        return DOUBTFUL

    scheduler = run_of(1000, do, most=64, time=virtual)
    assert len(scheduler.ended) <= 6


def test_after_a_stop_it_waits_for_what_is_in_flight_and_lists_what_did_not_end():
    virtual, began = VirtualTime(), []

    def do(item, slot):
        assert slot.acquire()
        began.append(item)
        virtual.sleep(2 if item else 60)
        slot.release(OK)
        return DONE

    scheduler = run_of(
        100,
        do,
        most=4,
        watch=lambda: "Ctrl-C" if virtual.monotonic() >= 1 else "",
        grace=10,
        time=virtual,
    )
    assert 11 <= virtual.monotonic() < 12  # the grace period, and not what item 0 takes
    assert sorted(scheduler.ended) == [1, 2, 3]
    assert {number: item.attempts for number, item in scheduler.begun.items()} == {0: 1}
    assert scheduler.reason == "Ctrl-C"
    virtual.sleep(100)
    assert began == [0, 1, 2, 3]


def test_a_stop_ends_waits_and_makes_no_further_attempt():
    virtual, sent = VirtualTime(), []

    def do(item, slot):
        while send(slot, RATE_LIMITED, retry_after=20.0):
            sent.append(item)
            slot.pause(20)
        return REFUSED

    scheduler = run_of(
        100, do, most=4, watch=lambda: "SIGTERM" if virtual.monotonic() >= 1 else "", time=virtual
    )
    assert virtual.monotonic() == 1
    assert sent
    assert sorted(sent) == sorted(scheduler.ended)
    assert scheduler.begun == {}


def test_a_stop_between_the_beginning_of_an_item_and_its_first_attempt_prevents_the_attempt():
    virtual = VirtualTime()

    def do(item, slot):
        scheduler.stop("the ledger is lost")
        assert not slot.acquire()
        assert (slot.item.attempts, slot.item.was_refused) == (0, True)
        return REFUSED

    scheduler = Scheduled(10, do, CongestionControl(4), clock=virtual.monotonic, threads=virtual)
    scheduler.run(4, 1.0, nothing, nothing)
    assert (virtual.errors, len(scheduler.ended), scheduler.begun) == ([], 1, {})


def test_a_released_slot_is_taken_at_once():
    virtual, began = VirtualTime(), []

    def do(item, slot):
        for _attempt in range(2):
            assert slot.acquire()
            began.append(virtual.monotonic())
            virtual.sleep(0.25)
            slot.release(OK)
            slot.pause(0.25)
        return DONE

    scheduler = Scheduled(4, do, CongestionControl(1), clock=virtual.monotonic, threads=virtual)
    scheduler.run(4, 1.0, nothing, nothing)
    assert began == [number / 4 for number in range(8)]


def test_an_unexpected_error_in_a_thread_stops_it_and_the_item_is_listed():
    virtual = VirtualTime()

    def do(item, slot):
        assert slot.acquire()
        virtual.sleep(0.05)
        if item == 6:
            raise ZeroDivisionError
        slot.release(OK)
        return DONE

    scheduler = run_of(1000, do, time=virtual)
    assert "ZeroDivisionError" in scheduler.reason
    assert scheduler.begun[6].attempts == 1
    assert len(scheduler.ended) < 50
    assert virtual.errors == []  # threading would write them to stderr


@pytest.mark.parametrize("possible", [0, 3])
def test_it_begins_with_those_threads_that_the_system_gives(monkeypatch, possible):
    started = []

    def start(thread):
        if len(started) == possible:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        original(thread)

    original = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    scheduler = run_of(100, lambda item, slot: DONE)
    assert (len(scheduler.ended), scheduler.reason) == (
        (100, "") if possible else (0, "no thread could be started")
    )


def test_no_item_is_no_work():
    assert run_of(0, None).ended == {}
