"""Who acts together, and what holds at the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial

from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    REJECTED,
    UNKNOWN,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sql
from support import UPDATE
from support.turns import World

from .actors import NAME, OTHER, Run, change_url, forget, move, restore, send, send_there, settle

Act = Callable[[Run], None]
UPDATING = partial(send, resource=UPDATE)
SUSPENDED = partial(send, is_suspended=True)
APPROVED = partial(send, approved_rows={})
IMPATIENT = partial(settle, is_patient=False)
SLOW = partial(settle, is_slow=True)
MISTAKEN = partial(settle, is_looking=False)
AT_TARGET = partial(send_there, at="B")
TO_C = partial(move, to="C")

CASTS: dict[str, tuple[Act, ...]] = {
    "two tasks": (send, send),
    "task, user, task": (send, settle, send),
    "task, user who looks at once, task": (send, IMPATIENT, send),
    "two updates": (UPDATING, UPDATING),
    "task that is suspended, user, task": (SUSPENDED, settle, send),
    "task that is suspended, slow user": (SUSPENDED, SLOW),
    "two runs with one approved plan, user who forgets": (APPROVED, forget, APPROVED),
    "task, user who does not look": (send, MISTAKEN),
    "task, restored backup": (send, restore),
    "task, move, task at the target": (send, move, AT_TARGET),
    "task, two moves to one place": (send, move, move),
    "two moves to two places": (move, TO_C),
    "task, user who does not look, move": (send, MISTAKEN, move),
    "task, new URL": (send, change_url),
}
# Seconds for which a lost write is tried again: 0 as with SQLite, where no answer is lost; some
# time as with PostgreSQL; so little that a task gives up at once.
DATABASES = {"SQLite": 0, "PostgreSQL": 10, "PostgreSQL that stays away": 1e-9}
_MOVES = (move, TO_C)
_LOSING = (MISTAKEN, restore)


def problems_of(
    cast: tuple[Act, ...], choose: Callable[[int, int], int], faults: int, **how: object
) -> list[str]:
    """Run a cast and return what does not hold; `how`: as of Run."""
    with closing(Run(World(choose, faults), **how)) as run:
        return _problems(cast, run)


def _problems(cast: tuple[Act, ...], run: Run) -> list[str]:
    world = run.world
    is_moving = any(act in _MOVES for act in cast)
    if is_moving or change_url in cast:
        send(run, name=OTHER)
    for act in cast:
        world.add(getattr(act, "func", act).__name__, partial(act, run))
    world.run()
    errors = [f"{actor.name}: {actor.error!r}" for actor in world.actors if actor.error]
    if world.is_stuck or errors:
        return ["nobody goes on"] * world.is_stuck + errors
    found = [*run.problems, *_false_outcomes(run), *_in_use(run)]
    if APPROVED in cast and len(run.assets) > 1:
        found.append("an approved plan had two effects")
    if is_moving:
        found += _incomplete(run)
    return [*found, *_lost(run, any(act in _LOSING for act in cast)), *_invented(run)]


def _false_outcomes(run: Run) -> list[str]:
    """What tasks say of their requests, and is not so."""
    done = {(asset.by, asset.name) for asset in run.assets}
    overwritten = {asset.name for asset in run.assets if asset.id == asset.name}
    return [
        f"{told.who} says {told.result.outcome} of {told.name}"
        for told in run.told
        for is_done in [(told.who, told.name) in done]
        if (is_done and told.result.outcome in (NOT_SENT, REJECTED) and told.result.failed)
        or (told.result.changed and not is_done and told.name not in overwritten)
    ]


def _in_use(run: Run) -> list[str]:
    used = [name for name, place in run.places.items() if place.state() == sql.IN_USE]
    return [f"in use: {used}"] if len(used) > 1 else []


def _incomplete(run: Run) -> list[str]:
    """Run the moves again, which completes the one that was begun, unless a doubt forbids it."""
    if run.places["A"].state() == sql.IN_USE:
        return []
    for to in ("B", "C"):
        move(run, to)
    found = _in_use(run)
    used = [name for name, place in run.places.items() if place.state() == sql.IN_USE]
    if not used:
        return ["no ledger is in use after a move"]
    if not run.places[used[0]].entry(OTHER):
        return [f"{used[0]} lacks entries"]
    return found


def _lost(run: Run, may_lose: bool) -> list[str]:
    """What exists, and no ledger that is in use knows, at least as a doubt."""
    used = [place for place in run.places.values() if place.state() == sql.IN_USE]
    found = []
    for asset in run.assets:
        entry = used[0].entry(asset.name) if used else None
        is_known = entry and (entry.state != "done" or entry.asset_id == asset.id)
        if asset.exists and not is_known and not _is_excused(run, asset.by, may_lose):
            found.append(f"{asset.name} of {asset.by} is lost: {entry}")
    return found


def _is_excused(run: Run, who: str, may_lose: bool) -> bool:
    """Whether a user or a backup removed an entry, and its task could not record it or said so."""
    actors = [actor for actor in run.world.actors if actor.name == who]
    is_told = any(
        told.who == who
        and told.result.failed
        and told.result.outcome in (ACCEPTED, UNKNOWN)
        and told.place.state() != sql.IN_USE
        for told in run.told
    )
    return may_lose and (is_told or any(each.is_dead or each.has_lost_a_write for each in actors))


def _invented(run: Run) -> list[str]:
    """What a ledger knows, and was never there."""
    ids = {asset.id for asset in run.assets}
    return [
        f"{place.name} has {name} as {entry.asset_id}"
        for place in run.places.values()
        for name in (NAME, OTHER)
        for entry in [place.entry(name)]
        if entry and entry.state == "done" and entry.asset_id not in ids
    ]
