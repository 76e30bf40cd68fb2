# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of a list: the only lock of the scheduling. All threads wait here before they send.

It does not know HTTP. A further attempt goes before a new item.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable

from .._errors import NOT_SENT, UNKNOWN
from .._result import Result
from .congestion import NEUTRAL, OVERLOADED, RATE_LIMITED, CongestionControl, Dispatch

_LONGEST_WAIT = 1.0  # seconds after which a waiting thread looks again
_HELD_DELAY = 0.5  # seconds until an item that another run holds is tried again


@dataclass(eq=False)
class Item:
    """One item of a list; only the gate changes it."""

    number: int
    attempts: int = 0
    # Of the last attempt; empty before the first, and while one is in flight.
    feedback: str = ""
    # After 429s: when each wait began, and its seconds.
    waits: list[tuple[float, float]] = field(default_factory=list)
    dispatch: Dispatch | None = None  # while it may send
    last_dispatch: Dispatch | None = None
    was_refused: bool = False  # whether the closed gate kept it from an attempt
    result: Result | None = None  # once it has ended

    @property
    def is_in_flight(self) -> bool:
        """Whether an attempt is in flight."""
        return self.attempts > 0 and not self.feedback

    @property
    def lacked_room(self) -> bool:
        """Whether the last attempt met overload, or a rate limit while nothing got through."""
        if self.feedback == RATE_LIMITED:
            return self.last_dispatch is not None and self.last_dispatch.is_probe
        return self.feedback == OVERLOADED


class Limits:
    """How many items may end in doubt or fail before the list stops; 0 for any number."""

    def __init__(
        self,
        max_unknown: int = 0,
        max_failures: int = 0,
        failures: int = 0,
        named: Callable[[str], str] = str,
    ) -> None:
        """`failures`: items that failed before; `named`: the user's name of an option."""
        self._max_unknown = max_unknown
        self._max_failures = max_failures
        self._unknown = 0
        self._failures = failures
        self._named = named

    def count(self, failed: bool, in_doubt: bool) -> None:
        """Count an item that ended."""
        self._failures += failed
        self._unknown += in_doubt

    def reached(self) -> str:
        """Return the limit that stops the list, '' while it goes on."""
        unknown = self._max_unknown
        if 0 < unknown <= self._unknown:
            many = "the first" if unknown == 1 else str(unknown)
            return self._stopped_at(f"{many} in doubt", "max_unknown", unknown)
        failures = self._max_failures
        if 0 < failures <= self._failures:
            many = "the first failure" if failures == 1 else f"{failures} failures"
            return self._stopped_at(many, "max_failures", failures)
        return ""

    def _stopped_at(self, many: str, option: str, limit: int) -> str:
        return f"the list stopped at {many} ({self._named(option)}: {limit})"


