# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A scheduler in simulated time: how a pace copes with a service, in milliseconds and deterministically."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import Counter
from typing import Callable, NamedTuple

from ansible_collections.infrastructure.services.plugins.module_utils._task.pace import OK, OVERLOADED, RATE_LIMITED


class Answer(NamedTuple):
    """What a simulated service answers, and when."""

    seconds: float
    status: int = 201
    retry_after: float | None = None


# A service is a function of the time, the number of requests in flight (including this one), and randomness.
Service = Callable[[float, int, random.Random], Answer]


def healthy(seconds: float) -> Service:
    """Return a service that is always healthy."""
    return lambda now, at_once, chance: Answer(seconds * chance.uniform(0.9, 1.1))


def dead(status: int = 503, retry_after: float | None = None, since: float = 0.0) -> Service:
    """Return a service that refuses everything from a certain time on."""
    return lambda now, at_once, chance: Answer(0.1, status, retry_after) if now >= since else Answer(0.5)


def limited_in_room(most: int = 32, slow_above: int = 16, seconds: float = 0.5) -> Service:
    """Return a service that slows down above one number of concurrent requests, and refuses above another."""

    def answer(now: float, at_once: int, chance: random.Random) -> Answer:
        if at_once > most:
            return Answer(0.005, 503)
        return Answer(seconds * max(1.0, at_once / slow_above) * chance.uniform(0.9, 1.1))

    return answer


def limited_in_rate(rate: float = 50.0, seconds: float = 0.02, retry_after: float | None = None) -> Service:
    """Return a service with a token bucket for one second (429 when it is empty)."""
    level, last = rate, 0.0

    def answer(now: float, at_once: int, chance: random.Random) -> Answer:
        nonlocal level, last
        level, last = min(rate, level + (now - last) * rate), now
        if level < 1:
            return Answer(min(seconds, 0.005), 429, retry_after)
        level -= 1
        return Answer(seconds * chance.uniform(0.9, 1.1))

    return answer


class Fixed:
    """What others do: a fixed number at once, whatever happens."""

    failing = False
    stop_reason = ""

    def __init__(self, width: int) -> None:
        self.width, self.in_flight = width, 0

    def wait(self, now: float) -> float:
        """Return zero while there is room."""
        return 0.0 if self.in_flight < self.width else math.inf

    def dispatch(self, now: float) -> None:
        """Count one more."""
        self.in_flight += 1

    def completed(self, *_told) -> None:
        """Count one less."""
        self.in_flight -= 1

    def item_failed(self, *_told) -> None:
        """Learn nothing."""


class Run(NamedTuple):
    """The result: answers by status, assets by how they ended, the seconds it took, the peak concurrency."""

    statuses: Counter
    created: int
    in_doubt: int
    rejected: int
    seconds: float
    peak: int

    @property
    def rate(self) -> float:
        """Assets created per second."""
        return self.created / self.seconds


def simulate(service: Service, items: int, pace, threads: int, *, repeats: bool = False, max_unknown: int = 0) -> Run:
    """Create items as the scheduler does; `repeats`: whether what may have happened is sent again, as a PUT is."""
    return _Simulation(service, items, pace, threads, repeats, max_unknown).run()


class _Simulation:
    def __init__(self, service, items, pace, threads, repeats, max_unknown) -> None:
        self.service, self.new, self.pace, self.repeats = service, items, pace, repeats
        self.idle, self.max_unknown = threads, max_unknown
        self.chance, self.now, self.peak, self.last, self.alarm = random.Random(1), 0.0, 0, 1e-9, 0.0
        self.events: list = []
        self.order = itertools.count()
        self.again: list[int] = []  # attempts made so far, for each item that needs another one
        self.at_service, self.doubtful = 0, 0
        self.statuses, self.ends = Counter(), Counter()

    def run(self) -> Run:
        """Return the result."""
        while True:
            self._dispatch_all()
            if not self.events:
                break
            self.now, _order, act, told = heapq.heappop(self.events)
            act(*told)
        return Run(self.statuses, self.ends[201], self.ends[503], self.ends[429], self.last, self.peak)

    def _at(self, seconds: float, act, *told) -> None:
        heapq.heappush(self.events, (self.now + seconds, next(self.order), act, told))

    def _dispatch_all(self) -> None:
        while self.again or (self.new and self.idle and not (self.pace.failing and self.doubtful)):
            if self.pace.stop_reason or 0 < self.max_unknown <= self.ends[503]:
                self.new = 0
                self.again.clear()
                return
            seconds = self.pace.wait(self.now)
            if seconds > 0:
                if seconds < math.inf and not self.now < self.alarm <= self.now + seconds:
                    self.alarm = self.now + seconds
                    self._at(seconds, lambda: None)
                return
            self._dispatch()

    def _dispatch(self) -> None:
        made = self.again.pop(0) if self.again else 0
        if not made:
            self.new, self.idle = self.new - 1, self.idle - 1
        elif self.repeats:
            self.doubtful -= 1
        self.at_service += 1
        self.peak = max(self.peak, self.at_service)
        dispatch, answer = self.pace.dispatch(self.now), self.service(self.now, self.at_service, self.chance)
        self._at(answer.seconds, self._complete, dispatch, answer, made + 1)

    def _complete(self, dispatch, answer: Answer, made: int) -> None:
        self.at_service -= 1
        self.statuses[answer.status] += 1
        feedback = {201: OK, 429: RATE_LIMITED}.get(answer.status, OVERLOADED)
        self.pace.completed(dispatch, feedback, self.now, answer.retry_after)
        if answer.status != 201 and made <= 3 and (self.repeats or answer.status == 429):
            self.doubtful += answer.status != 429
            wait = answer.retry_after or self.chance.random() * 2 ** (made - 1)
            self._at(wait, self.again.append, made)
            return
        self.idle += 1
        self.ends[answer.status] += 1
        if answer.status == 201:
            self.last = self.now
        else:
            self.pace.item_failed(dispatch, answer.status != 429)
