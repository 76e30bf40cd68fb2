# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many requests may be on their way at once, and how many may leave in a second: pure, the caller has the clock.

The width grows as in TCP's slow start and congestion avoidance (RFC 5681): doubled in a round, halved by what fails for
want of room, then one more a round. An answer 429 (RFC 6585 section 4) counts requests per time, so it lowers a rate
instead: half the width would be half the throughput, however long a request takes.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

# What the end of one attempt says of the room that the service has.
OK, OVERLOADED, RATE_LIMITED, NEUTRAL = "ok", "overloaded", "rate limited", "neutral"

FIRST = 4  # requests at once in the first round
IN_A_ROW = 5  # requests that failed, the last one a probe, show a service that is down
_WINDOW = 1.0  # seconds over which successes are counted for a first guess at the rate
_SHORTEST_ROUND = 0.1  # seconds
_RECOVERY = 4.0  # seconds until a rate that was refused is tried again


class Dispatch(NamedTuple):
    """One request that left."""

    number: int  # counts dispatches
    at: float  # seconds of the caller's clock
    in_flight: int  # how many were on their way then, this one among them
    width: float  # how many might have been
    rate: float  # at which it left
    is_probe: bool  # whether nothing had got through since a failure


class Rate:
    """How many may leave in a second: any number, until the service answers that they were too many.

    A first guess doubles each round until it is refused; from then on the rate that was refused is approached, and left
    behind, on a cubic curve (RFC 9438). Time is counted by dispatches, so that a pause raises nothing.
    """

    def __init__(self) -> None:
        self._successes: deque[float] = deque(maxlen=1024)
        self._base, self._passed, self._round = math.inf, 0.0, _SHORTEST_ROUND
        self._searching = False
        self._next = -math.inf

    def now(self) -> float:
        """Return the rate in requests a second."""
        if self._searching:
            return self._base * 2 ** min(self._passed / self._round, 10)
        return self._base * (1 + 0.1 * (self._passed / _RECOVERY - 1) ** 3)

    def wait(self, now: float) -> float:
        """Return the seconds until the next may leave."""
        return self._next - now

    def dispatched(self, now: float) -> None:
        """Take note of a dispatch."""
        self._next = max(self._next, now) + 1 / self.now()
        self._passed += 1 / self.now()

    def succeeded(self, dispatch: Dispatch, now: float) -> None:
        """Take note of a success."""
        self._successes.append(now)
        self._round = max(_SHORTEST_ROUND, now - dispatch.at)

    def lower(self, dispatch: Dispatch, now: float) -> None:
        """Take note of a refusal."""
        first, got = dispatch.rate == math.inf, sum(at > now - _WINDOW for at in self._successes) / _WINDOW
        if first:
            self._base = max(FIRST, got)
        else:
            guess = 0 if self._searching else (dispatch.rate + got) / 2
            self._base = max(dispatch.rate / math.sqrt(2), guess, got)
        self._searching, self._passed = first, 0.0

    def pause(self, refusals: int, now: float) -> None:
        """Let nothing leave for a while, a longer one with each refusal in a row."""
        self._next = max(self._next, now + 2 ** min(refusals, 10) / self.now())


class Pace:
    """Says when the next request may leave, and learns from how each one ended; not safe for threads by itself."""

    def __init__(self, most: int, longest_wait: float = math.inf) -> None:
        """`most`: at once, whatever happens; `longest_wait`: seconds of Retry-After that are borne."""
        self.width = float(min(FIRST, most))
        self.failing = False  # whether nothing got through since a failure
        self.stop_reason = ""  # why nothing more may leave, empty while it may
        self.in_flight = 0
        self._most, self._longest_wait = most, longest_wait
        self._doubling = True
        self._rate = Rate()
        self.dispatched = 0  # how many left
        self._backed_off_at = 0  # the number of dispatches at the last cut: what left before it says nothing new
        self._held_until = -math.inf
        self._too_long = math.inf  # the number of dispatches when a wait was asked for that is too long to be borne
        self._failed_in_a_row = self._refused_in_a_row = 0

    def wait(self, now: float) -> float:
        """Return the seconds after which the next may leave, infinity when that depends on others coming back."""
        if self.stop_reason or self.in_flight >= (1 if self.failing else int(self.width + 1e-6)):
            return math.inf
        return max(0.0, self._held_until - now, self._rate.wait(now))

    def dispatch(self, now: float) -> Dispatch:
        """Let one leave, as `wait` allowed."""
        self.dispatched += 1
        self.in_flight += 1
        dispatch = Dispatch(self.dispatched, now, self.in_flight, self.width, self._rate.now(), self.failing)
        self._rate.dispatched(now)
        return dispatch

    def completed(self, dispatch: Dispatch, feedback: str, now: float, retry_after: float | None = None) -> None:
        """Learn from an attempt that ended; `retry_after`: the seconds of its Retry-After."""
        if feedback == OK:
            self._grow(dispatch, now)
        elif feedback in (OVERLOADED, RATE_LIMITED):
            self._apply_retry_after(dispatch, now, retry_after or 0.0)
            if dispatch.number > self._backed_off_at:
                self._back_off(dispatch, feedback, now)
            self.failing = True
        self.in_flight -= 1

    def _apply_retry_after(self, dispatch: Dispatch, now: float, retry_after: float) -> None:
        """Let nothing leave for so many seconds, or as many as are borne; when that was in vain, nothing any more."""
        self._held_until = max(self._held_until, now + min(retry_after, self._longest_wait))
        if retry_after <= self._longest_wait:
            return
        if self._too_long < dispatch.number:
            self.stop_reason = f"the service asks to wait {retry_after:.0f} seconds, longer than retry_max_delay"
        self._too_long = min(self._too_long, self.dispatched)

    def _back_off(self, dispatch: Dispatch, feedback: str, now: float) -> None:
        self._backed_off_at = self.dispatched
        if feedback == OVERLOADED and not self.failing:
            self.width, self._doubling = max(1.0, self.width / 2), False
        elif feedback == RATE_LIMITED:
            if not self.failing:
                self._rate.lower(dispatch, now)
            self._rate.pause(self._refused_in_a_row, now)
            self._refused_in_a_row += 1

    def item_failed(self, dispatch: Dispatch | None, left_in_doubt: bool) -> None:
        """Learn that an item ended without a word of the service on it; `dispatch`: of its last request, if any.

        `left_in_doubt`: whether it is in doubt now for want of room, so that this width is not tried again.
        """
        if dispatch and left_in_doubt:
            self._most = max(1, min(self._most, dispatch.in_flight - 1))
            self.width = min(self.width, self._most)
        self.failing = True
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= IN_A_ROW and (dispatch is None or dispatch.is_probe):
            self.stop_reason = f"the last {self._failed_in_a_row} requests failed, and nothing got through meanwhile"

    def _grow(self, dispatch: Dispatch, now: float) -> None:
        self._rate.succeeded(dispatch, now)
        self.failing, self._failed_in_a_row, self._refused_in_a_row = False, 0, 0
        if dispatch.number <= self._backed_off_at:
            return
        self._held_until, self._too_long = -math.inf, math.inf
        if 2 * max(dispatch.in_flight, self.in_flight) >= dispatch.width:  # else it is not the width that limits
            growth = min(1.0, (now - dispatch.at) / _SHORTEST_ROUND)
            self.width = min(self._most, self.width + growth * (1 if self._doubling else 1 / dispatch.width))
