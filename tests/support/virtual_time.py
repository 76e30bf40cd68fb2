"""Takes the place of the modules `threading` and `time`: what threads do is the same in every run,
and a wait of an hour takes no time.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from functools import partial

from .turns import World

LONGEST = 100_000.0  # virtual seconds after which a test is taken to wait for what never happens


class VirtualTime:
    """The modules for the code that is given it, and for the test's own thread.

    With a `seed`, who goes on is drawn from it, and then a thread may also be overtaken wherever it
    takes a lock.
    """

    def __init__(self, seed: int | None = None) -> None:
        chance = random.Random(seed)

        def choose(ways: int, _faults: int) -> int:
            return chance.randrange(ways) if seed is not None else 0

        self.world = World(choose, largest=math.inf)
        self.world.join()
        self._began = self.world.now
        self.RLock = partial(_RLock, self.world)
        self.Condition = partial(_Condition, self.world)
        self.Event = partial(_Event, self.world)
        self.Thread = partial(_Thread, self.world)

    @property
    def errors(self) -> list[BaseException]:
        """What ended a thread."""
        return [actor.error for actor in self.world.actors if actor.error]

    def monotonic(self) -> float:
        """Return the virtual seconds that have passed."""
        passed = self.world.now - self._began
        assert passed < LONGEST, "the threads wait for what never happens"
        return passed

    def sleep(self, seconds: float) -> None:
        """Let the others run for that time."""
        self.world.wait(bool, seconds)


class _Thread:
    def __init__(self, world: World, target: Callable[[], None], daemon: bool) -> None:
        del daemon  # all are
        self._world, self._target = world, target

    def start(self) -> None:
        self._world.add("thread", self._target)


class _RLock:
    def __init__(self, world: World) -> None:
        self._world, self._lock = world, threading.RLock()

    def __enter__(self) -> None:
        if not self.is_owned():
            self._world.point("a lock")
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
    def __init__(self, world: World, lock: _RLock) -> None:
        self._world, self._lock, self._waiting = world, lock, []

    def wait(self, timeout: float | None = None) -> bool:
        assert self._lock.is_owned()
        me = object()
        self._waiting.append(me)
        held = self._lock.set_aside()
        was_woken = self._world.wait(lambda: me not in self._waiting, _limit(timeout))
        self._lock.take_back(held)
        if not was_woken:
            self._waiting.remove(me)
        return was_woken

    def notify(self, n: int = 1) -> None:
        assert self._lock.is_owned()
        del self._waiting[:n]

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class _Event:
    def __init__(self, world: World) -> None:
        self._world, self._is_set = world, False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        return self._world.wait(self.is_set, _limit(timeout))


def _limit(timeout: float | None) -> float:
    return math.inf if timeout is None else timeout
