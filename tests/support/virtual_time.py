"""Threads in virtual time: real ones, of which one runs at a time, with a clock that moves on when
all of them wait.

So what they do is the same in every run, and a wait of an hour takes no time.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import threading
from collections.abc import Callable
from functools import partial

LONGEST = 100_000.0  # virtual seconds after which a test is taken to wait for what never happens


class _Turn:
    """Whose turn it is: one thread, which waits until `go` is released."""

    def __init__(self) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.waits = 0  # so far; tells a wait that has ended from the next one
        self.was_woken = False


class VirtualTime:
    """Takes the place of the modules `threading` and `time` for the code that is given it.

    Everything happens in the order in which the threads were woken; with a `seed`, in one drawn
    from it, and then a thread may also be overtaken wherever it takes a lock.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.errors: list[BaseException] = []  # what ended a thread
        self.chance = random.Random(seed) if seed is not None else None
        self.RLock = partial(_RLock, self)
        self.Condition = partial(_Condition, self)
        self.Event = partial(_Event, self)
        self.Thread = partial(_Thread, self)
        self._now, self._order = 0.0, itertools.count()
        self._alarms: list[tuple[float, int, int, _Turn]] = []
        self._ready: list[_Turn] = []
        self.running = self._main = _Turn()

    def monotonic(self) -> float:
        """Return the virtual seconds that have passed."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Let the others run for that time."""
        self.wait(seconds)

    def wait(self, seconds: float | None = None) -> bool:
        """Let the others run until one of them wakes this thread, or the time is over; return
        whether one did.
        """
        me = self.running
        me.waits, me.was_woken = me.waits + 1, False
        if seconds is not None and seconds < math.inf:
            heapq.heappush(self._alarms, (self._now + seconds, next(self._order), me.waits, me))
        self.pass_on()
        me.go.acquire()
        if me is self._main and self._now > LONGEST:
            raise AssertionError("the threads wait for what never happens")
        return me.was_woken

    def give_way(self) -> None:
        """Let others that are ready overtake this thread, in an order that is drawn."""
        if self.chance and self._ready and self.chance.random() < 0.5:
            self._ready.append(self.running)
            me = self.running
            self.pass_on()
            me.go.acquire()

    def make_ready(self, turn: _Turn) -> None:
        """End the wait of a thread."""
        turn.waits, turn.was_woken = turn.waits + 1, True
        self._ready.append(turn)

    def pass_on(self) -> None:
        """Let the next thread run instead of this one."""
        self.running = self._next()
        self.running.go.release()

    def _next(self) -> _Turn:
        if self._ready:
            return self._ready.pop(self.chance.randrange(len(self._ready)) if self.chance else 0)
        while self._alarms:
            at, _order, wait, turn = heapq.heappop(self._alarms)
            if wait == turn.waits:
                self._now = at
                return turn
        self._now = math.inf  # nobody will ever wake anybody: the test's thread says so
        return self._main


class _Thread:
    def __init__(self, time: VirtualTime, target: Callable[[], None], daemon: bool) -> None:
        self._time, self._target, self._turn = time, target, _Turn()
        self._thread = threading.Thread(target=self._run, daemon=daemon)

    def start(self) -> None:
        self._thread.start()
        self._time.make_ready(self._turn)

    def _run(self) -> None:
        self._turn.go.acquire()
        try:
            self._target()
        except BaseException as error:  # noqa: BLE001 - as threading does
            self._time.errors.append(error)
        finally:
            self._time.pass_on()


class _RLock:
    def __init__(self, time: VirtualTime) -> None:
        self._time, self._lock = time, threading.RLock()

    def __enter__(self) -> None:
        if not self.is_owned():
            self._time.give_way()
        assert self._lock.acquire(blocking=False), "a thread waits while it holds the lock"

    def __exit__(self, *_error) -> None:
        self._lock.release()

    def is_owned(self) -> bool:
        return self._lock._is_owned()

    def set_aside(self) -> object:
        """Release it, however often it was taken."""
        return self._lock._release_save()

    def take_back(self, held: object) -> None:
        self._lock._acquire_restore(held)


class _Condition:
    def __init__(self, time: VirtualTime, lock: _RLock) -> None:
        self._time, self._lock, self._waiting = time, lock, []

    def wait(self, timeout: float | None = None) -> bool:
        assert self._lock.is_owned()
        self._waiting.append(me := self._time.running)
        held = self._lock.set_aside()
        was_woken = self._time.wait(timeout)
        self._lock.take_back(held)
        if not was_woken:
            self._waiting.remove(me)
        return was_woken

    def notify(self, n: int = 1) -> None:
        assert self._lock.is_owned()
        woken, self._waiting = self._waiting[:n], self._waiting[n:]
        for turn in woken:
            self._time.make_ready(turn)

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class _Event:
    def __init__(self, time: VirtualTime) -> None:
        self._time, self._is_set, self._waiting = time, False, []

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            self._time.make_ready(turn)

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            self._waiting.append(me := self._time.running)
            if not self._time.wait(timeout):
                self._waiting.remove(me)
        return self._is_set
