# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of a cast, and what must hold at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    REJECTED,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    DONE,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.tables import IN_USE

from . import actors
from .actors import Run
from .casts import CASTS, ROLE, Scene
from .scheduler import Stuck, World
from .standing_in import STANDING_IN


def problems_of(
    cast: str, kinds: tuple[str, str], choose: Callable[[int, int, bool], int], faults: int
) -> list[str]:
    """Let one run happen and return what does not hold, with what was chosen; empty if everything
    does.
    """
    world = STANDING_IN.world = World(choose, faults)
    scene = Scene(world, kinds)
    try:
        CASTS[cast][0](scene)
        try:
            world.run()
        except Stuck:
            world.problems.append("somebody waits for what never happens")
        world.end = None if world.is_cut else world.state()
        problems = [*world.problems, *(() if world.is_cut else _problems(scene))]
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
    yield from _unrecorded(run, entries)
    yield from _untrue(run)
    yield from _settled_by_others(scene, entries)


def _unrecorded(run: Run, entries: dict) -> Iterator[str]:
    for name, ids in run.made.items():
        if name != ROLE and len(ids) > 1 + run.mistakes:
            yield f"{name} was created {len(ids)} times"
        if name not in entries and name != ROLE and not run.mistakes:
            yield f"{name} was created, and is not recorded"
    for name, (state, asset, _who) in entries.items():
        if state == DONE and not any(f'"{made}"' in asset for made in run.made.get(name, ())):
            yield f"{name} is recorded, and was not created"


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
        was_cut_off = name == ROLE and process in dead and scene.run.sent.get((process, name))
        if was_cut_off and state in (DONE, ABSENT) and (state, who) != (DONE, process):
            yield f"{name}: {process} was killed while its request was in flight, and the ledger says {state}"


def _complete(scene: Scene) -> bool:
    """Complete what was cut off; return whether that succeeds or nothing was begun."""
    world = STANDING_IN.world = scene.run.world
    if scene.old.mark() == IN_USE and scene.new.mark() is None:
        return True
    world.actors, world.faults_left, world._choose, world.now = (
        [],
        0,
        lambda ways, faults, is_forced: 0,
        0.0,
    )
    world._has_met = None
    actors.mover(scene.run, scene.old, scene.new)
    try:
        world.run()
    except Stuck:
        return False
    if world.actors[0].error:
        return False
    return not scene.run.results.pop()[2].get("failed") and scene.new.mark() == IN_USE