class Gate:
    """Lets items begin and send while congestion control has room for them, until it is closed."""

    def __init__(
        self,
        items: int,
        control: CongestionControl,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        threads: Any = threading,
    ) -> None:
        """`clock`, in seconds, and `threads`, with the classes of threading: for virtual time."""
        self.clock = clock
        self.reason = ""  # why it is closed, '' while it is open
        self.begun: dict[int, Item] = {}  # items that have not ended yet
        self.ended: list[Item] = []
        self.lock = threads.RLock()
        self._control = control
        self._limits = limits
        # A heap: the earliest time for each item, and the item's number.
        self._pending = [(0.0, number) for number in range(items)]
        self._may_begin = threads.Condition(self.lock)
        self._may_go_on = threads.Condition(self.lock)
        self._going_on = 0  # threads that wait for a further attempt
        self._closed = threads.Event()
        self._keep_limits()

    def begin(self) -> Item | None:
        """Wait until an item may begin, and return it; None if none is left, or once closed."""
        with self.lock:
            dispatch = self._wait(self._may_begin, self._seconds_to_begin)
            if dispatch is None:
                return None
            _due, number = heapq.heappop(self._pending)
            item = self.begun[number] = Item(number, dispatch=dispatch)
            self._wake()
            return item

    def enter(self, item: Item) -> bool:
        """Wait until the item may make an attempt; return False once closed."""
        with self.lock:
            if not item.dispatch:
                self._going_on += 1
                item.dispatch = self._wait(self._may_go_on, self._control.seconds_left)
                self._going_on -= 1
            if self.reason or not item.dispatch:
                item.was_refused = True
                return False
            if item.feedback == RATE_LIMITED:
                began, _none = item.waits.pop()
                item.waits.append((began, self.clock() - began))
            item.attempts += 1
            item.feedback = ""
            return True

    def leave(self, item: Item, feedback: str, retry_after: float | None = None) -> None:
        """End an attempt of the item; `retry_after`: the seconds of its Retry-After."""
        with self.lock:
            if not item.dispatch:
                return
            now = self.clock()
            self._control.adapt(item.dispatch, feedback, now, retry_after)
            item.feedback = feedback
            item.last_dispatch = item.dispatch
            item.dispatch = None
            if feedback == RATE_LIMITED:
                item.waits.append((now, 0.0))
            self._wake()

    def pause(self, seconds: float) -> None:
        """Wait outside before a further attempt; return early once closed."""
        self._closed.wait(seconds)

    def put_back(self, item: Item) -> None:
        """Let an item that another run holds begin again later."""
        with self.lock:
            self.leave(item, NEUTRAL)
            del self.begun[item.number]
            heapq.heappush(self._pending, (self.clock() + _HELD_DELAY, item.number))

    def end(self, item: Item, result: Result) -> None:
        """Keep the result of an item, and close once too many are in doubt or have failed."""
        with self.lock:
            self.leave(item, NEUTRAL)
            del self.begun[item.number]
            item.result = result
            self.ended.append(item)
            in_doubt = result.outcome == UNKNOWN and item.attempts > 0
            is_undecided = in_doubt or item.lacked_room or result.outcome == NOT_SENT
            if result.failed and is_undecided:
                lost_to_overload = in_doubt and item.feedback == OVERLOADED
                self._control.note_failed_item(item.last_dispatch, lost_to_overload)
            self._limits.count(result.failed, in_doubt)
            self._keep_limits()

    def stop(self, reason: str) -> None:
        """Close: let no item begin and no attempt be made; the first reason is kept."""
        with self.lock:
            self.reason = self.reason or reason
            self._closed.set()
            self.wake_all()

    def wake_all(self) -> None:
        """Let all waiting threads look again."""
        with self.lock:
            self._may_begin.notify_all()
            self._may_go_on.notify_all()

    @property
    def pending(self) -> int:
        """How many items wait to begin."""
        return len(self._pending)

    def _keep_limits(self) -> None:
        reason = self._limits.reached()
        if reason:
            self.stop(reason)

    def _wait(
        self, condition: threading.Condition, seconds_left: Callable[[float], float | None]
    ) -> Dispatch | None:
        """Wait for a dispatch; return None once closed, or if `seconds_left` is None."""
        while not self.reason:
            if self._control.stop_reason:
                self.stop(self._control.stop_reason)
                break
            now = self.clock()
            seconds = seconds_left(now)
            if seconds is None:
                break
            if seconds <= 0:
                return self._control.dispatch(now)
            condition.wait(min(seconds, _LONGEST_WAIT))
        return None

    def _seconds_to_begin(self, now: float) -> float | None:
        """Return the seconds until an item may begin, None if none is left.

        Items that were begun go first.
        """
        if not self._pending:
            return None
        lacks_room = any(item.feedback == OVERLOADED for item in self.begun.values())
        if self._going_on or (self._control.failing and lacks_room):
            return math.inf
        due, _number = self._pending[0]
        return max(due - now, self._control.seconds_left(now))

    def _wake(self) -> None:
        """Wake as many threads as may send now."""
        room = max(1, int(self._control.width) - self._control.in_flight)
        self._may_go_on.notify(room)
        self._may_begin.notify(room)
