# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The crew: each item is done once, nothing is begun after an end, and whatever happens, it comes back."""

from __future__ import annotations

import threading
import time

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ACCEPTED, REJECTED, UNKNOWN
from ansible_collections.infrastructure.services.plugins.module_utils._task.crew import NO_LIMITS, Crew, Ended, Limits
from ansible_collections.infrastructure.services.plugins.module_utils._task.pace import (
    NO_ROOM,
    NOTHING,
    TOO_FAST,
    WELL,
    Pace,
)

DONE = Ended(ACCEPTED, False, {})
DOUBTFUL = Ended(UNKNOWN, True, {})
REFUSED = Ended(REJECTED, True, {})


def nothing() -> str:
    return ""


def crew_of(items: int, do, most: int = 16, limits: Limits = NO_LIMITS, watch=nothing, grace: float = 1.0) -> Crew:
    """Return a crew that has run; `do` does one item, given its number and its turn."""
    crew = Crew(items, lambda: do, Pace(most), limits)
    crew.run(most, grace, watch, nothing)
    return crew


def send(turn, fate: str = WELL, seconds: float = 0.0, asked: float | None = None) -> bool:
    """Make one attempt; return whether there could be one."""
    if not turn.leave():
        return False
    time.sleep(seconds)
    turn.back(fate, asked)
    return True


def test_each_item_is_done_once_and_no_more_at_once_than_allowed():
    at_once, seen, peak, lock = 0, [], 0, threading.Lock()

    def do(item, turn):
        nonlocal at_once, peak
        assert turn.leave()
        with lock:
            at_once += 1
            peak = max(peak, at_once)
            seen.append(item)
        time.sleep(0.001)
        with lock:
            at_once -= 1
        turn.back(WELL)
        return Ended(ACCEPTED, False, {"item": item})

    crew = crew_of(500, do)
    assert sorted(seen) == list(range(500))
    assert {item: ended.result["item"] for item, ended in crew.ended.items()} == {item: item for item in range(500)}
    assert 4 <= peak <= 16
    assert (crew.begun, crew.reason) == ({}, "")


def test_an_item_that_another_run_holds_is_put_back_and_holds_up_no_other():
    held_until, order = time.monotonic() + 1.2, []

    def do(item, turn):
        if item == 0 and time.monotonic() < held_until:
            return None
        order.append(item)
        send(turn)
        return DONE

    crew_of(50, do, most=1)
    assert order == [*range(1, 50), 0]


def test_a_turn_is_given_up_while_an_item_waits_before_a_further_attempt():
    refused = []

    def do(item, turn):
        send(turn, NOTHING if item == 0 else WELL)
        if item == 0:
            turn.pause(0.6)
            refused.append(len(crew.ended))
            send(turn)
        return DONE

    crew = Crew(20, lambda: do, Pace(2))
    crew.run(2, 1.0, nothing, nothing)
    assert len(crew.ended) == 20
    assert refused[0] >= 10


@pytest.mark.parametrize(
    ("limits", "ended", "why"),
    [
        (Limits(max_unknown=3), DOUBTFUL, "3 ended with an unknown outcome (max_unknown: 3)"),
        (Limits(max_failures=5), REFUSED, "5 failed (max_failures: 5)"),
    ],
)
def test_limits_let_nothing_further_begin(limits, ended, why):
    def do(item, turn):
        send(turn, seconds=0.002)
        return ended if item % 10 == 0 else DONE

    crew = crew_of(1000, do, limits=limits)
    assert crew.reason == why
    assert len(crew.ended) <= 10 * max(limits) + 16
    assert crew.begun == {}


def test_what_was_refused_without_an_attempt_is_no_new_doubt():
    crew = crew_of(100, lambda item, turn: DOUBTFUL, limits=Limits(max_unknown=1))
    assert (len(crew.ended), crew.reason) == (100, "")


def test_failures_before_it_began_count():
    crew = Crew(10, lambda: lambda item, turn: REFUSED, Pace(1), Limits(max_failures=3), failures=2)
    crew.run(1, 1.0, nothing, nothing)
    assert len(crew.ended) == 1


def test_a_service_from_which_nothing_gets_through_is_not_asked_for_all():
    def do(_item, turn):
        send(turn, NO_ROOM)
        return DOUBTFUL

    crew = crew_of(1000, do, most=64)
    assert len(crew.ended) <= 5
    assert "nothing got through" in crew.reason


def test_a_repeatable_item_that_lacks_room_is_finished_before_others_are_begun():
    def do(_item, turn):
        for _attempt in range(3):
            if not send(turn, NO_ROOM):
                break
            turn.pause(0.05)
        return DOUBTFUL

    crew = crew_of(1000, do, most=64)
    assert len(crew.ended) <= 6


def test_an_end_lets_what_is_on_its_way_come_back_and_tells_what_did_not():
    asked = time.monotonic() + 0.3

    def do(item, turn):
        assert turn.leave()
        time.sleep(0.6 if item else 60)
        turn.back(WELL)
        return DONE

    started = time.monotonic()
    crew = crew_of(100, do, most=4, watch=lambda: "Ctrl-C" if time.monotonic() > asked else "", grace=1.5)
    assert 1.5 < time.monotonic() - started < 3.5
    assert sorted(crew.ended) == [1, 2, 3]
    assert {item: turn.attempts for item, turn in crew.begun.items()} == {0: 1}
    assert crew.reason == "Ctrl-C"


def test_an_end_ends_waits_and_makes_no_further_attempt():
    sent = []

    def do(item, turn):
        while send(turn, TOO_FAST, asked=20.0):
            sent.append(item)
            turn.pause(20)
        return REFUSED

    started, asked = time.monotonic(), time.monotonic() + 0.2
    crew = crew_of(100, do, most=4, watch=lambda: "SIGTERM" if time.monotonic() > asked else "")
    assert time.monotonic() - started < 3
    assert sorted(sent) == sorted(crew.ended)
    assert crew.begun == {}


def test_what_nobody_expected_in_a_thread_ends_it_and_the_item_is_told(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda told: None)

    def do(item, turn):
        assert turn.leave()
        time.sleep(0.05)
        if item == 6:
            raise ZeroDivisionError
        turn.back(WELL)
        return DONE

    others = threading.enumerate()
    crew = crew_of(1000, do)
    for thread in set(threading.enumerate()) - set(others):
        thread.join(5)
    assert "ZeroDivisionError" in crew.reason
    assert crew.begun[6].attempts == 1
    assert len(crew.ended) < 50


def test_it_begins_with_those_threads_that_the_system_gives(monkeypatch):
    started = []

    def start(thread):
        if len(started) == 3:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        original(thread)

    original = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    assert len(crew_of(100, lambda item, turn: DONE).ended) == 100


def test_no_item_is_no_work():
    assert crew_of(0, None).ended == {}
