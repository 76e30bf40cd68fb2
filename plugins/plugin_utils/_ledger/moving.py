# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves a ledger to a new place, so that at most one of the two is in use, wherever the move is cut
off.

1. The source goes from in use to moving. Requests in flight end, and its table of entries is renamed, so that no open
   session reads or writes it.
2. One transaction creates and fills the target, which is then filling.
3. The source goes from moving to moved. This is the commit: it is never in use again.
4. The target goes from filling to in use.

Each attempt has a name of its own, and each step takes effect only if the mark is still the one
that this attempt left. The target's mark is read while no later attempt has begun, so that this one
cannot replace what a later one has filled. Before step 3 an error puts the source back in use; the
rest at the target is replaced by the next move of the ledger.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing, suppress
from typing import Callable, Iterator

from ...module_utils._errors import NOT_SENT, ServicesError
from . import tables as sql
from .entries import Key, Kind, LedgerError, Mark, Unanswered
from .location import no_ledger_yet, open_ledger
from .store import Ledger, lock_number

_ENTRY = "infrastructure_services_entry"
_TURN = Key("", "ledger", "move")  # the lock of the task that moves a ledger


def open_source(location: str, read_only: bool) -> Ledger:
    """Return the ledger to move, which is not created if there is none; raise LedgerError or
    MissingLibrary.
    """
    with closing(open_ledger(location, read_only=True, moving=True)) as found:
        if found.is_new:
            raise LedgerError(f"{no_ledger_yet(found)}, so nothing was moved. Check the location")
    return open_ledger(location, read_only, moving=True)


def move_ledger(source: Ledger, open_target: Callable[[bool], Ledger], check_mode: bool) -> dict:
    """Move the source to the target and return the result of ledger_move; raise ServicesError.

    `source`: opened with `moving`; in check mode it may be opened for reading. `open_target`: opens
    the target in the same way, for reading only if its argument is true.
    """
    if not check_mode:
        _wait_for_turn(source)
    is_complete, at_target, where = _look(source, open_target, check_mode)
    if not (is_complete or check_mode):
        with closing(open_target(False)) as target:
            _move(source, target, at_target)
    return dict(
        changed=not is_complete,
        outcome=NOT_SENT,
        counts={
            "entries": _count(source, "moved" if _is_closed(source) else "entry"),
            "history": _count(source, "history"),
        },
        ledger=source.where,
        to=where,
        ledger_id=source.ledger_id,
    )


def _wait_for_turn(source: Ledger) -> None:
    number = lock_number(_TURN)
    if not source.database.lock(number, wait=False):
        source.say_waiting([_TURN], None)
        source.database.lock(number, wait=True)


def _look(
    source: Ledger, open_target: Callable[[bool], Ledger], check_mode: bool
) -> tuple[bool, Mark, str]:
    """Return whether the move is complete, the mark of the target, and its name in messages.

    Creates nothing. Raises ServicesError for a move that is not possible, with the source in use
    again.
    """
    at_source = source.mark()
    try:
        with closing(open_target(True)) as target:
            at_target = target.mark()
            is_complete = at_source.state == sql.MOVED and _was_moved_to(
                target, at_source, at_target
            )
            if not is_complete:
                _require_possible(source, at_source, target, at_target)
            return is_complete, at_target, target.where
    except ServicesError:
        if not check_mode:
            _reopen(source, at_source)
        raise


def _was_moved_to(target: Ledger, at_source: Mark, at_target: Mark) -> bool:
    """Return whether nothing is left to do; raise LedgerError if the ledger was moved elsewhere, or
    moved on.
    """
    is_this_move = (at_target.ledger_id, at_target.move) == (at_source.ledger_id, at_source.move)
    if is_this_move and at_target.state == sql.FILLING:
        return False
    if not is_this_move and at_target.state != sql.MOVED:
        raise LedgerError(
            f"ledger: it was moved to {at_source.place}, which is the ledger now. Use that one"
        )
    target.require_in_use()
    return True


def _require_possible(source: Ledger, at_source: Mark, target: Ledger, at_target: Mark) -> None:
    """Raise LedgerError unless the target is empty, or the rest of an earlier attempt with this
    ledger.
    """
    if at_source.state == sql.FILLING:
        source.require_in_use()
    if at_target.state == "":
        return
    if at_target.ledger_id != at_source.ledger_id:
        problem = "is another ledger already, and ledgers are not merged"
    elif at_target.state == sql.MOVED:
        problem = f"was moved to {at_target.place}, and a ledger is never used again where it was"
    elif at_target.state == sql.FILLING:
        return
    else:
        problem = f"is {source.where} itself under another name, or a copy of it"
    raise LedgerError(
        f"ledger: {target.where} {problem}. Nothing was moved. Give a place where there is no ledger"
    )


def _move(source: Ledger, target: Ledger, at_target: Mark) -> None:
    """Carry out the steps that are left; raise LedgerError, with the source in use again unless it
    was committed.
    """
    at_source = source.mark()
    if at_source.state != sql.MOVED:
        moving = Mark(source.ledger_id, sql.MOVING, os.urandom(8).hex(), _place(target))
        is_committed = False
        try:
            _set_mark(source, at_source, moving)
            _close(source, moving)
            _fill(source, target, moving, at_target)
            _set_mark(source, moving, moving._replace(state=sql.MOVED))
            is_committed = True
        finally:
            if not is_committed:
                _reopen(source, moving)
        at_source = moving
    _put_in_use(target, Mark(source.ledger_id, sql.FILLING, at_source.move))


