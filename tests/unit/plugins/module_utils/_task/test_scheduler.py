# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scheduler: each item is processed once, nothing is started after a stop, and every item is accounted for."""

from __future__ import annotations

import threading
import time

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ACCEPTED, REJECTED, UNKNOWN
from ansible_collections.infrastructure.services.plugins.module_utils._task.pace import (
    NEUTRAL,
    OK,
    OVERLOADED,
    RATE_LIMITED,
    Pace,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.scheduler import (
    NO_LIMITS,
    Ended,
    Limits,
    Scheduler,
)

DONE = Ended(ACCEPTED, False, {})
DOUBTFUL = Ended(UNKNOWN, True, {})
REFUSED = Ended(REJECTED, True, {})


def nothing() -> str:
    return ""


def run_of(items: int, do, most: int = 16, limits: Limits = NO_LIMITS, watch=nothing, grace: float = 1.0) -> Scheduler:
    """Return a scheduler that has finished; `do` processes one item, given its number and its slot."""
    scheduler = Scheduler(items, lambda: do, Pace(most), limits)
    scheduler.run(most, grace, watch, nothing)
    return scheduler


def send(slot, feedback: str = OK, seconds: float = 0.0, retry_after: float | None = None) -> bool:
    """Make one attempt; return whether it was allowed."""
    if not slot.acquire():
        return False
    time.sleep(seconds)
    slot.release(feedback, retry_after)
    return True


def test_each_item_is_done_once_and_no_more_at_once_than_allowed():
    at_once, seen, peak, lock = 0, [], 0, threading.Lock()

    def do(item, slot):
        nonlocal at_once, peak
        assert slot.acquire()
        with lock:
            at_once += 1
            peak = max(peak, at_once)
            seen.append(item)
        time.sleep(0.001)
        with lock:
            at_once -= 1
        slot.release(OK)
        return Ended(ACCEPTED, False, {"item": item})

    scheduler = run_of(500, do)
    assert sorted(seen) == list(range(500))
    assert {item: each.result["item"] for item, each in scheduler.ended.items()} == {item: item for item in range(500)}
    assert 4 <= peak <= 16
    assert (scheduler.begun, scheduler.reason) == ({}, "")


def test_an_item_that_another_run_holds_is_put_back_and_holds_up_no_other():
    held_until, order = time.monotonic() + 1.2, []

    def do(item, slot):
        if item == 0 and time.monotonic() < held_until:
            return None
        order.append(item)
        send(slot)
        return DONE

    run_of(50, do, most=1)
    assert order == [*range(1, 50), 0]


def test_a_slot_is_released_while_an_item_waits_before_a_further_attempt():
    refused = []

    def do(item, slot):
        send(slot, NEUTRAL if item == 0 else OK)
        if item == 0:
            slot.pause(0.6)
            refused.append(len(scheduler.ended))
            send(slot)
        return DONE

    scheduler = Scheduler(20, lambda: do, Pace(2))
    scheduler.run(2, 1.0, nothing, nothing)
    assert len(scheduler.ended) == 20
    assert refused[0] >= 10


@pytest.mark.parametrize(
    ("limits", "ended", "why"),
    [
        (Limits(max_unknown=3), DOUBTFUL, "3 ended with an unknown outcome (max_unknown: 3)"),
        (Limits(max_failures=5), REFUSED, "5 failed (max_failures: 5)"),
    ],
)
def test_limits_let_nothing_further_begin(limits, ended, why):
    def do(item, slot):
        send(slot, seconds=0.002)
        return ended if item % 10 == 0 else DONE

    scheduler = run_of(1000, do, limits=limits)
    assert scheduler.reason == why
    assert len(scheduler.ended) <= 10 * max(limits) + 16
    assert scheduler.begun == {}


def test_what_was_refused_without_an_attempt_is_no_new_doubt():
    scheduler = run_of(100, lambda item, slot: DOUBTFUL, limits=Limits(max_unknown=1))
    assert (len(scheduler.ended), scheduler.reason) == (100, "")


def test_failures_before_it_began_count():
    scheduler = Scheduler(10, lambda: lambda item, slot: REFUSED, Pace(1), Limits(max_failures=3), failures=2)
    scheduler.run(1, 1.0, nothing, nothing)
    assert len(scheduler.ended) == 1


def test_nothing_is_begun_when_enough_failed_before():
    scheduler = Scheduler(10, lambda: lambda item, slot: DONE, Pace(1), Limits(max_failures=2), failures=2)
    scheduler.run(1, 1.0, nothing, nothing)
    assert (scheduler.ended, scheduler.reason) == ({}, "2 failed (max_failures: 2)")


def test_a_service_from_which_nothing_gets_through_is_not_asked_for_all():
    def do(_item, slot):
        send(slot, OVERLOADED)
        return DOUBTFUL

    scheduler = run_of(1000, do, most=64)
    assert len(scheduler.ended) <= 5
    assert "nothing got through" in scheduler.reason


def test_a_repeatable_item_that_lacks_room_is_finished_before_others_are_begun():
    def do(_item, slot):
        for _attempt in range(3):
            if not send(slot, OVERLOADED):
                break
            slot.pause(0.05)
        return DOUBTFUL

    scheduler = run_of(1000, do, most=64)
    assert len(scheduler.ended) <= 6


def test_an_end_lets_what_is_on_its_way_come_back_and_tells_what_did_not():
    asked = time.monotonic() + 0.3

    def do(item, slot):
        assert slot.acquire()
        time.sleep(0.6 if item else 60)
        slot.release(OK)
        return DONE

    started = time.monotonic()
    scheduler = run_of(100, do, most=4, watch=lambda: "Ctrl-C" if time.monotonic() > asked else "", grace=1.5)
    assert 1.5 < time.monotonic() - started < 3.5
    assert sorted(scheduler.ended) == [1, 2, 3]
    assert {item: slot.attempts for item, slot in scheduler.begun.items()} == {0: 1}
    assert scheduler.reason == "Ctrl-C"


def test_an_end_ends_waits_and_makes_no_further_attempt():
    sent = []

    def do(item, slot):
        while send(slot, RATE_LIMITED, retry_after=20.0):
            sent.append(item)
            slot.pause(20)
        return REFUSED

    started, asked = time.monotonic(), time.monotonic() + 0.2
    scheduler = run_of(100, do, most=4, watch=lambda: "SIGTERM" if time.monotonic() > asked else "")
    assert time.monotonic() - started < 3
    assert sorted(sent) == sorted(scheduler.ended)
    assert scheduler.begun == {}


def test_what_nobody_expected_in_a_thread_ends_it_and_the_item_is_told(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda told: None)

    def do(item, slot):
        assert slot.acquire()
        time.sleep(0.05)
        if item == 6:
            raise ZeroDivisionError
        slot.release(OK)
        return DONE

    others = threading.enumerate()
    scheduler = run_of(1000, do)
    for thread in set(threading.enumerate()) - set(others):
        thread.join(5)
    assert "ZeroDivisionError" in scheduler.reason
    assert scheduler.begun[6].attempts == 1
    assert len(scheduler.ended) < 50


def test_it_begins_with_those_threads_that_the_system_gives(monkeypatch):
    started = []

    def start(thread):
        if len(started) == 3:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        original(thread)

    original = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    assert len(run_of(100, lambda item, slot: DONE).ended) == 100


def test_no_item_is_no_work():
    assert run_of(0, None).ended == {}
