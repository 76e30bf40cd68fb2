# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The casts that are explored."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    UNKNOWN,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import tables
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import DONE
from support import CREATE, UPDATE

from . import actors
from .actors import URL, Run, wanted
from .places import PLACES, Place
from .scheduler import World

KINDS = ("file", "server")
ROLE, WEB = "role-0001", wanted(CREATE, "web")


class Scene:
    """The places and the actors of one run."""

    def __init__(self, world: World, kinds: tuple[str, str]) -> None:
        self.run = Run(world)
        self.old, self.new = (
            Place(world, name, kind) for name, kind in zip(("/old.db", "/new.db"), kinds)
        )
        PLACES.update({place.name: place for place in (self.old, self.new)})

    def fill(self, name: str = "old", state: str = DONE) -> None:
        """Make the old ledger, with an entry."""
        for statement in tables.CREATE:
            self.old.data.execute(statement.format(number="INTEGER PRIMARY KEY AUTOINCREMENT"))
        mark = ("1", tables.IN_USE, "", "", "", 0, "")
        self.old.data.execute(tables.INSERT_MARK, (tables.SCHEMA_VERSION, *mark))
        asset = f'{{"id": "{name}-1"}}' if state == DONE else "{}"
        values = (URL, CREATE, name, state, f'{{"name": "{name}"}}', asset, "", "", "", "", "", 1)
        self.old.data.execute(tables.INSERT, (*values, URL))
        if state == DONE:
            self.run.made[name] = [f"{name}-1"]

    def move(self) -> None:
        """A move, and another one that completes it; meanwhile the old ledger is used, and the new
        one.
        """
        self.fill()
        actors.mover(self.run, self.old, self.new)
        actors.mover(self.run, self.old, self.new, tuple(self.run.movers))
        self.run.world.on_commit = self.watch

    def move_twice(self) -> None:
        """Two moves at once."""
        self.fill()
        for _mover in range(2):
            actors.mover(self.run, self.old, self.new)
        self.run.world.on_commit = self.watch

    def watch(self) -> None:
        """At no moment are both in use, and none is in use that lacks what the other one has."""
        marks = [place.mark() for place in (self.old, self.new)]
        if marks == [tables.IN_USE, tables.IN_USE]:
            self.run.world.problems.append("both ledgers can be used")
        if marks[1] == tables.IN_USE and self.new.data.execute(
            tables.COUNT.format("entry")
        ).fetchone() == (0,):
            self.run.world.problems.append("the new ledger can be used, and is empty")

    def entries(self) -> dict[str, tuple[str, str, str]]:
        """Return state, asset and who wrote it of each entry, in the ledger that is used."""
        found = {}
        for place in (self.old, self.new):
            if place.mark() == tables.IN_USE:
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
    """The second update looked before the first one began, and gets the lock that went with the
    session.
    """
    run = scene.run
    run.is_lost, run.seconds = False, 5.0

    def is_looking() -> bool:
        return len(run.world.actors) == 1 or run.world.actors[1].ready

    actors.task(run, scene.old, wanted(UPDATE, ROLE), when=is_looking)
    run.doomed = actors.task(
        run, scene.old, wanted(UPDATE, ROLE, login=False), begins=lambda: run.is_lost
    )


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
    actors.task(scene.run, scene.new, WEB, when=lambda: scene.new.mark() is not None)


def _move_and_list(scene: Scene) -> None:
    actors.fleet(scene.run, scene.old, "web", "db")
    scene.move()


def _two_moves_and_task(scene: Scene) -> None:
    actors.task(scene.run, scene.old, WEB)
    scene.move_twice()


POOLED = (("pooler", "pooler"), ("file", "pooler"))
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
    "two moves and a task": (_two_moves_and_task, (*MOVING, *POOLED)),
}
SETTINGS = [(cast, kinds) for cast, (_make, every) in CASTS.items() for kinds in every]
