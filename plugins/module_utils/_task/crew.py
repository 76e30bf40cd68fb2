# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who does which item, and until when: threads that share a pace. Knows nothing of HTTP, nor of what an item is."""

from __future__ import annotations

import heapq
import math
import sys
import threading
import time
from typing import Callable, NamedTuple

from .._errors import NOT_SENT, UNKNOWN
from .pace import NO_ROOM, NOTHING, Departure, Pace

_SLICE = 0.5  # seconds after which the main thread looks around; only it is told of signals
_NAP = 1.0  # seconds after which a thread looks again, whatever it waits for
_PUT_BACK = 0.5  # seconds after which an item that another run holds is tried again


class Ended(NamedTuple):
    """How one item ended."""

    outcome: str
    failed: bool
    result: dict


class Limits(NamedTuple):
    """When nothing further is begun: so many items in doubt, so many failed ones; 0 for any number."""

    max_unknown: int = 0
    max_failures: int = 0


NO_LIMITS = Limits()


class Turn:
    """One item's permission to have a request on its way; it is given up at the end of each attempt."""

    def __init__(self, crew: Crew, departure: Departure) -> None:
        self.attempts = 0
        self.last: Departure | None = None
        self.was_refused = False  # whether an attempt was not to be made any more
        self.lacked_room = False  # whether the last attempt failed for want of room
        self._crew = crew
        self._departure: Departure | None = departure

    def leave(self) -> bool:
        """Wait until an attempt may leave; return False when nothing further is to be begun."""
        with self._crew.lock:
            if not self._departure:
                self._departure = self._crew.again()
            if self._departure and not self._crew.reason:
                self.attempts += 1
                self._doubt(False)
                return True
            self.was_refused = True
            return False

    def back(self, fate: str, asked: float | None = None) -> None:
        """Give the turn up after an attempt; `fate`: of pace; `asked`: the seconds of its Retry-After."""
        with self._crew.lock:
            self._give_up(fate, asked)
            self._doubt(fate == NO_ROOM)

    def pause(self, seconds: float) -> None:
        """Wait before the next attempt, without a turn, and no longer than there may be one."""
        self._crew.stopped.wait(seconds)

    def end(self) -> None:
        """Give up what is held, at the end of the item; the crew's lock is held."""
        lacked_room = self.lacked_room
        self._give_up(NOTHING, None)
        self._doubt(False)
        self.lacked_room = lacked_room

    def _give_up(self, fate: str, asked: float | None) -> None:
        if self._departure:
            self._crew.pace.back(self._departure, fate, time.monotonic(), asked)
            self.last, self._departure = self._departure, None
            self._crew.wake()

    def _doubt(self, lacked_room: bool) -> None:
        self._crew.doubtful += lacked_room - self.lacked_room
        self.lacked_room = lacked_room


