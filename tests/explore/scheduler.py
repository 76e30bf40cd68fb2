# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads of which one runs at a time; wherever it could be overtaken or fail, a chooser says what
happens.

Time is virtual. A thread is handed the turn only where another one is to go on, so a run costs
little more than the code that it runs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from typing import Any

from .threads import POOL, Actor, Process

LONGEST = 3_000.0  # virtual seconds, and LARGEST choices: a run that goes on is taken to wait for what never happens
LARGEST = 5_000
LOOKING = 0.2  # seconds: who waits for less is looking for a lock
KILL = "killed"


class Killed(BaseException):
    """The process of this thread was killed; not an error, so that nothing of the code under test
    catches it.
    """


class Stuck(Exception):
    """The threads wait for what never happens."""


class World:
    """Everything that one run shares: its threads, its clock and its chooser."""

    def __init__(self, choose: Callable[[int, int, bool], int], faults: int) -> None:
        """`choose`: one of so many ways to go on, of which 0 is nothing special, and faults;
        whether somebody has to.

        `faults`: so many at most. A chooser with `has_met` says of a state whether another run
        looks at all that can follow; this one is then cut.
        """
        self._choose, self.faults_left = choose, faults
        self._has_met = getattr(choose, "has_met", None)
        self.is_cut = False
        self.end: int | None = None  # the state at the end of a run that was not cut
        self.told: Callable[[], object] = tuple  # what the state of a run has in addition
        self.losses_left = 1  # of sessions
        self.actors: list[Actor] = []
        self.now = 0.0
        self.log: list[str] = []
        self.places: list[Any] = []
        self.writers: dict[
            Any, Any
        ] = {}  # who has begun a transaction, by place: nobody else may go on
        self.releases = 0  # of locks, so far
        self.on_commit: Callable[[], None] = lambda: None
        self.problems: list[str] = []
        self._main = threading.Semaphore(0)
        self.running: Actor | None = None
        self._choices = 0

    def add(self, process: Process, act: Callable[[], None], is_background: bool = False) -> Actor:
        self.actors.append(Actor(process, act, is_background))
        return self.actors[-1]

    def see(self, what: Any) -> Any:
        """Note what the thread that is running has met, which decides what its process does next;
        return it.
        """
        process = self.running.process
        process.seen = hash((process.seen, self.actors.index(self.running), what))
        return what

    def run(self) -> None:
        """Let all of them act until they have ended; raise Stuck."""
        self._hand_over(None, self._next())
        self._main.acquire()
        is_stuck = any(self._must_end(actor) for actor in self.actors)
        for actor in self.actors:
            self.kill(actor.process)
        for actor in [
            actor for actor in self.actors if not actor.has_ended
        ]:  # let their threads end
            self._hand_over(None, actor)
            self._main.acquire()
        if is_stuck:
            raise Stuck

    def point(self, what: str, fates: Iterable[str] = ()) -> str:
        """Let others go on, or something happen; return which of the fates, empty for none."""
        me, is_back = self.running, False
        if me.process.is_dead:
            raise Killed
        self.see(what)
        while True:
            others = (
                []
                if is_back or self.writers
                else [actor for actor in self._able() if actor is not me]
            )
            special = self._special(me.process, fates)
            number = self._chosen(1 + len(others), len(special))
            me.is_back = False
            if number == 0:
                return ""
            if number <= len(others):
                self.log.append(f"{me.process.name} pauses before {what}")
                self._switch(me, others[number - 1])
                is_back = me.is_back = True
                continue
            fate = special[number - 1 - len(others)]
            self.faults_left -= 1
            self.log.append(
                f"{me.process.name}, before {what}: {fate if isinstance(fate, str) else 'session lost'}"
            )
            if fate == KILL:
                self.kill(me.process)
                raise Killed
            if isinstance(fate, str):
                self.see(fate)
                return fate
            fate.lose()

    def _special(self, process: Process, fates: Iterable[str]) -> list:
        """Return what may happen to a process: words, and sessions that may be lost."""
        if not self.faults_left:
            return []
        sessions = process.sessions.values() if self.losses_left > 0 else ()
        return [KILL, *(session for session in sessions if not session.is_lost), *fates]

    def wait(self, ready: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Let others go on until it is ready, or the time is over; return whether it is."""
        me = self.running
        if me.process.is_dead:
            raise Killed
        if not ready() or seconds < math.inf:
            me.ready, me.waits, me.wakes = ready, seconds, self.now + seconds
            self.see(seconds)
            self._switch(me, self._next())
            me.ready, me.waits, me.wakes = None, math.inf, math.inf
        return self.see(ready())

    def kill(self, process: Process) -> None:
        """Kill a process; its threads notice when they are to go on."""
        if not process.is_dead:
            process.is_dead = True
            for happen in process.at_death:
                happen()

    def _chosen(self, ways: int, faults: int = 0, is_forced: bool = False) -> int:
        self._choices += 1
        if self._choices > LARGEST:
            self.now = math.inf
        if ways + faults == 1 or self._choices > LARGEST:
            return 0
        if self._has_met and self._has_met(self.state()):
            self._cut()
        return self._choose(ways, faults, is_forced)

    def state(self) -> int:
        """Return a digest of all on which it depends what can follow."""
        actors = tuple(actor.state() for actor in self.actors)
        running = self.actors.index(self.running) if self.running else None
        left = self.now, self.releases, self.faults_left, self.losses_left, bool(self.writers)
        return hash(
            (running, left, actors, tuple(place.state() for place in self.places), self.told())
        )

    def _cut(self) -> None:
        """End the run here."""
        self.is_cut = True
        for actor in self.actors:
            self.kill(actor.process)
        raise Killed

    def _able(self) -> list[Actor]:
        """Return who can go on now; time passes where nobody can, or while those who can are slow.

        Who looks after a session does so before anybody has waited long.
        """
        alive = [
            actor for actor in self.actors if not actor.has_ended and not actor.process.is_dead
        ]
        if self.writers:
            alive = [actor for actor in alive if actor.process is self.running.process]
        found = [actor for actor in alive if actor.ready is None or actor.ready()]
        if not any(actor.is_background for actor in found):
            shortest = LOOKING if found else 0.0
            waiting = [
                actor
                for actor in alive
                if actor not in found and shortest <= actor.waits < math.inf
            ]
            found += sorted(waiting, key=lambda actor: actor.wakes)[:1]
        return found

    def _next(self) -> Actor | None:
        """Return who goes on when one of them cannot, None if that is the end."""
        if self.now > LONGEST or not any(self._must_end(actor) for actor in self.actors):
            return None
        able = self._able()
        return able[self._chosen(len(able), is_forced=True)] if able else None

    def _must_end(self, actor: Actor) -> bool:
        return not (actor.has_ended or actor.is_background or actor.process.is_dead)

    def _switch(self, me: Actor, to: Actor | None) -> None:
        if to is not me:
            self._hand_over(me, to)
            me.go.acquire()
        elif not me.ready():
            self.now = max(self.now, me.wakes)
        if me.process.is_dead:
            raise Killed

    def _hand_over(self, me: Actor | None, to: Actor | None) -> None:
        if to is None:
            self._main.release()
            return
        if to.wakes < math.inf and not to.ready():
            self.now = max(self.now, to.wakes)
        self.running = to
        if to.act is None:
            to.go.release()
        else:
            act, to.act = to.act, None
            POOL.run(lambda: self._act(to, act))

    def _act(self, me: Actor, act: Callable[[], None]) -> None:
        try:
            if not me.process.is_dead:
                act()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - as threading does
            me.error = error
        me.has_ended = True
        try:
            follows = self._next()
        except BaseException as error:  # noqa: BLE001 - or the main thread would wait for ever
            me.error, follows = error, None
        self._hand_over(me, follows)
