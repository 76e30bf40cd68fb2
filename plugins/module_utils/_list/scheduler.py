# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Assigns items to threads that share a pace, and decides when to stop; knows nothing of HTTP or of
what an item is.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from typing import Any, Callable

from .._errors import NOT_SENT, UNKNOWN, EndOfThread
from .._result import Result
from .pace import NEUTRAL, OVERLOADED, RATE_LIMITED, Dispatch, Pace

_POLL_INTERVAL = (
    0.5  # seconds between checks by the main thread, the only one that receives signals
)
_MAX_WAIT = 1.0  # seconds after which a waiting thread checks again, whatever it waits for
_HELD_DELAY = 0.5  # seconds until an item that another run holds is tried again


class Slot:
    """One item's permission to have a request in flight; released at the end of each attempt."""

    def __init__(self, scheduler: Scheduler, dispatch: Dispatch) -> None:
        self.attempts = 0
        self.last: Dispatch | None = None
        self.was_refused = False  # whether an attempt was denied because the scheduler had stopped
        self.feedback = (
            ""  # of the last attempt; empty before the first, and while one is in flight
        )
        self.waits: list[tuple[float, float]] = []  # after each 429: when it began, and its seconds
        self._scheduler = scheduler
        self._dispatch: Dispatch | None = dispatch

    def acquire(self) -> bool:
        """Wait until an attempt may be made; return False once the scheduler has stopped."""
        with self._scheduler.lock:
            if not self._dispatch:
                self._dispatch = self._scheduler.dispatch_again()
            if self._dispatch and not self._scheduler.reason:
                if self.feedback == RATE_LIMITED:
                    began, _none = self.waits.pop()
                    self.waits.append((began, self._scheduler.clock() - began))
                self.attempts, self.feedback = self.attempts + 1, ""
                return True
            self.was_refused = True
            return False

    def release(self, feedback: str, retry_after: float | None = None) -> None:
        """Release the slot, if held, after an attempt.

        `feedback`: one of pace; `retry_after`: the seconds of its Retry-After.
        """
        with self._scheduler.lock:
            if self._dispatch:
                self._scheduler.pace.completed(
                    self._dispatch, feedback, self._scheduler.clock(), retry_after
                )
                self.feedback, self.last, self._dispatch = feedback, self._dispatch, None
                if feedback == RATE_LIMITED:
                    self.waits.append((self._scheduler.clock(), 0.0))
                self._scheduler.wake()

    def pause(self, seconds: float) -> None:
        """Wait before the next attempt, with the slot released; return early if the scheduler
        stops.
        """
        self._scheduler.stopped.wait(seconds)

    @property
    def lacked_room(self) -> bool:
        """Whether the last attempt failed because of overload, or of a rate limit while nothing
        else got through.
        """
        is_limited = self.feedback == RATE_LIMITED and self.last is not None and self.last.is_probe
        return is_limited or self.feedback == OVERLOADED


