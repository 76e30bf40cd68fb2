# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The width of a list: how many requests may be in flight, by TCP's congestion control (RFC 5681).

Nothing here waits or locks; the caller supplies the clock and one thread at a time.

It doubles each round, is halved on overload, and then grows by one a round. The rounds of 4, 8, 16
and 32 cost a list as much as 2.8 rounds of 50; in return, a service that is down leaves 4 or 5
assets in doubt instead of 50.
"""

from __future__ import annotations

import math
from typing import NamedTuple

# Feedback: what the end of an attempt shows about the capacity of the service.
OK, OVERLOADED, NEUTRAL = "ok", "overloaded", "neutral"

FIRST = 4  # requests in flight in the first round
# Consecutive failed items, the last one with a probe, that show that the service is down.
IN_A_ROW = 5


class Dispatch(NamedTuple):
    """One dispatched request."""

    number: int  # counts dispatches from 1
    in_flight: int  # requests in flight then, this one included
    width: float  # the limit on them then
    is_probe: bool  # whether nothing had succeeded since a failure


class Width:
    """Decides whether a request may be sent, and adapts to how each one ended."""

    def __init__(self, most: int, longest_wait: float = math.inf) -> None:
        """`most`: upper bound; `longest_wait`: of a Retry-After, in seconds."""
        self.now = float(min(FIRST, most))
        self.failing = False  # whether nothing has succeeded since a failure
        # Why no more requests may be sent, empty while they may.
        self.stop_reason = ""
        self.in_flight = 0
        self.dispatched = 0  # requests so far
        self._most = most
        self._longest_wait = longest_wait
        self._doubling = True
        # `dispatched` when it was last halved, which covers all earlier requests.
        self._halved_at = 0
        self._held_until = -math.inf
        self._failed_in_a_row = 0

    @property
    def room(self) -> int:
        """How many requests may be in flight; one while nothing gets through, as a probe."""
        return 1 if self.failing else int(self.now + 1e-6)

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the next request may be sent, infinity if it waits for others."""
        if self.stop_reason or self.in_flight >= self.room:
            return math.inf
        return max(0.0, self._held_until - now)

    def dispatch(self) -> Dispatch:
        """Count a request as sent; the caller asks `seconds_left` first."""
        self.dispatched += 1
        self.in_flight += 1
        return Dispatch(self.dispatched, self.in_flight, self.now, self.failing)

    def adapt(
        self, dispatch: Dispatch, feedback: str, now: float, retry_after: float | None = None
    ) -> None:
        """Adapt to how an attempt ended; `retry_after`: the seconds of its Retry-After."""
        if feedback == OK:
            self._grow(dispatch)
        elif feedback == OVERLOADED:
            hold = min(retry_after or 0.0, self._longest_wait)
            self._held_until = max(self._held_until, now + hold)
            if dispatch.number > self._halved_at and not self.failing:
                self.now = max(1.0, self.now / 2)
                self._doubling = False
                self._halved_at = self.dispatched
            self.failing = True
        self.in_flight -= 1

    def note_failed_item(self, dispatch: Dispatch, left_in_doubt: bool) -> None:
        """Note that an item failed although the service did not reject it.

        `dispatch`: of its last request; `left_in_doubt`: whether overload left it in doubt,
        so that this width is never tried again.
        """
        if left_in_doubt:
            self._most = max(1, min(self._most, dispatch.in_flight - 1))
            self.now = min(self.now, self._most)
        self.failing = True
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= IN_A_ROW and dispatch.is_probe:
            self.stop_reason = (
                f"the last {self._failed_in_a_row} failed, and nothing got through meanwhile"
            )

    def _grow(self, dispatch: Dispatch) -> None:
        self.failing = False
        self._failed_in_a_row = 0
        if dispatch.number <= self._halved_at:
            return
        self._held_until = -math.inf
        self.now = min(self._most, self.now + (1.0 if self._doubling else 1 / dispatch.width))