class Crew:
    """Threads that do items, as many at once as the pace allows, until all are done or something ends it.

    `hire`: called once in each thread, returns what does one item: given its number and a turn, how it ended, or None
    when another run holds the item, which is then tried again later. `failures`: how many items had failed before.
    """

    def __init__(self, items: int, hire: Callable, pace: Pace, limits: Limits = NO_LIMITS, failures: int = 0) -> None:
        self.pace, self.items = pace, items
        self.lock = threading.RLock()
        self.stopped = threading.Event()
        self.reason = ""  # why nothing further is begun, empty while it is
        self.ended: dict[int, Ended] = {}
        self.begun: dict[int, Turn] = {}  # items that did not end yet
        self.doubtful = 0  # items whose last attempt failed for want of room, and which may try again
        self._left = [(0.0, item) for item in range(items)]  # a heap: when an item may be begun, and which
        self._hire, self._limits, self._failures, self._unknown = hire, limits, failures, 0
        self._idle, self._returning = threading.Condition(self.lock), threading.Condition(self.lock)
        self._waiting = 0  # threads that want a further attempt; they go first
        self._threads, self._crashed = 0, False
        self._finished = threading.Event()

    def run(self, most: int, grace: float, watch: Callable[[], str], report: Callable[[], None]) -> None:
        """Do the items with at most so many threads.

        `watch`: returns why to end now, empty to go on; what is on its way then has `grace` seconds. `report`: called
        all the time. An item that is left in `begun` was on its way when the time was over; one that is in neither
        was not begun.
        """
        self._start(min(most, len(self._left)))
        deadline = math.inf
        while self._threads and time.monotonic() < deadline:
            self._finished.wait(_SLICE)
            if deadline == math.inf and (why := watch() or (self._crashed and self.reason)):
                self.stop(why)
                deadline = time.monotonic() + grace
            report()

    def stop(self, reason: str) -> None:
        """Let nothing further begin; the first reason stays."""
        with self.lock:
            self.reason = self.reason or reason
            self.stopped.set()
            self._idle.notify_all()
            self._returning.notify_all()

    def again(self) -> Departure | None:
        """Return a departure for a further attempt, None when there is to be none; the lock is held."""
        self._waiting += 1
        departure = self._depart(self._returning, self.pace.wait)
        self._waiting -= 1
        return departure

    def wake(self) -> None:
        """Wake those who may leave now; the lock is held."""
        room = max(1, int(self.pace.width) - self.pace.on_way)
        self._returning.notify(room)
        self._idle.notify(room)

    def _depart(self, condition: threading.Condition, wait: Callable[[float], float]) -> Departure | None:
        while not self.reason:
            if self.pace.closed:
                self.stop(self.pace.closed)
                break
            now = time.monotonic()
            seconds = wait(now)
            if seconds <= 0:
                return self.pace.leave(now)
            condition.wait(min(seconds, _NAP))
        return None

    def _start(self, threads: int) -> None:
        for number in range(threads):
            thread = threading.Thread(target=self._work, daemon=True)
            with self.lock:
                self._threads += 1
            try:
                thread.start()
            except RuntimeError:  # the system gives no further thread
                self._leave(None if number else "no thread can be started")
                return

    def _work(self) -> None:
        try:
            do = self._hire()
            while taken := self._take():
                self._end(*taken, do(*taken))
        finally:
            error = sys.exc_info()[0]
            self._leave(f"an unexpected {error.__name__} in this collection" if error else None)

    def _take(self) -> tuple[int, Turn] | None:
        with self.lock:
            departure = self._depart(self._idle, self._wait_to_begin)
            if departure is None or not self._left:
                if departure:
                    self.pace.back(departure, NOTHING, time.monotonic())
                return None
            _due, item = heapq.heappop(self._left)
            turn = self.begun[item] = Turn(self, departure)
            self.wake()
            return item, turn

    def _wait_to_begin(self, now: float) -> float:
        """Return the seconds after which a new item may be begun; those that were begun go first."""
        if not self._left:
            return 0
        if self._waiting or (self.pace.failing and self.doubtful):
            return math.inf
        return max(self._left[0][0] - now, self.pace.wait(now))

    def _end(self, item: int, turn: Turn, ended: Ended | None) -> None:
        with self.lock:
            turn.end()
            del self.begun[item]
            if ended is None:
                heapq.heappush(self._left, (time.monotonic() + _PUT_BACK, item))
                return
            self.ended[item] = ended
            self._failures += ended.failed
            in_doubt = ended.outcome == UNKNOWN and turn.attempts > 0
            self._unknown += in_doubt
            if ended.failed and (in_doubt or turn.lacked_room or ended.outcome == NOT_SENT):
                self.pace.gave_up(turn.last, in_doubt and turn.lacked_room)
            if 0 < self._limits.max_unknown <= self._unknown:
                self.stop(f"{self._unknown} ended with an unknown outcome (max_unknown: {self._limits.max_unknown})")
            elif 0 < self._limits.max_failures <= self._failures:
                self.stop(f"{self._failures} failed (max_failures: {self._limits.max_failures})")

    def _leave(self, crash: str | None) -> None:
        with self.lock:
            self._threads -= 1
            if crash:
                self._crashed = True
                self.stop(crash)
            if not self._threads:
                self._finished.set()
            self._idle.notify_all()
