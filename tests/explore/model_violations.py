"""What must not hold in the world of the model."""

from __future__ import annotations

from collections.abc import Iterator

from .model_world import ABSENT, DONE, FILLED, FILLING, IN_USE, INTENT, LEASE, MOVED, Ledger, World


def violations(world: World) -> Iterator[str]:
    """Yield what must never hold."""
    keys = list(world.created.values())
    yield from (f"{key} exists twice" for key in sorted(set(keys)) if keys.count(key) > 1)
    yield from world.wrong
    used = [ledger.ledger_id for ledger in world.ledgers.values() if ledger.mark == IN_USE]
    if len(used) != len(set(used)):
        yield "two ledgers of one id are in use"
    for ledger in world.ledgers.values():
        yield from _violations_of_entries(world, ledger)
        target = world.ledgers.get(ledger.to)
        if ledger.mark in {MOVED, FILLED} and target and target.mark == IN_USE:
            yield from _violations_of_move(ledger, target)


def _violations_of_entries(world: World, ledger: Ledger) -> Iterator[str]:
    for entry in ledger.entries:
        if entry.state == INTENT and entry.url != ledger.url and not entry.body:
            yield f"a request for {entry.key} belongs to another URL"
        seen = world.first_seen.get(entry.revision, world.now)
        if world.running(entry) and world.now - seen >= LEASE:
            yield f"the lease of {entry.key} does not end"
        rows = [row for row in ledger.history if row.key == entry.key]
        said = [row.state for row in rows if row.began is None or row.state == INTENT]
        is_forgotten = said and said[-1] == ABSENT
        if is_forgotten and entry.key not in world.created.values() and entry.state == DONE:
            yield f"{entry.key} is recorded, and a person forgot it"


def _violations_of_move(source: Ledger, target: Ledger) -> Iterator[str]:
    if not set(source.history) <= set(target.history):
        yield "an outcome was written after the move"
    recorded = {row.key for row in target.history[len(source.history) :]}
    for entry in source.entries:
        if not target.find(entry.key) and entry.key not in recorded:
            yield f"{entry.key} was lost by the move"


def violations_at_end(world: World) -> Iterator[str]:
    """Yield what must not hold when nobody acts any more."""
    used = [ledger for ledger in world.ledgers.values() if _counts(world, ledger)]
    for asset, key in world.created.items():
        is_known = asset in world.told or any(ledger.find(key) for ledger in used)
        run = asset[0] if isinstance(asset, tuple) else asset
        if not is_known and not (run in world.taken_back and _is_refused(world)):
            yield f"{key} exists and nobody knows"
    for ledger in used:
        for entry in ledger.entries:
            body = world.bodies.get(entry.key, entry.body)
            if entry.state == DONE and entry.body != body and not _is_refused(world):
                yield f"{entry.key} is {body}, and recorded as {entry.body}"


def _is_refused(world: World) -> bool:
    """Whether a controller sends no more, since its ledger went back."""
    return not all(world.ledgers["A"].has(row) for row in world.notes.values())


def _counts(world: World, ledger: Ledger) -> bool:
    """Whether a ledger is in use, or the next move fills its target from it."""
    target = world.ledgers.get(ledger.to)
    is_given_up = ledger.mark == FILLED and target is None  # its text names the backup
    is_open = ledger.mark in {IN_USE, FILLING} or is_given_up
    return is_open or not target or target.mark == FILLING
