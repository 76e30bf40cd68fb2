# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The casts that are explored, and what must hold at the end of each run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

from ansible_collections.infrastructure.services.plugins.module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import tables
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import ABSENT, DONE
from support import CREATE, UPDATE

from . import actors
from .actors import URL, Run, wanted
from .databases import STANDING_IN, Place
from .scheduler import Stuck, World

KINDS = ("file", "server")
ROLE, WEB = "role-0001", wanted(CREATE, "web")


class Scene:
    """The places and the actors of one run."""

    def __init__(self, world: World, kinds: tuple[str, str]) -> None:
        self.run = Run(world)
        self.old, self.new = (Place(world, name, kind) for name, kind in zip(("/old.db", "/new.db"), kinds))
        world.places = {place.name: place for place in (self.old, self.new)}

    def fill(self, name: str = "old", state: str = DONE) -> None:
        """Make the old ledger, with an entry."""
        for statement in tables.CREATE:
            self.old.data.execute(statement.format(number="INTEGER PRIMARY KEY AUTOINCREMENT"))
        asset = f'{{"id": "{name}-1"}}' if state == DONE else "{}"
        values = (URL, CREATE, name, state, f'{{"name": "{name}"}}', asset, "", "", "", "", "", 1)
        self.old.data.execute(tables.INSERT, values)
        if state == DONE:
            self.run.made[name] = [f"{name}-1"]

    def move(self) -> None:
        """A move, and another one that completes it; meanwhile the old ledger is used, and the new one."""
        self.fill()
        actors.mover(self.run, self.old, self.new)
        actors.mover(self.run, self.old, self.new, tuple(self.run.movers))
        self.run.world.on_commit = self.watch

    def watch(self) -> None:
        """At no moment can both be used, but where a move failed and was undone: then the new one is none of ours."""
        run, marks = self.run, [actors.mark(place) for place in (self.old, self.new)]
        run.is_moved = run.is_moved or bool(marks[1])
        if marks == ["", ""] and run.is_moved and not run.is_undone:
            if self.new.data.execute(tables.COUNT.format("entry")).fetchone() == (0,):
                run.is_undone = True
            else:
                run.world.problems.append("both ledgers can be used")

    def entries(self) -> dict[str, tuple[str, str, str]]:
        """Return state, asset and who wrote it of each entry, in the ledger that is used."""
        found = {}
        for place in (self.old, self.new):
            if actors.mark(place) == "":
                statement = "SELECT name, state, asset, run FROM infrastructure_services_entry"
                found.update({name: row for name, *row in place.data.execute(statement)})
        return found

    def close(self) -> None:
        for place in (self.old, self.new):
            place.data.close()


def _tasks(count: int) -> Callable[[Scene], None]:
    return lambda scene: [actors.task(scene.run, scene.old, WEB) for _number in range(count)]


def _task_and_list(scene: Scene) -> None:
    actors.task(scene.run, scene.old, WEB)
    actors.fleet(scene.run, scene.old, "web", "db")


def _lists(scene: Scene) -> None:
    actors.fleet(scene.run, scene.old, "web", "db")
    actors.fleet(scene.run, scene.old, "db", "web")


def _tasks_and_user(scene: Scene) -> None:
    _tasks(2)(scene)
    actors.user(scene.run, scene.old, "web")


def _lost_and_user(scene: Scene) -> None:
    scene.run.is_lost, scene.run.seconds = False, 5.0
    actors.task(scene.run, scene.old, WEB)
    actors.user(scene.run, scene.old, "web")


def _lost_and_update(scene: Scene) -> None:
    """The second update looked before the first one began, and gets the lock that went with the session."""
    run = scene.run
    run.is_lost, run.seconds = False, 5.0
    is_looking = lambda: len(run.world.actors) == 1 or run.world.actors[1].ready  # noqa: E731
    actors.task(run, scene.old, wanted(UPDATE, ROLE), when=is_looking)
    run.doomed = actors.task(run, scene.old, wanted(UPDATE, ROLE, login=False), begins=lambda: run.is_lost)


def _users(scene: Scene) -> None:
    scene.run.seconds = 5.0
    scene.fill("web", UNKNOWN)
    for as_list in (False, True):
        actors.user(scene.run, scene.old, "web", as_list)


def _list_and_users(scene: Scene) -> None:
    actors.fleet(scene.run, scene.old, "web", "db")
    actors.user(scene.run, scene.old, "web", as_list=True)
    actors.user(scene.run, scene.old, "web")


def _updates(scene: Scene) -> None:
    for login in (True, False):
        actors.task(scene.run, scene.old, wanted(UPDATE, ROLE, login=login))


def _move_and_tasks(scene: Scene) -> None:
    actors.task(scene.run, scene.old, WEB)
    scene.move()
    actors.task(scene.run, scene.new, WEB, when=lambda: scene.run.is_moved)


def _move_and_list(scene: Scene) -> None:
    actors.fleet(scene.run, scene.old, "web", "db")
    scene.move()


