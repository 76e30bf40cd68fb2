"""The clock, the queue and the threads of a loop: what happens is the same in every run, and a wait
of an hour takes no time.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Any

MOST_TURNS = 20_000  # of a loop that ends


class Spins(BaseException):
    """A loop makes turn after turn; a BaseException, which no code under test catches."""


class VirtualTime:
    """What happens at which second; `threads`: how many are alive."""

    def __init__(self) -> None:
        self.now = 0.0
        self.threads = 0
        self._turns = 0
        self.answers: deque[Any] = deque()
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._late = 0.0

    def clock(self) -> float:
        return self.now

    def at(self, seconds: float, act: Callable[[], object]) -> None:
        """Let something happen then; never at infinity."""
        if seconds < math.inf:
            heapq.heappush(self._events, (seconds, next(self._numbers), act))

    def take(self, seconds: float) -> None:
        """Let this much time pass in the main thread, while others go on."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self._happen()
        self.now = end

    def _happen(self) -> None:
        moment, _number, act = heapq.heappop(self._events)
        self.now = max(self.now, moment)
        act()

    def get(self, timeout: float) -> Any:
        """Return the next answer, as SimpleQueue."""
        self._turns += 1
        if self._turns > MOST_TURNS:
            raise Spins
        end = self.now + timeout
        while not self.answers:
            if not (self._events and self._events[0][0] <= end):
                self.now = end
                raise Empty
            self._happen()
        return self.answers.popleft()

    def put(self, answer: Any) -> None:
        """Take an answer; one of a thread comes when its time has passed."""
        self.at(self.now + self._late, lambda: self._arrive(answer))

    def _arrive(self, answer: Any) -> None:
        self.threads -= 1
        self.answers.append(answer)

    def start(self, work: Callable[..., None], *given: Any) -> None:
        """Start a thread."""
        self.run_at(self.now, work, *given)

    def run_at(self, seconds: float, work: Callable[..., None], *given: Any) -> None:
        """Let a thread do its work, whose first byte goes out then."""
        self.threads += 1
        self.at(seconds, lambda: self._run(work, *given))

    def _run(self, work: Callable[..., None], *given: Any) -> None:
        self._late = 0.0
        work(*given)
        self._late = 0.0

    def answer_after(self, seconds: float) -> None:
        """In a thread: let so much time pass before its answer comes."""
        self._late = seconds
