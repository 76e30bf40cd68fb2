# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of a list: the only lock of the scheduling. All threads wait here before they send.

It does not know HTTP. A further attempt goes before a new item.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Iterable

from .._errors import NOT_SENT, UNKNOWN, ServicesError
from .._result import Result
from .width import NEUTRAL, OVERLOADED, Dispatch, Width

_LONGEST_WAIT = 1.0  # seconds after which a waiting thread looks again


@dataclass(eq=False)
class Item:
    """One item of a list; only the gate changes it."""

    name: Any
    dispatch: Dispatch  # of its last attempt, or of the one that it may make
    may_send: bool = True
    attempts: int = 0
    lacked_room: bool = False  # whether the last attempt met overload; not while one is in flight
    was_refused: bool = False  # whether the closed gate kept it from an attempt


class Gate:
    """Lets items begin and send while the width has room for them, until it is closed."""

    def __init__(
        self,
        items: Iterable[Any],
        width: Width,
        limit: Callable[[int, int], str],
        clock: Callable[[], float] = time.monotonic,
        threads: Any = threading,
    ) -> None:
        """`items`: their names; `limit`: returns why to stop after so many in doubt and failures.

        `clock`, in seconds, and `threads`, with the classes of threading: for virtual time.
        """
        self.clock = clock
        self.reason = ""  # why it is closed, '' while it is open
        self.begun: dict[Any, Item] = {}  # items that have not ended yet
        self.ended: dict[Any, Result] = {}
        self.lock = threads.RLock()
        self._width = width
        self._limit = limit
        self._failures = 0
        self._unknown = 0
        self._pending = deque(items)
        self._may_begin = threads.Condition(self.lock)
        self._may_go_on = threads.Condition(self.lock)
        self._closed = threads.Event()
        self._over = threads.Event()
        self.stop(limit(0, 0))

    def begin(self) -> Item | None:
        """Wait until an item may begin, and return it; None if none is left, or once closed."""
        with self.lock:
            dispatch = self._wait(self._may_begin, self._seconds_to_begin)
            if dispatch is None:
                return None
            name = self._pending.popleft()
            item = self.begun[name] = Item(name, dispatch)
            self._wake()
            return item

    def enter(self, item: Item) -> None:
        """Wait until the item may make an attempt; raise ServicesError once closed."""
        with self.lock:
            if not item.may_send:
                dispatch = self._wait(self._may_go_on, self._width.seconds_left)
                item.may_send = dispatch is not None
                item.dispatch = dispatch or item.dispatch
            if self.reason or not item.may_send:
                item.was_refused = True
                raise ServicesError("no further attempt was made, because the task was stopping")
            item.attempts += 1
            item.lacked_room = False

    def leave(self, item: Item, feedback: str, retry_after: float | None = None) -> None:
        """End an attempt of the item; `retry_after`: the seconds of its Retry-After."""
        with self.lock:
            if not item.may_send:
                return
            self._width.adapt(item.dispatch, feedback, self.clock(), retry_after)
            item.lacked_room = feedback == OVERLOADED
            item.may_send = False
            self._wake()

    def pause(self, seconds: float) -> None:
        """Wait outside before a further attempt; return early once closed."""
        self._closed.wait(seconds)

    def end(self, item: Item, result: Result) -> None:
        """Keep the result of an item, and close once too many are in doubt or have failed."""
        with self.lock:
            self.leave(item, NEUTRAL)
            del self.begun[item.name]
            self.ended[item.name] = result
            in_doubt = result.outcome == UNKNOWN
            is_undecided = in_doubt or item.lacked_room or result.outcome == NOT_SENT
            if result.failed and is_undecided:
                lost_to_overload = in_doubt and item.lacked_room
                self._width.note_failed_item(item.dispatch, lost_to_overload)
            self._failures += result.failed
            self._unknown += in_doubt
            self.stop(self._limit(self._unknown, self._failures))
            self._note_end()

    def stop(self, reason: str) -> None:
        """Close for a reason, unless it is '': no item begins, and no attempt is made.

        The first reason is kept.
        """
        if not reason:
            return
        with self.lock:
            self.reason = self.reason or reason
            self._closed.set()
            self._may_begin.notify_all()
            self._may_go_on.notify_all()
            self._note_end()

    def wait(self, seconds: float) -> bool:
        """Wait until all items have ended that were begun, and no further one will begin."""
        return bool(self._over.wait(seconds))

    def _note_end(self) -> None:
        if not self.begun and (self.reason or not self._pending):
            self._may_begin.notify_all()
            self._over.set()

    @property
    def in_flight(self) -> int:
        """How many items may be sending."""
        return self._width.in_flight

    def _wait(
        self, condition: threading.Condition, seconds_left: Callable[[float], float | None]
    ) -> Dispatch | None:
        """Wait for a dispatch; return None once closed, or if `seconds_left` is None."""
        while True:
            self.stop(self._width.stop_reason)
            if self.reason:
                return None
            now = self.clock()
            seconds = seconds_left(now)
            if seconds is None:
                return None
            if seconds <= 0:
                return self._width.dispatch()
            condition.wait(min(seconds, _LONGEST_WAIT))

    def _seconds_to_begin(self, now: float) -> float | None:
        """Return the seconds until an item may begin, None if none is left.

        Items that were begun go first: one that waits after overload keeps its place in the width.
        """
        if not self._pending:
            return None
        waiting = sum(item.lacked_room for item in self.begun.values())
        if waiting + self._width.in_flight >= self._width.room:
            return math.inf
        return self._width.seconds_left(now)

    def _wake(self) -> None:
        """Wake as many threads as may send now."""
        room = max(1, int(self._width.now) - self._width.in_flight)
        self._may_go_on.notify(room)
        self._may_begin.notify(room)
