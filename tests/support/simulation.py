"""Simulated services, to which the scheduler, the pace and the retry policy send many requests in
virtual time.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Callable, NamedTuple

from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import (
    AttemptResult,
    Event,
    meaning,
    retry,
)
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    NOT_SENT,
    UNKNOWN,
    outcome_of,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.threads import (
    feedback_of,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result

from .scheduling import Scheduled
from .virtual_time import VirtualTime


class Answered(NamedTuple):
    """What a simulated service answers, and when."""

    seconds: float
    status: int = 201
    retry_after: float | None = None


# A service is a function of the time, the number of requests in flight (including this one), and
# randomness.
Service = Callable[[float, int, random.Random], Answered]


def healthy(seconds: float) -> Service:
    """Return a service that is always healthy."""
    return lambda now, at_once, chance: Answered(seconds * chance.uniform(0.9, 1.1))


def dead(status: int = 503, retry_after: float | None = None, since: float = 0.0) -> Service:
    """Return a service that refuses everything from a certain time on."""
    return lambda now, at_once, chance: (
        Answered(0.1, status, retry_after) if now >= since else Answered(0.5)
    )


def limited_in_room(most: int = 32, slow_above: int = 16, seconds: float = 0.5) -> Service:
    """Return a service that slows down above one number of concurrent requests, and refuses above
    another.
    """

    def answer(now: float, at_once: int, chance: random.Random) -> Answered:
        if at_once > most:
            return Answered(0.005, 503)
        return Answered(seconds * max(1.0, at_once / slow_above) * chance.uniform(0.9, 1.1))

    return answer


def limited_in_rate(
    rate: float = 50.0, seconds: float = 0.02, retry_after: float | None = None
) -> Service:
    """Return a service with a token bucket for one second (429 when it is empty)."""
    level, last = rate, 0.0

    def answer(now: float, at_once: int, chance: random.Random) -> Answered:
        nonlocal level, last
        level, last = min(rate, level + (now - last) * rate), now
        if level < 1:
            return Answered(min(seconds, 0.005), 429, retry_after)
        level -= 1
        return Answered(seconds * chance.uniform(0.9, 1.1))

    return answer


class Run(NamedTuple):
    """The result: answers by status, assets by how they ended, the virtual seconds it took, the
    peak concurrency.
    """

    statuses: Counter
    created: int
    in_doubt: int
    seconds: float
    peak: int
    reason: str  # why it stopped, empty if it did not

    @property
    def rate(self) -> float:
        """Assets created per second."""
        return self.created / self.seconds


def simulate(
    service: Service, items: int, pace, threads: int, *, method: str = "POST", max_unknown: int = 0
) -> Run:
    """Let the scheduler create items; `method`: the column of the retry policy."""
    time, server = VirtualTime(), _Server(service)
    server.time = time
    scheduler = Scheduled(
        items,
        _Worker(server, method),
        pace,
        max_unknown=max_unknown,
        clock=time.monotonic,
        threads=time,
    )
    scheduler.run(threads)
    assert (time.errors, scheduler.begun) == ([], {})
    ended = Counter(each.outcome if each.failed else "created" for each in scheduler.ended.values())
    return Run(
        server.statuses,
        ended["created"],
        ended[UNKNOWN],
        server.last,
        server.peak,
        scheduler.reason,
    )


class _Server:
    """The service as a client sees it."""

    time: VirtualTime

    def __init__(self, service: Service) -> None:
        self._service, self.chance = service, random.Random(1)
        self.statuses: Counter = Counter()
        self.at_once = self.peak = 0
        self.last = 1e-9  # when the last asset was created

    def attempt(self) -> AttemptResult:
        """Answer as the simulated service does, after the time that it takes."""
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        answered = self._service(self.time.monotonic(), self.at_once, self.chance)
        self.time.sleep(answered.seconds)
        self.at_once -= 1
        self.statuses[answered.status] += 1
        if answered.status == 201:
            self.last = self.time.monotonic()
        headers = (
            {} if answered.retry_after is None else {"Retry-After": f"{answered.retry_after:.0f}"}
        )
        return AttemptResult(meaning(answered.status)[0], "", answered.status, headers)


class _Worker:
    """Sends the request of an item as the client does: each attempt waits for its slot, the policy
    allows the next.
    """

    def __init__(self, server: _Server, method: str) -> None:
        self._server, self._method = server, method

    def __call__(self, item: int, slot) -> dict:
        effects = []

        def attempt() -> AttemptResult:
            if not slot.acquire():  # the list has stopped
                return AttemptResult(Event.UNSENT_HOPELESS)
            result = self._server.attempt()
            slot.release(*feedback_of(result))
            effects.append(result.event.effect)
            return result

        fraction = self._server.chance.random
        last = retry(attempt, self._method, 3, 30.0, fraction=fraction, sleep=slot.pause)
        return Result(outcome=outcome_of(NOT_SENT, *effects), failed=last.event != Event.SUCCESS)
