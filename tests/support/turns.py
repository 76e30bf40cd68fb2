"""Threads of which one runs at a time; a chooser decides who goes on and what fails, in virtual time."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

LEASE = 180  # seconds, of the tasks here
LARGEST = 2_000  # choices of one run
KILLED, STOPPED = "killed", "stopped"


class Killed(BaseException):
    """The process of this thread was killed."""


class Process:
    """What a kill ends, what a signal stops, and how long its monotonic clock stood still."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = self.has_lost_a_write = False
        self.why_to_stop = ""
        self.asleep: float = 0


class Actor:
    """A thread of one run."""

    def __init__(self, name: str, act: Callable[[], object], process: Process) -> None:
        self.name, self.act, self.process = name, act, process
        self.go = threading.Lock()  # released when it goes on
        self.go.acquire()
        self.is_started = self.has_ended = False
        self.error: BaseException | None = None
        self.wakes = -math.inf  # when its wait ends at the latest
        self.is_ready: Callable[[], bool] = bool  # ends its wait before

    def is_left(self) -> bool:
        return not (self.has_ended or self.process.is_dead)

    def can_go_on(self, now: float) -> bool:
        return self.is_left() and (now >= self.wakes or self.is_ready())


class World:
    """The actors of one run, their clock and their chooser."""

    def __init__(self, choose: Callable[[int, int], int], faults: int = 0) -> None:
        """`choose`: one of so many ways to go on, 0 being nothing special, and so many faults."""
        self._choose = choose
        self._faults_left = faults
        self._choices = 0
        self._main = threading.Lock()
        self._main.acquire()
        self._before = Process("before")
        self.running: Actor | None = None
        self.actors: list[Actor] = []
        self.now: float = 1_000
        self.in_flight = 0  # requests that were sent in time and will arrive in time
        self.is_stuck = self.is_over = False
        self.log: list[str] = []

    @property
    def process(self) -> Process:
        """The process of the thread that is running."""
        return self.running.process if self.running else self._before

    def monotonic(self) -> float:
        """Return what the running process reads from a clock that stands still while it is stopped."""
        return self.now - self.process.asleep

    def add(self, name: str, act: Callable[[], object], process: Process | None = None) -> Actor:
        """Add a thread, of a new process without one."""
        name = f"{name} {len(self.actors) + 1}"
        self.actors.append(Actor(name, act, process or Process(name)))
        return self.actors[-1]

    def start(self, act: Callable[..., object], *given: object) -> None:
        """Start a thread of the running process."""
        if self.running is None:
            act(*given)
        else:
            self.add("attempt", partial(act, *given), self.process)

    def run(self) -> None:
        """Let all actors act until they have ended."""
        self._hand_over(self._next())
        self._main.acquire()
        self.is_over = True
        for actor in self.actors:
            if actor.is_started and not actor.has_ended:  # killed, or waits for what never happens
                actor.process.is_dead = True
                self._hand_over(actor)
                self._main.acquire()
        self.running = None

    def point(self, what: str, fates: Sequence[str] = ()) -> str:
        """Let something fail or others go on; return one of the fates, '' for none of them."""
        me = self.running
        if me is None:  # before or after the run
            return ""
        self.require_alive()
        others = self._others()
        number = self._chosen(len(others) + 1)
        if number:
            self._switch(others[number - 1])
        self.log.append(f"{me.process.name}: {what}")
        fate = self._fate(fates)
        if fate != STOPPED:
            return fate
        self.now += LEASE
        me.process.asleep += LEASE
        others = self._others()
        if others:
            self._switch(others[self._chosen(len(others))])
        return ""

    def require_alive(self) -> None:
        """Raise Killed in a thread of a process that was killed."""
        if self.process.is_dead:
            raise Killed

    def _fate(self, fates: Sequence[str]) -> str:
        if not self._faults_left:
            return ""
        possible = [KILLED, *([] if self.in_flight else [STOPPED]), *fates]
        number = self._chosen(1, len(possible))
        if not number:
            return ""
        self._faults_left -= 1
        fate = possible[number - 1]
        self.log[-1] += f": {fate}"
        if fate == KILLED:
            self.process.is_dead = True
            raise Killed
        return fate

    def sleep(self, seconds: float) -> None:
        """Let this much time pass for the actor that is running."""
        self.wait(bool, seconds)

    def wait(self, is_ready: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Wait until something is the case; return False if that does not happen in this time."""
        me, seconds = self.running, seconds if seconds == math.inf else math.ceil(seconds)
        self.require_alive()
        if me is None:
            self.now += seconds
        elif not is_ready():
            me.is_ready, me.wakes = is_ready, self.now + seconds
            self._switch(self._next())
            me.is_ready, me.wakes = bool, -math.inf
        return is_ready()

    def _chosen(self, ways: int, faults: int = 0) -> int:
        self._choices += 1
        return self._choose(ways, faults) if ways + faults > 1 else 0

    def _others(self) -> list[Actor]:
        return [actor for actor in self._able() if actor is not self.running]

    def _able(self) -> list[Actor]:
        return [actor for actor in self.actors if actor.can_go_on(self.now)]

    def _left(self) -> list[Actor]:
        return [actor for actor in self.actors if actor.is_left()]

    def _next(self) -> Actor | None:
        """Return who goes on when the running actor cannot; let time pass if nobody can."""
        if self._choices > LARGEST:
            self.is_stuck = True
            return None
        able = self._able()
        if not able:
            wakes = min((each.wakes for each in self._left()), default=math.inf)
            self.now = wakes if wakes < math.inf else self.now + LEASE
            able = self._able() or self._left()
        return able[self._chosen(len(able))] if able else None

    def _switch(self, to: Actor | None) -> None:
        me = self.running
        if to is not me:
            self._hand_over(to)
            me.go.acquire()
        self.require_alive()

    def _hand_over(self, to: Actor | None) -> None:
        if to is None:
            self._main.release()
            return
        self.running = to
        if to.is_started:
            to.go.release()
        else:
            to.is_started = True
            _in_thread(partial(self._act, to))

    def _act(self, me: Actor) -> None:
        try:
            me.act()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - the test reports it
            me.error = error
        me.has_ended = True
        self._hand_over(None if self.is_over else self._next())


def _in_thread(act: Callable[[], None]) -> None:
    """Let a thread act, one that has nothing to do if there is one: a new one takes longer."""
    if not _IDLE:
        jobs = SimpleQueue[Callable[[], None]]()
        threading.Thread(target=_serve, args=(jobs,), daemon=True).start()
    else:
        jobs = _IDLE.pop()
    jobs.put(act)


def _serve(jobs: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        jobs.get()()
        _IDLE.append(jobs)


_IDLE: list[SimpleQueue[Callable[[], None]]] = []


class Answers:
    """The queue of a loop, for which only it waits."""

    def __init__(self, world: World) -> None:
        self._world, self._items = world, deque[Any]()

    def put(self, item: object) -> None:
        self._world.require_alive()
        self._items.append(item)

    def get(self, timeout: float) -> Any:
        """Return the next item; raise Empty without one in this time, in seconds."""
        if timeout and not self._items:
            self._world.wait(lambda: bool(self._items), timeout)
        if not self._items:
            raise Empty
        return self._items.popleft()
