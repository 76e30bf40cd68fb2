"""Threads of which one runs at a time; a chooser decides who goes on and what fails, in virtual time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

LEASE = 180  # seconds, of the tasks here
LARGEST = 2_000  # choices of one run
KILLED, STOPPED = "killed", "stopped"


class Killed(BaseException):
    """The process of this thread was killed; no code under test catches it."""


class Actor:
    """A thread of one run."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self.name = name
        self.act = act
        self.go = threading.Semaphore(0)
        self.is_started = self.is_dead = self.has_ended = False
        self.has_lost_a_write = False
        self.error: BaseException | None = None
        self.wakes = -math.inf  # when its wait ends at the latest
        self.is_ready: Callable[[], bool] = bool  # ends its wait before

    def can_go_on(self, now: float) -> bool:
        return not self.has_ended and (now >= self.wakes or self.is_ready())


class World:
    """The actors of one run, their clock and their chooser."""

    def __init__(
        self, choose: Callable[[int, int], int], faults: int = 0, largest: float = LARGEST
    ) -> None:
        """`choose`: one of so many ways to go on, 0 being nothing special, and so many faults."""
        self._choose = choose
        self._faults_left = faults
        self._largest = largest
        self._choices = 0
        self._main = threading.Semaphore(0)
        self.running: Actor | None = None
        self.actors: list[Actor] = []
        self.now: float = 1_000
        self.in_flight = 0  # requests that were sent in time and will arrive in time
        self.is_stuck = self.is_over = False
        self.log: list[str] = []

    def add(self, name: str, act: Callable[[], None]) -> Actor:
        self.actors.append(Actor(f"{name} {len(self.actors) + 1}", act))
        return self.actors[-1]

    def join(self) -> None:
        """Take part in the run, as an actor that is running."""
        self.running = self.add("main", lambda: None)
        self.running.is_started = True

    def run(self) -> None:
        """Let all actors act until they have ended."""
        self._hand_over(self._next())
        self._main.acquire()
        self.is_over = True
        for actor in self.actors:
            if actor.is_started and not actor.has_ended:  # it waits for what never happens
                actor.is_dead = True
                self._hand_over(actor)
                self._main.acquire()
        self.running = None

    def point(self, what: str, fates: Sequence[str] = ()) -> str:
        """Let something fail or others go on; return one of the fates, '' for none of them."""
        me = self.running
        if me is None:  # after the run
            return ""
        if me.is_dead:
            raise Killed
        others = self._others()
        number = self._chosen(len(others) + 1)
        if number:
            self.log.append(f"{me.name} pauses at {what}")
            self._switch(others[number - 1])
        fate = self._fate(me, what, fates)
        if fate != STOPPED:
            return fate
        self.now += LEASE
        others = self._others()
        if others:
            self._switch(others[self._chosen(len(others))])
        return ""

    def _fate(self, me: Actor, what: str, fates: Sequence[str]) -> str:
        if not self._faults_left:
            return ""
        possible = [KILLED, *([] if self.in_flight else [STOPPED]), *fates]
        number = self._chosen(1, len(possible))
        if not number:
            return ""
        self._faults_left -= 1
        fate = possible[number - 1]
        self.log.append(f"{me.name} at {what}: {fate}")
        if fate == KILLED:
            me.is_dead = True
            raise Killed
        return fate

    def sleep(self, seconds: float) -> None:
        """Let this much time pass for the actor that is running."""
        me = self.running
        if me is None:
            self.now += math.ceil(seconds)
            return
        if me.is_dead:
            raise Killed
        self.wait(bool, math.ceil(seconds))

    def wait(self, is_ready: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Wait until something is the case; return False if that does not happen in this time."""
        me = self.running
        if not is_ready():
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
        return [actor for actor in self.actors if not actor.has_ended]

    def _next(self) -> Actor | None:
        """Return who goes on when the running actor cannot; let time pass if nobody can."""
        if self._choices > self._largest:
            self.is_stuck = True
            return None
        able = self._able()
        if not able:
            wakes = min(each.wakes for each in self._left()) if self._left() else math.inf
            self.now = wakes if wakes < math.inf else self.now + LEASE
            able = self._able()
        if not able:
            able = self._left()
        return able[self._chosen(len(able))] if able else None

    def _switch(self, to: Actor | None) -> None:
        me = self.running
        if to is not me:
            self._hand_over(to)
            me.go.acquire()
        if me.is_dead:
            raise Killed

    def _hand_over(self, to: Actor | None) -> None:
        if to is None:
            self._main.release()
            return
        self.running = to
        if to.is_started:
            to.go.release()
        else:
            to.is_started = True
            threading.Thread(target=self._act, args=(to,), daemon=True).start()

    def _act(self, me: Actor) -> None:
        try:
            me.act()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - the test reports it
            me.error = error
        me.has_ended = True
        self._hand_over(None if self.is_over else self._next())
