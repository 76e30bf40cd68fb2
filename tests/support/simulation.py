"""Simulated services, to which the loop sends many requests in virtual time."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Callable, NamedTuple
from unittest.mock import patch

from ansible_collections.infrastructure.services.plugins.module_utils._call.tokens import (
    Memory,
    Tokens,
)
from ansible_collections.infrastructure.services.plugins.module_utils._errors import UNKNOWN
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    Answer,
    transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    compare,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.journal import NoLedger
from ansible_collections.infrastructure.services.plugins.module_utils._task.loop import Job, Loop
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    settings_from,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import (
    Context,
    call_of,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.work import Work

from support import CREATE, LEAST, SPECS, validate

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
    service: Service, items: int, width, *, resource: str = CREATE, max_unknown: int = 0
) -> Run:
    """Let the loop create or update items."""
    time, server = VirtualTime(), _Server(service)
    server.time = time
    options = validate(SPECS[resource], {**_OPTIONS, **LEAST[resource]})
    context = Context(False, options.secrets)
    settings = settings_from(options.valid())
    key = SPECS[resource].key
    tasks = [
        SPECS[resource].sent.task({**options.params, key: f"asset-{number}"}, settings)
        for number in range(items)
    ]

    def watch(ended, _in_flight, _is_ending) -> str:
        unknown = sum(result.outcome == UNKNOWN for result in ended) if max_unknown else 0
        return f"{unknown} in doubt" if 0 < max_unknown <= unknown else ""

    jobs = [
        Job(Work(call_of(task, context), task, partial(compare, task), context.secrets))
        for task in NoLedger().plan_all(tasks)
    ]
    tokens = Tokens(settings, Memory(), context.secrets.mask)
    loop = Loop(jobs, NoLedger(), tokens, width, watch, time.clock, time, time.start)
    random.seed(1)
    with patch.object(transport, "send_once", server.send_once):
        loop.run()
    ended = Counter(each.outcome if each.failed else "created" for each in loop.ended)
    return Run(
        server.statuses,
        ended["created"],
        ended[UNKNOWN],
        server.last,
        server.peak,
        loop.reason,
    )


_OPTIONS = {
    "base_url": "http://127.0.0.1:9",
    "access_token": "token-of-the-tests",
    "retries": 3,
    "retry_max_delay": 30,
}


class _Server:
    """The service at the socket."""

    time: VirtualTime

    def __init__(self, service: Service) -> None:
        self._service, self._chance = service, random.Random(1)
        self.statuses: Counter = Counter()
        self._at_once = self.peak = 0
        self.last = 1e-9  # when the last asset was created

    def send_once(self, _connection, request, _timeout) -> Answer:
        """Answer as the simulated service does, after the time that it takes."""
        request.may_send()
        self._at_once += 1
        self.peak = max(self.peak, self._at_once)
        seconds, status, retry_after = self._service(self.time.now, self._at_once, self._chance)
        self.time.at(self.time.now + seconds, self._leave)
        self.time.answer_after(seconds)
        self.statuses[status] += 1
        if status == 201:
            self.last = max(self.last, self.time.now + seconds)
        headers = {} if retry_after is None else {"Retry-After": f"{retry_after:.0f}"}
        return Answer(status, headers, b'{"id": "a"}')

    def _leave(self) -> None:
        self._at_once -= 1
