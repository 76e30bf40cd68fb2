# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load that the service accepts: a rate, requests in progress, and a queue of others."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import Callable, Iterator

from .messages import RefusalError
from .settings import Settings


class Load:
    """The requests that started in the last second, that are in progress, and that wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._begun: deque[float] = deque()
        self._working = self._waiting = 0

    @contextmanager
    def turn(self, settings: Settings) -> Iterator[None]:
        """Hold a slot, once there is one; raise RefusalError if the rate or the queue is exceeded."""
        later = (
            () if settings.retry_after is None else (("Retry-After", str(settings.retry_after)),)
        )
        with self._changed:
            if self._is_too_fast(settings.rate):
                raise RefusalError(429, *later)
            if not self._take_slot(settings.capacity, settings.queue):
                raise RefusalError(503, *later)
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify()

    def _is_too_fast(self, rate: int | None) -> bool:
        """Whether `rate` requests were begun within the last second; if not, count this one."""
        now = self._clock()
        while self._begun and self._begun[0] <= now - 1:
            self._begun.popleft()
        if rate is not None and len(self._begun) >= rate:
            return True
        self._begun.append(now)
        return False

    def _take_slot(self, capacity: int | None, queue: int | None) -> bool:
        """Wait while `capacity` requests are in progress; return False if `queue` others wait."""
        if capacity is not None and (self._working >= capacity or self._waiting):
            if queue is not None and self._waiting >= queue:
                return False
            self._waiting += 1
            self._changed.wait_for(lambda: self._working < capacity)
            self._waiting -= 1
        self._working += 1
        return True