def _put_in_use(target: Ledger, filling: Mark) -> None:
    """Put the target in use after the commit, unless another task has done that; raise LedgerError."""
    in_use = filling._replace(state=sql.IN_USE)
    counts = target.database.write([_marking(filling, in_use)], Kind.EDIT)
    if counts == [0] and target.mark() != in_use:
        raise _overtaken(target)


def _set_mark(ledger: Ledger, before: Mark, after: Mark) -> None:
    """Replace the mark of a ledger; raise LedgerError if another task has changed it."""
    if 0 in ledger.database.write([_marking(before, after)], Kind.EDIT):
        raise _overtaken(ledger)


def _marking(before: Mark, after: Mark) -> tuple[str, tuple]:
    """Return the statement that replaces a mark, with its values."""
    values = (after.state, after.move, after.place, before.ledger_id, before.state, before.move)
    return sql.SET_MARK, values


def _overtaken(ledger: Ledger) -> LedgerError:
    return LedgerError(
        f"ledger: {ledger.where}: another task is moving a ledger from or to it at the same time. This task moved"
        " nothing. Run it again, which completes the move"
    )


def _close(source: Ledger, moving: Mark) -> None:
    """Wait for requests in flight, then rename the table of entries; raise LedgerError."""
    while not _is_closed(source):
        in_flight = source.database.execute(sql.IN_FLIGHT)
        keys = sorted(Key(*row[:3]) for row in in_flight)
        known = "".join(f",{row[3]}," for row in in_flight)
        with ExitStack() as held:
            for key in keys:
                held.callback(source.release, key)
                source.lock(key, wait=True)
            # Has no effect if a request began in the last moment: then that one is waited for as
            # well.
            statements = [
                _marking(moving, moving),
                (sql.CLOSE, ()),
                (sql.ONLY_THESE_IN_FLIGHT, (known, known)),
            ]
            source.database.write(statements, Kind.EDIT)
        if source.mark() != moving:
            raise _overtaken(source)


def _is_closed(source: Ledger) -> bool:
    return _ENTRY not in source.database.tables()


def _fill(source: Ledger, target: Ledger, moving: Mark, at_target: Mark) -> None:
    """Create and fill the target, in place of the rest of an earlier attempt; raise LedgerError."""
    while not _is_filled(source, target, moving, at_target):
        at_target = target.mark()  # what an attempt left that this one has taken over from
        if source.mark() != moving:
            raise _overtaken(source)
        _require_possible(source, moving, target, at_target)


def _is_filled(source: Ledger, target: Ledger, moving: Mark, at_target: Mark) -> bool:
    """Fill the target; return False if its mark is no longer `at_target`, so that nothing was
    written.
    """
    filling = Mark(source.ledger_id, sql.FILLING, moving.move, _place(source))
    rest = []
    if at_target.state == sql.FILLING:
        rest = [_marking(at_target, at_target), *((statement, ()) for statement in sql.DROP)]
    try:
        return target.create(sql.INSERT_MARK, filling, before=rest, after=_copies(source))
    except Unanswered:
        raise
    except LedgerError:
        if target.mark() == at_target:
            raise
        return False


def _reopen(source: Ledger, moving: Mark) -> None:
    """Put a source back in use whose mark is still this one; if that fails, running the move again
    completes it.
    """
    if moving.state != sql.MOVING:
        return
    with suppress(LedgerError):
        opening = [(sql.OPEN, ())] if _is_closed(source) else []
        marking = _marking(moving, Mark(state=sql.IN_USE, move=moving.move))
        source.database.write([marking, *opening], Kind.EDIT)


def _copies(source: Ledger) -> Iterator[tuple[str, tuple]]:
    """Yield the statements that copy all entries and the whole history, with their values."""
    for page in _pages(source, sql.ENTRIES_AFTER, ("", "", "")):
        yield sql.COPY_ENTRIES.format(_placeholders(page)), _flat(page)
    for page in _pages(source, sql.HISTORY_AFTER, (0,)):
        rows = [row[1:] for row in page]  # the target numbers them itself
        yield sql.COPY_HISTORY.format(_placeholders(rows)), _flat(rows)


def _pages(source: Ledger, statement: str, after: tuple) -> Iterator[list[tuple]]:
    """Yield the rows of a table, some at a time; `after`: the key before the first one."""
    while page := source.database.execute(statement, after):
        yield page
        after = page[-1][: len(after)]


def _placeholders(rows: list[tuple]) -> str:
    one = ", ".join("?" * len(rows[0]))
    return ", ".join([f"({one})"] * len(rows))


def _flat(rows: list[tuple]) -> tuple:
    return tuple(value for row in rows for value in row)


def _count(source: Ledger, table: str) -> int:
    return source.database.execute(sql.COUNT.format(table))[0][0]


def _place(ledger: Ledger) -> str:
    """Return where a ledger is, without a password; several may be in one database."""
    if ledger.file:
        return ledger.file
    schema = ledger.database.execute("SELECT current_schema()")[0][0]
    return f"{ledger.where}, schema {schema}"
