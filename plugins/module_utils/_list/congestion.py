# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Congestion control: how many requests may be in flight, and how many a second.

Nothing here waits or locks; the caller supplies the clock and one thread at a time.

The width limits the requests in flight. It follows TCP's slow start and congestion avoidance (RFC
5681): it doubles each round, is halved on overload, and then grows by one a round. The rounds of 4,
8, 16 and 32 cost a list as much as 2.8 rounds of 50; in return, a service that is down leaves 4 or
5 assets in doubt instead of 50.

A 429 (RFC 6585 section 4) is about requests per unit of time, so it lowers a rate instead: halving
the width would halve the throughput at any latency.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

# Feedback: what the end of an attempt shows about the capacity of the service.
OK, OVERLOADED, RATE_LIMITED, NEUTRAL = "ok", "overloaded", "rate limited", "neutral"

FIRST = 4  # requests in flight in the first round
# Consecutive failed items, the last one with a probe, that show that the service is down.
IN_A_ROW = 5
_WINDOW = 1.0  # seconds over which successes are counted to estimate the rate
_SHORTEST_ROUND = 0.1  # seconds
_RECOVERY = 4.0  # seconds from a lowered rate back to the estimated limit


class Dispatch(NamedTuple):
    """One dispatched request."""

    number: int  # counts dispatches from 1
    at: float  # seconds, on the caller's clock
    in_flight: int  # requests in flight then, this one included
    width: float  # the limit on them then
    rate: float  # requests per second allowed then
    is_probe: bool  # whether nothing had succeeded since a failure


class Rate:
    """The requests per second: unlimited until the service answers 429.

    The first estimate doubles each round until it is refused; from then on the rate follows a cubic
    curve (RFC 9438) up to the estimated limit and beyond. Only dispatches advance the curve, so a
    pause does not raise the rate.
    """

    def __init__(self) -> None:
        self._successes: deque[float] = deque(maxlen=1024)
        self._base = math.inf
        self._passed = 0.0
        self._round = _SHORTEST_ROUND
        self._searching = False
        self._next = -math.inf

    def now(self) -> float:
        """Return the current rate in requests per second."""
        if self._searching:
            return self._base * 2 ** min(self._passed / self._round, 10)
        return self._base * (1 + 0.1 * (self._passed / _RECOVERY - 1) ** 3)

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the next dispatch, negative when it is overdue."""
        return self._next - now

    def note_dispatch(self, now: float) -> None:
        """Record a dispatch."""
        self._next = max(self._next, now) + 1 / self.now()
        self._passed += 1 / self.now()

    def note_success(self, dispatch: Dispatch, now: float) -> None:
        """Record a success."""
        self._successes.append(now)
        self._round = max(_SHORTEST_ROUND, now - dispatch.at)

    def lower(self, dispatch: Dispatch, now: float) -> None:
        """Lower the rate after a 429."""
        is_first = dispatch.rate == math.inf
        got = sum(at > now - _WINDOW for at in self._successes) / _WINDOW
        least = dispatch.rate / math.sqrt(2)
        if is_first:
            self._base = max(FIRST, got)
        elif self._searching:
            self._base = max(least, got)
        else:
            self._base = max(least, (dispatch.rate + got) / 2, got)
        self._searching = is_first
        self._passed = 0.0

    def pause(self, refusals: int, longest: float, now: float) -> None:
        """Pause dispatching, for longer with each consecutive 429, at most `longest` seconds."""
        self._next = max(self._next, now + min(longest, 2 ** min(refusals, 10) / self.now()))


class CongestionControl:
    """Decides when the next request may be sent, and adapts to how each one ended."""

    def __init__(self, most: int, longest_wait: float = math.inf) -> None:
        """`most`: upper bound of the width; `longest_wait`: of a pause or Retry-After, seconds."""
        self.width = float(min(FIRST, most))
        self.failing = False  # whether nothing has succeeded since a failure
        # Why no more requests may be sent, empty while they may.
        self.stop_reason = ""
        self.in_flight = 0
        self._most = most
        self._longest_wait = longest_wait
        self._doubling = True
        self._rate = Rate()
        self.dispatched = 0  # requests so far
        # `dispatched` at the last back-off, which covers all earlier requests.
        self._backed_off_at = 0
        self._held_until = -math.inf
        self._failed_in_a_row = self._refused_in_a_row = 0

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the next request may be sent, infinity if it waits for others."""
        room = 1 if self.failing else int(self.width + 1e-6)
        if self.stop_reason or self.in_flight >= room:
            return math.inf
        return max(0.0, self._held_until - now, self._rate.seconds_left(now))

    def dispatch(self, now: float) -> Dispatch:
        """Count a request as sent; the caller asks `seconds_left` first."""
        self.dispatched += 1
        self.in_flight += 1
        dispatch = Dispatch(
            self.dispatched, now, self.in_flight, self.width, self._rate.now(), self.failing
        )
        self._rate.note_dispatch(now)
        return dispatch

    def adapt(
        self, dispatch: Dispatch, feedback: str, now: float, retry_after: float | None = None
    ) -> None:
        """Adapt to how an attempt ended; `retry_after`: the seconds of its Retry-After."""
        if feedback == OK:
            self._grow(dispatch, now)
        elif feedback in (OVERLOADED, RATE_LIMITED):
            hold = min(retry_after or 0.0, self._longest_wait)
            self._held_until = max(self._held_until, now + hold)
            if dispatch.number > self._backed_off_at:
                self._back_off(dispatch, feedback, now)
            self.failing = True
        self.in_flight -= 1

    def _back_off(self, dispatch: Dispatch, feedback: str, now: float) -> None:
        self._backed_off_at = self.dispatched
        if feedback == OVERLOADED and not self.failing:
            self.width = max(1.0, self.width / 2)
            self._doubling = False
        elif feedback == RATE_LIMITED:
            if not self.failing:
                self._rate.lower(dispatch, now)
            self._rate.pause(self._refused_in_a_row, self._longest_wait, now)
            self._refused_in_a_row += 1

    def note_failed_item(self, dispatch: Dispatch | None, left_in_doubt: bool) -> None:
        """Note that an item failed although the service did not reject it.

        `dispatch`: of its last request, if any; `left_in_doubt`: whether overload left it in doubt,
        so that this width is never tried again.
        """
        if dispatch and left_in_doubt:
            self._most = max(1, min(self._most, dispatch.in_flight - 1))
            self.width = min(self.width, self._most)
        self.failing = True
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= IN_A_ROW and (dispatch is None or dispatch.is_probe):
            self.stop_reason = (
                f"the last {self._failed_in_a_row} failed, and nothing got through meanwhile"
            )

    def _grow(self, dispatch: Dispatch, now: float) -> None:
        self._rate.note_success(dispatch, now)
        self.failing = False
        self._failed_in_a_row = 0
        self._refused_in_a_row = 0
        if dispatch.number <= self._backed_off_at:
            return
        self._held_until = -math.inf
        if 2 * max(dispatch.in_flight, self.in_flight) < dispatch.width:
            return  # the width was not the limit
        growth = min(1.0, (now - dispatch.at) / _SHORTEST_ROUND)
        if not self._doubling:
            growth /= dispatch.width
        self.width = min(self._most, self.width + growth)
