# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves a ledger so that at most one of the two is in use, whenever it is interrupted.

1. The source goes from in use to moving. Requests in flight end, and its table of entries is
   renamed, so that no open session reads or writes it.
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
from itertools import chain
from typing import Callable, Iterator, Sequence

from ...module_utils._errors import NOT_SENT, ServicesError
from ...module_utils._result import Returned
from . import tables as sql
from .database import Row, Statement, Value
from .entries import Key, Kind, LedgerError, Mark
from .location import no_ledger_yet, open_ledger
from .store import Ledger, lock_number

_TURN = Key("", "ledger", "move")  # the lock of the task that moves a ledger


def open_source(location: str, read_only: bool) -> Ledger:
    """Return the ledger to move, which must exist; raise LedgerError or MissingLibrary."""
    with closing(open_ledger(location, read_only=True, moving=True)) as found:
        if found.is_new:
            raise LedgerError(f"{no_ledger_yet(found)}. Check the location")
    return open_ledger(location, read_only, moving=True)


def move_ledger(
    source: Ledger, open_target: Callable[[bool], Ledger], check_mode: bool
) -> Returned:
    """Move a ledger and return the result of ledger_move; raise ServicesError.

    `source`: opened with `moving`; in check mode it may be opened for reading. `open_target`: opens
    the target in the same way, for reading only if its argument is true.
    """
    if not check_mode:
        _wait_for_turn(source)
    at_source = source.mark()
    try:
        with closing(open_target(True)) as target:
            at_target = target.mark()
            where = target.where
            is_complete = _is_complete(source, at_source, target, at_target)
    except ServicesError:
        if not check_mode:
            _reopen(source, at_source)
        raise
    if not (is_complete or check_mode):
        with closing(open_target(False)) as target:
            _move(source, target, at_target)
    entries = "moved" if _is_closed(source) else "entry"
    return dict(
        changed=not is_complete,
        outcome=NOT_SENT,
        counts={"entries": _count(source, entries), "history": _count(source, "history")},
        ledger=source.where,
        to=where,
        ledger_id=source.ledger_id,
    )


def _wait_for_turn(source: Ledger) -> None:
    """Wait until no other task moves this ledger."""
    number = lock_number(_TURN)
    if not source.database.lock(number, wait=False):
        source.database.waiting.show([_TURN], None)
        source.database.lock(number, wait=True)


def _is_complete(source: Ledger, at_source: Mark, target: Ledger, at_target: Mark) -> bool:
    """Return whether nothing is left to do; raise LedgerError for a move that is not possible."""
    if at_source.state != sql.MOVED:
        _require_possible(source, at_source, target, at_target)
        return False
    is_of_this_move = (
        at_target.ledger_id == at_source.ledger_id and at_target.move == at_source.move
    )
    if is_of_this_move and at_target.state == sql.FILLING:
        return False
    if not is_of_this_move and at_target.state != sql.MOVED:
        raise LedgerError(
            f"ledger: it was moved to {at_source.place}, which is the ledger now. Use that one"
        )
    target.require_in_use()
    return True


def _require_possible(source: Ledger, at_source: Mark, target: Ledger, at_target: Mark) -> None:
    """Raise LedgerError unless the target is empty, or the rest of an attempt with this ledger."""
    if at_source.state == sql.FILLING:
        source.require_in_use()
    is_same = at_target.ledger_id == at_source.ledger_id
    if at_target.state == "" or (is_same and at_target.state == sql.FILLING):
        return
    problem = f"is {source.where} itself under another name, or a copy of it"
    if at_target.ledger_id != at_source.ledger_id:
        problem = "is another ledger already, and ledgers are not merged"
    elif at_target.state == sql.MOVED:
        problem = f"was moved to {at_target.place}, and a ledger is never used again where it was"
    raise LedgerError(f"ledger: {target.where} {problem}. Give a place where there is no ledger")


def _move(source: Ledger, target: Ledger, at_target: Mark) -> None:
    """Carry out the steps that are left; raise LedgerError."""
    at_source = source.mark()
    if at_source.state != sql.MOVED:
        at_source = _carry_over(source, at_source, target, at_target)
    in_use = Mark(source.ledger_id, sql.IN_USE, at_source.move)
    filling = in_use._replace(state=sql.FILLING)
    if 0 in target.database.write([_marking(filling, in_use)], Kind.EDIT):
        target.require_in_use()  # as it is where another task has taken this step