class Scheduler:
    """Processes items in threads, as many at once as the pace allows, until all are done or it is
    stopped.

    `do`: takes an item's number and slot and returns its result (`outcome`, `failed`), or None when
    another run holds it; it is then tried again later. `max_unknown`, `max_failures`: how many may
    end in doubt, or fail, before no more are begun; 0 for any number. `failures`: items that failed
    before. `clock`, in seconds, and `threads`, which has the classes of threading: for tests in
    virtual time.
    """

    def __init__(
        self,
        items: int,
        do: Callable,
        pace: Pace,
        *,
        max_unknown: int = 0,
        max_failures: int = 0,
        failures: int = 0,
        clock: Callable[[], float] = time.monotonic,
        threads: Any = threading,
    ) -> None:
        self.pace, self.clock = pace, clock
        self.lock = threads.RLock()
        self.stopped = threads.Event()
        self.named: Callable[[str], str] = (
            str  # returns the name under which the user gives an option
        )
        self.reason = ""  # why no more items are begun, empty while they are
        self.ended: dict[int, Result] = {}
        self.begun: dict[int, Slot] = {}  # items that have not ended yet
        self._pending = [
            (0.0, item) for item in range(items)
        ]  # a heap: when each item may be begun, and its number
        self._do, self._failures, self._unknown = do, failures, 0
        self._max_unknown, self._max_failures = max_unknown, max_failures
        self._idle, self._retrying = threads.Condition(self.lock), threads.Condition(self.lock)
        self._retries_waiting = 0  # threads waiting for a further attempt; they go first
        self._threads, self._crashed = 0, False
        self.is_ending = False  # whether only what is in flight is waited for
        self._new_thread, self._finished = threads.Thread, threads.Event()

    def run(
        self, most: int, grace: float, watch: Callable[[], str], report: Callable[[], None]
    ) -> None:
        """Process the items with at most `most` threads.

        `watch`: returns why to stop now, empty to go on; requests in flight then get `grace`
        seconds. `report`: called at every check. Afterwards `begun` has the items that had not
        ended when the grace period was over; an item in neither `begun` nor `ended` was not begun.
        """
        self._keep_limits()
        self._start(min(most, len(self._pending)))
        deadline = math.inf
        while self._threads and self.clock() < deadline:
            self._finished.wait(_POLL_INTERVAL)
            if deadline == math.inf and (why := watch() or (self._crashed and self.reason)):
                self.stop(why)
                deadline, self.is_ending = self.clock() + grace, True
            report()

    def stop(self, reason: str) -> None:
        """Begin no more items or attempts; the first reason is kept."""
        with self.lock:
            self.reason = self.reason or reason
            self.stopped.set()
            self._idle.notify_all()
            self._retrying.notify_all()

    def dispatch_again(self) -> Dispatch | None:
        """Wait for the dispatch of a further attempt; return None once stopped; the caller holds
        the lock.
        """
        self._retries_waiting += 1
        dispatch = self._dispatch(self._retrying, self.pace.wait)
        self._retries_waiting -= 1
        return dispatch

    def wake(self) -> None:
        """Wake the threads that may send now; the caller holds the lock."""
        room = max(1, int(self.pace.width) - self.pace.in_flight)
        self._retrying.notify(room)
        self._idle.notify(room)

    def _dispatch(
        self, condition: threading.Condition, wait: Callable[[float], float]
    ) -> Dispatch | None:
        while not self.reason:
            if self.pace.stop_reason:
                self.stop(self.pace.stop_reason)
                break
            now = self.clock()
            seconds = wait(now)
            if seconds <= 0:
                return self.pace.dispatch(now)
            condition.wait(min(seconds, _MAX_WAIT))
        return None

    def _start(self, threads: int) -> None:
        for number in range(threads):
            with self.lock:
                self._threads += 1
            try:
                self._new_thread(target=self._work, daemon=True).start()
            except RuntimeError:  # the system cannot start another thread
                self._exit("" if number else "no thread could be started")
                return

    def _work(self) -> None:
        with EndOfThread(self._exit):
            while taken := self._take():
                self._finish(*taken, self._do(*taken))

    def _take(self) -> tuple[int, Slot] | None:
        with self.lock:
            dispatch = self._dispatch(self._idle, self._wait_to_begin)
            if dispatch is None or not self._pending:
                if dispatch:
                    self.pace.completed(dispatch, NEUTRAL, self.clock())
                return None
            _due, item = heapq.heappop(self._pending)
            slot = self.begun[item] = Slot(self, dispatch)
            self.wake()
            return item, slot

    def _wait_to_begin(self, now: float) -> float:
        """Return the seconds until a new item may be begun; those already begun go first."""
        if not self._pending:
            return 0
        is_overloaded = any(slot.feedback == OVERLOADED for slot in self.begun.values())
        if self._retries_waiting or (self.pace.failing and is_overloaded):
            return math.inf
        return max(self._pending[0][0] - now, self.pace.wait(now))

    def _finish(self, item: int, slot: Slot, result: Result | None) -> None:
        with self.lock:
            slot.release(NEUTRAL)
            del self.begun[item]
            if result is None:
                heapq.heappush(self._pending, (self.clock() + _HELD_DELAY, item))
                return
            self.ended[item] = result
            failed = result.failed
            self._failures += failed
            in_doubt = result.outcome == UNKNOWN and slot.attempts > 0
            self._unknown += in_doubt
            if failed and (in_doubt or slot.lacked_room or result.outcome == NOT_SENT):
                self.pace.item_failed(slot.last, in_doubt and slot.feedback == OVERLOADED)
            self._keep_limits()

    def _keep_limits(self) -> None:
        if 0 < self._max_unknown <= self._unknown:
            number = "the first" if self._max_unknown == 1 else self._max_unknown
            self.stop(
                f"it stops at {number} in doubt ({self.named('max_unknown')}: {self._max_unknown})"
            )
        elif 0 < self._max_failures <= self._failures:
            failures = (
                "the first failure" if self._max_failures == 1 else f"{self._max_failures} failures"
            )
            self.stop(
                f"it stops at {failures} ({self.named('max_failures')}: {self._max_failures})"
            )

    def _exit(self, crash: str) -> None:
        with self.lock:
            self._threads -= 1
            if crash:
                self._crashed = True
                self.stop(crash)
            if not self._threads:
                self._finished.set()
            self._idle.notify_all()