STILL, MOVING = tuple((kind, kind) for kind in KINDS), tuple(itertools.product(KINDS, KINDS))
SERVER = STILL[1:]
CASTS: dict[str, tuple[Callable[[Scene], object], tuple[tuple[str, str], ...]]] = {
    "two tasks": (_tasks(2), STILL),
    "three tasks": (_tasks(3), STILL),
    "a task and a list": (_task_and_list, STILL),
    "two lists": (_lists, STILL),
    "two tasks and a user": (_tasks_and_user, STILL),
    "a task that loses its session, and a user": (_lost_and_user, SERVER),
    "an update that loses its session, and one that is killed": (_lost_and_update, SERVER),
    "two users": (_users, STILL),
    "a list and two users": (_list_and_users, STILL),
    "two updates": (_updates, STILL),
    "a move and two tasks": (_move_and_tasks, MOVING),
    "a move and a list": (_move_and_list, MOVING),
}
SETTINGS = [(cast, kinds) for cast, (_make, every) in CASTS.items() for kinds in every]


def problems_of(cast: str, kinds: tuple[str, str], choose: Callable[[int, int, bool], int], faults: int) -> list[str]:
    """Let one run happen and return what does not hold, with what was chosen; empty if everything does."""
    world = STANDING_IN.world = World(choose, faults)
    scene = Scene(world, kinds)
    try:
        CASTS[cast][0](scene)
        try:
            world.run()
        except Stuck:
            world.problems.append("somebody waits for what never happens")
        problems = [*world.problems, *_problems(scene)]
        return [*problems, *world.log, *map(str, scene.run.results)] if problems else []
    finally:
        scene.close()


def _problems(scene: Scene) -> Iterator[str]:
    run = scene.run
    for actor in run.world.actors:
        if actor.error:
            yield f"{actor.process.name} raised {actor.error!r}"
    if run.movers and not _complete(scene):
        yield "a move that was cut off cannot be completed"
    entries = scene.entries()
    for name, ids in run.made.items():
        if name == ROLE:
            continue
        if len(ids) > 1 + run.is_undone + run.mistakes:
            yield f"{name} was created {len(ids)} times"
        if name not in entries and not run.mistakes:
            yield f"{name} was created, and is not recorded"
    for name, (state, asset, _who) in entries.items():
        if state == DONE and not any(f'"{made}"' in asset for made in run.made.get(name, ())):
            yield f"{name} is recorded, and was not created"
    yield from _untrue(run)
    yield from _settled_by_others(scene, entries)


def _untrue(run: Run) -> Iterator[str]:
    for process, name, result in run.results:
        outcome, was_done = result["outcome"], run.sent.get((process, name), False)
        if outcome == ACCEPTED and not run.made.get(name):
            yield f"{process} says that {name} was accepted"
        if outcome in (NOT_SENT, REJECTED) and was_done:
            yield f"{process} says that {name} was {outcome}, and it was created"


def _settled_by_others(scene: Scene, entries: dict) -> Iterator[str]:
    """Who began last to work on it was killed: its entry says what became of that, or is in doubt."""
    dead = {actor.process.name for actor in scene.run.world.actors if actor.process.is_dead}
    for name, process in scene.run.begun.items():
        state, _asset, who = entries.get(name, (ABSENT, "", ""))
        if name == ROLE and process in dead and scene.run.sent.get((process, name)) and (state, who) != (DONE, process):
            if state in (DONE, ABSENT):
                yield f"{name}: {process} was killed while its request was in flight, and the ledger says {state}"


def _complete(scene: Scene) -> bool:
    """Complete what was cut off; return whether that succeeds or nothing was begun."""
    world = STANDING_IN.world = scene.run.world
    if actors.mark(scene.old) == "" and not actors.mark(scene.new):
        return True
    world.actors, world.faults_left, world._choose, world.now = [], 0, lambda ways, faults, is_forced: 0, 0.0
    actors.mover(scene.run, scene.old, scene.new)
    try:
        world.run()
    except Stuck:
        return False
    mover = world.actors[0]
    return mover.error is None and not scene.run.results.pop()[2].get("failed") and actors.mark(scene.new) == ""


class Random:
    """Chooses at random: mostly what is not special, and in half of the runs nobody is killed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self._switching = 0.02 + 0.4 * self._random()
        self._failing = 0.01 + 0.15 * self._random()
        self._spared = int(2 * self._random())  # 1: nobody is killed, which is the first of the faults

    def __call__(self, ways: int, faults: int, is_forced: bool) -> int:
        if faults > self._spared and self._random() < self._failing * (faults if faults > 2 else 0.3):  # the rare ones
            return ways + self._spared + int((faults - self._spared) * self._random())
        return int(ways * self._random()) if ways > 1 and (is_forced or self._random() < self._switching) else 0


class Path:
    """Chooses what is not special, but where a path deviates; remembers how many options there were."""

    def __init__(self, deviations: dict[int, int]) -> None:
        self._deviations, self.counts = deviations, []

    def __call__(self, ways: int, faults: int, is_forced: bool) -> int:
        self.counts.append(ways + faults)
        return self._deviations.get(len(self.counts) - 1, 0)


def every_path(most: int, run: Callable[[Path], None]) -> int:
    """Run all paths with so many deviations at most; return how many there are."""
    paths, done = [{}], 0
    while paths:
        deviations = paths.pop()
        path, done = Path(deviations), done + 1
        run(path)
        if len(deviations) < most:
            first = max(deviations, default=-1) + 1
            for at in range(first, len(path.counts)):
                paths += [{**deviations, at: option} for option in range(1, path.counts[at])]
    return done