def _carry_over(source: Ledger, at_source: Mark, target: Ledger, at_target: Mark) -> Mark:
    """Take the steps up to the commit and return the source's mark; an error reopens the source."""
    moving = Mark(source.ledger_id, sql.MOVING, os.urandom(8).hex(), target.database.place())
    moved = moving._replace(state=sql.MOVED)
    with ExitStack() as undo:
        undo.callback(_reopen, source, moving)
        _set_mark(source, at_source, moving)
        _close(source, moving)
        _fill(source, target, moving, at_target)
        _set_mark(source, moving, moved)
        undo.pop_all()
    return moved


def _set_mark(ledger: Ledger, before: Mark, after: Mark) -> None:
    """Replace the mark of a ledger; raise LedgerError if another task has changed it."""
    if 0 in ledger.database.write([_marking(before, after)], Kind.EDIT):
        raise _overtaken(ledger)


def _marking(before: Mark, after: Mark) -> Statement:
    """Return the statement that replaces a mark."""
    values = (after.state, after.move, after.place, before.ledger_id, before.state, before.move)
    return sql.SET_MARK, values


def _overtaken(ledger: Ledger) -> LedgerError:
    return LedgerError(
        f"ledger: {ledger.where}: another task is moving a ledger from or to it at the same time."
        " This task moved nothing. Run it again, which completes the move"
    )


def _close(source: Ledger, moving: Mark) -> None:
    """Wait for requests in flight, then rename the table of entries; raise LedgerError."""
    while not _is_closed(source):
        in_flight = source.database.execute(sql.IN_FLIGHT)
        known = "".join(f",{row[3]}," for row in in_flight)
        with ExitStack() as locks:
            for key in sorted(Key(*row[:3]) for row in in_flight):
                locks.callback(source.release, key)
                source.lock(key, wait=True)
            # Has no effect if a request began in the last moment, which is then waited for as well.
            only_these = (sql.ONLY_THESE_IN_FLIGHT, (known, known))
            statements = [_marking(moving, moving), (sql.CLOSE, ()), only_these]
            source.database.write(statements, Kind.EDIT)
        if source.mark() != moving:
            raise _overtaken(source)


def _is_closed(source: Ledger) -> bool:
    return sql.ENTRY_TABLE not in source.database.tables()


def _reopen(source: Ledger, moving: Mark) -> None:
    """Put a source that this move has closed back in use; if that fails, the next move does."""
    if moving.state != sql.MOVING:
        return
    with suppress(LedgerError):
        statements = [_marking(moving, Mark(state=sql.IN_USE, move=moving.move))]
        if _is_closed(source):
            statements.append((sql.OPEN, ()))
        source.database.write(statements, Kind.EDIT)


def _fill(source: Ledger, target: Ledger, moving: Mark, at_target: Mark) -> None:
    """Create and fill the target, in place of the rest of an earlier attempt; raise LedgerError."""
    before: list[Statement] = []
    if at_target.state == sql.FILLING:
        before.append(_marking(at_target, at_target))
        before += [(statement, ()) for statement in sql.DROP]
    filling = Mark(source.ledger_id, sql.FILLING, moving.move, source.database.place())
    if not target.create(filling, before, _copies(source)):
        raise _overtaken(target)


def _copies(source: Ledger) -> Iterator[Statement]:
    """Yield the statements that copy all entries and the whole history."""
    for rows in _pages(source, sql.ENTRIES_AFTER, ("", "", "")):
        yield _insertion(sql.COPY_ENTRIES, rows)
    for rows in _pages(source, sql.HISTORY_AFTER, (0,)):
        # The target numbers the rows itself.
        yield _insertion(sql.COPY_HISTORY, [row[1:] for row in rows])


def _pages(source: Ledger, statement: str, after: Sequence[Value]) -> Iterator[list[Row]]:
    """Yield the rows of a table, some at a time; `after`: the key before the first one."""
    rows = source.database.execute(statement, after)
    while rows:
        yield rows
        rows = source.database.execute(statement, rows[-1][: len(after)])


def _insertion(statement: str, rows: list[Row]) -> Statement:
    marks = ", ".join("?" * len(rows[0]))
    some = statement.format(", ".join([f"({marks})"] * len(rows)))
    return some, tuple(chain.from_iterable(rows))


def _count(source: Ledger, table: str) -> int:
    ((count,),) = source.database.execute(sql.COUNT.format(table))
    return int(count)
