"""The scheduler: each item is processed once, nothing is started after a stop, and every item is
accounted for.

All but one run in virtual time.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from unittest.mock import Mock

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    REJECTED,
    UNKNOWN,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.width import (
    OK,
    OVERLOADED,
    Width,
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
    time: VirtualTime | None = None,
    **limits,
) -> Scheduled:
    """Return a scheduler that has finished; `do` processes one item, given its number and its slot."""
    time = time or VirtualTime()
    scheduler = Scheduled(items, do, Width(most), clock=time.monotonic, threads=time, **limits)
    scheduler.run(most, watch)
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


@pytest.mark.parametrize("seed", range(10))
def test_each_item_is_done_once_in_whatever_order_the_threads_run(seed):
    virtual = VirtualTime(seed)
    attempts = AtOnce(virtual.sleep)
    attempts.check(run_of(60, attempts.do, most=8, time=virtual), 60, 8)


@pytest.mark.parametrize("most", [1, 16])
def test_a_limit_lets_nothing_further_begin(most):
    virtual = VirtualTime()

    def do(item, slot):
        assert slot.acquire()
        virtual.sleep(0.002)
        slot.release(OK)
        return DOUBTFUL if item % 10 == 0 else DONE

    scheduler = run_of(1000, do, most, time=virtual, max_unknown=3)
    assert scheduler.reason == "3 in doubt"
    assert len(scheduler.ended) <= 20 + most
    assert scheduler.begun == {}


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
        while send(slot, OVERLOADED, retry_after=20.0):
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

    scheduler = Scheduled(10, do, Width(4), clock=virtual.monotonic, threads=virtual)
    scheduler.run(4)
    assert (virtual.errors, len(scheduler.ended), scheduler.begun) == ([], 1, {})


@pytest.mark.parametrize("started", [0, 3])
def test_a_thread_that_cannot_be_started_is_the_last_that_is_tried(started):
    virtual, made = VirtualTime(), []
    working = virtual.Thread

    def thread(**given):
        made.append(working(**given))
        if len(made) > started:
            made[-1].start = Mock(side_effect=RuntimeError("can't start new thread"))
        return made[-1]

    virtual.Thread = thread
    scheduler = run_of(20, lambda _item, _slot: DONE, most=8, time=virtual)
    assert len(made) == started + 1
    assert len(scheduler.ended) == (20 if started else 0)
    assert scheduler.reason == ("" if started else "no thread could be started")
