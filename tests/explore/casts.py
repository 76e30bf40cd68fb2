"""Who acts together, and what holds at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    REJECTED,
    UNKNOWN,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Write
from support import UPDATE
from support.turns import World

from .actors import (
    NAME,
    OTHER,
    Asset,
    Run,
    adopt,
    change_url,
    forget,
    interrupt,
    move,
    move_on,
    plan,
    remove,
    replace,
    restore,
    send,
    send_list,
    send_there,
    set_clock,
    settle,
    settle_report,
)
from .places import Place

Act = Callable[[Run], None]
UPDATING = partial(send, resource=UPDATE)
BEFORE = partial(send, name=OTHER)
APPROVED = partial(send_list, approved=True)
LISTS = partial(send_list, names=f"{NAME} {OTHER}"), partial(send_list, names=f"{OTHER} {NAME}")
IMPATIENT = partial(settle, is_patient=False)
MISTAKEN = partial(settle, is_looking=False)


def lose(run: Run) -> None:
    """A task, of which a backup that was put back has nothing."""
    backup = run.places["A"].copy()
    send(run)
    run.places["A"].put_back(backup)
    run.restored = len(run.told)


class Cast(NamedTuple):
    """Who acts, after what was before."""

    acts: Sequence[Act]
    before: Act | None = None


CASTS = {
    "two tasks": Cast([send, send]),
    "three tasks": Cast([send, send, send]),
    "task, person, task": Cast([send, settle, send]),
    "task, person who looks at once, task": Cast([send, IMPATIENT, send]),
    "task, two persons, task": Cast([send, settle, settle, send]),
    "task that loses the answer of its begin, person, task": Cast(
        [partial(send, loses=Write.BEGIN), settle, send]
    ),
    "list that loses the answer of its outcome, person who forgets": Cast(
        [partial(send_list, loses=Write.OUTCOME), forget]
    ),
    "update": Cast([UPDATING]),
    "two updates": Cast([UPDATING, UPDATING]),
    "two updates of a known asset": Cast([UPDATING, UPDATING], UPDATING),
    "two lists": Cast(LISTS),
    "task, Ctrl-C, task": Cast([send, interrupt, send]),
    "list, Ctrl-C, task": Cast([LISTS[0], interrupt, send]),
    "task, clock set back, person, task": Cast([send, set_clock, settle, send]),
    "one approved plan twice, person who forgets": Cast([APPROVED, forget, APPROVED], plan),
    "task, person who does not look": Cast([send, MISTAKEN]),
    "two persons who adopt one machine": Cast(
        [partial(adopt, name=NAME), partial(adopt, name="web02")], BEFORE
    ),
    "task and person who adopt one machine": Cast(
        [partial(send, identifier="vm-0"), partial(adopt, name="web02")], BEFORE
    ),
    "task, new URL, task": Cast([send, change_url]),
    "task, another ledger": Cast([send, replace]),
    "backup, task, task": Cast([partial(restore, is_early=True), send, send]),
    "task, backup, task": Cast([send, restore, send]),
    "list, backup, task": Cast([send_list, restore, send]),
    "list, person who forgets, backup": Cast([send_list, forget, restore]),
    "list, backup, report, task": Cast([send_list, restore, settle_report, send]),
    "backup, other controller, person, task": Cast(
        [partial(send, name=OTHER, controller="d"), partial(settle, controller="c"), send], lose
    ),
    "task, move, task at the target": Cast([send, move, send_there], BEFORE),
    "task, person who does not look, move": Cast([send, MISTAKEN, move], BEFORE),
    "two moves to one place, person and task there": Cast(
        [move, move, partial(forget, at="B", name=OTHER), partial(send_there, name=OTHER)], BEFORE
    ),
    "two moves to two places, task": Cast([move, partial(move, to="C"), send], BEFORE),
    "two moves, reservation removed": Cast([move, move, remove], BEFORE),
    "moved, moved on, removed, moved again": Cast([move, move_on, remove, move], BEFORE),
}


def problems_of(
    cast: Cast, choose: Callable[[int, int], int], faults: int, **how: object
) -> list[str]:
    """Run a cast and return what does not hold; `how`: as of Run."""
    run = Run(World(choose, faults), **how)
    with run.open():
        if cast.before:
            cast.before(run)
        for act in cast.acts:
            run.world.add(getattr(act, "func", act).__name__, partial(act, run))
        run.world.run()
        problems = list(_problems(cast, run))
        return [*problems, *run.world.log] if problems else []


def _problems(cast: Cast, run: Run) -> Iterator[str]:
    yield from (f"{each.name}: {each.error!r}" for each in run.world.actors if each.error)
    if run.world.is_stuck:
        yield "nobody goes on"
        return
    yield from run.problems
    yield from _false_outcomes(run)
    if cast.before is plan and len(run.assets) > 1:
        yield "an approved plan had two effects"
    yield from _incomplete(run)
    yield from _lost(run)
    yield from _invented(run)


def _false_outcomes(run: Run) -> Iterator[str]:
    """What tasks say of their requests, and is not so."""
    done = {(asset.by, asset.name) for asset in run.assets}
    overwritten = {asset.name for asset in run.assets if asset.id == asset.name}
    for told in run.told:
        result, is_done = told.result, (told.who, told.name) in done
        if "unexpected" in str(result.msg):
            yield f"{told.who}: {result.msg}"
        if is_done and result.outcome in (NOT_SENT, REJECTED) and result.failed:
            yield f"{told.who} says {result.outcome} of {told.name}, which exists"
        if result.changed and result.request and not is_done and told.name not in overwritten:
            yield f"{told.who} says {result.outcome} of {told.name}, which is not there"


def _incomplete(run: Run) -> Iterator[str]:
    """Run the moves again, which completes the one that was begun, unless a doubt forbids it."""
    if run.places["A"].header("state") != sql.IN_USE:
        for at, to in ("AB", "AC", "BC"):
            move(run, to, at)
    used = _in_use(run)
    if len(used) != 1:
        yield f"in use: {[place.name for place in used]}"
    elif run.existing(OTHER) and not used[0].entries():
        yield f"{used[0].name} lacks entries"


def _in_use(run: Run) -> list[Place]:
    """Return the ledgers that count: in use, or complete where somebody deleted the target."""
    places = run.places.values()
    used = [place for place in places if place.header("state") == sql.IN_USE]
    filled = [place for place in places if place.header("state") == sql.FILLED]
    return used or [each for each in filled if not _has_target(run, each)]


def _has_target(run: Run, source: Place) -> bool:
    target = run.places[source.header("place")]
    is_opened = target.header("state") not in ("", sql.FILLING)
    return is_opened or target.header("reservation") == source.header("reservation")


def _lost(run: Run) -> Iterator[str]:
    """What exists, and no ledger that is in use knows, at least as a doubt."""
    used = _in_use(run)
    for asset in run.assets:
        entry = used[0].entry(asset.name) if used else None
        is_known = entry and (entry.state != "done" or entry.asset_id in (asset.id, "vm-0"))
        if asset.exists and not is_known and not _is_excused(run, asset):
            yield f"{asset.name} of {asset.by} is lost: {entry}"


def _is_excused(run: Run, asset: Asset) -> bool:
    """Whether a user or a backup removed an entry, and its task could not record it or said so."""
    for number, told in enumerate(run.told):
        if (told.who, told.name) == (asset.by, asset.name):
            is_told = told.result.failed and told.result.outcome in (ACCEPTED, UNKNOWN)
            is_before = run.restored is not None and number < run.restored
            if is_told or is_before or (run.restored is not None and not told.has_looked):
                return True
    processes = [actor.process for actor in run.world.actors]
    return any(
        each.name == asset.by and (each.is_dead or each.has_lost_a_write) for each in processes
    )


def _invented(run: Run) -> Iterator[str]:
    """What a ledger knows, and was never there, or was forgotten."""
    ids = {asset.id for asset in run.assets}
    for place in _in_use(run):
        done = [entry for entry in place.entries() if entry.state == "done"]
        yield from (
            f"{entry.name} is {entry.asset_id}" for entry in done if entry.asset_id not in ids
        )
        if len(done) != len({entry.asset_id for entry in done}):
            yield "two entries have one id"
        for entry in done:
            if entry.name in run.forgotten and not run.existing(entry.name):
                yield f"{entry.name} is recorded, and was forgotten"
