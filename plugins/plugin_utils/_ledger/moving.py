# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves a ledger to another place, so that at no moment both can be used, wherever the move is cut off.

1. The target is marked FROM: nobody else uses it any more.
2. The source is marked TO: nothing is begun in it, and what is in flight ends.
3. Its table of entries gets another name, so that no session that is open can read or write it.
4. One transaction copies everything and takes the mark from the target.

The marks say where to go on after a move was cut off.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from typing import Iterator

from ...module_utils._errors import NOT_SENT, listing
from . import tables as sql
from .entries import FROM, TO, Key, LedgerError, Mark, Unanswered
from .location import no_ledger_yet, open_ledger
from .store import Ledger

_ENTRY, _CLOSED = "infrastructure_services_entry", "moved"  # the table of entries, and its name once it is closed
_TURN = Key("", "", "ledger_move")  # the lock of the one who moves


def moved(source: Ledger, target: Ledger, check_mode: bool) -> dict:
    """Move the source to the target, both opened with `moving`, and return the result; raise LedgerError.

    In check mode both may be opened for reading.
    """
    if not check_mode:
        target.lock(_TURN, wait=True)
    marks = source.mark(), target.mark()
    is_complete = marks[0].moved == TO and marks[0].move == marks[1].move and not marks[1].moved
    if not is_complete:
        _require_way(source, target, *marks)
        if check_mode or marks[1].moved != FROM:  # what was begun is undone then, too
            _require_no_contradiction(source, target)
        if not check_mode:
            _move(source, target, *marks)
    tables = {"entries": _name(source), "history": "history"}
    counts = {what: source.database.execute(sql.COUNT.format(table))[0][0] for what, table in tables.items()}
    return dict(changed=not is_complete, outcome=NOT_SENT, counts=counts, ledger=source.where, to=target.where)


def opened_source(location: str, read_only: bool) -> Ledger:
    """Return the ledger to move, which is not made if there is none; raise LedgerError or MissingLibrary."""
    with closing(open_ledger(location, read_only=True, moving=True)) as found:
        if found.is_new:
            raise LedgerError(f"{no_ledger_yet(found)}, so nothing was moved. Check the location")
    return open_ledger(location, read_only, moving=True)


def _require_way(source: Ledger, target: Ledger, at_source: Mark, at_target: Mark) -> None:
    """Raise LedgerError unless the marks allow this move: a new one, one to go on with, or the way back."""
    if _place(source) == _place(target):
        raise LedgerError(f"ledger: {source.where} is where it is already; nothing was moved")
    is_one = at_source.move == at_target.move
    if at_source.moved == FROM or (at_source.moved and not (is_one and at_target.moved == FROM)):
        source.require_in_use()
    is_from_here = at_target.moved == FROM and at_target.place == _place(source)
    if at_target.moved and not (is_from_here or (is_one and at_target.moved == TO)):
        target.require_in_use()


def _move(source: Ledger, target: Ledger, at_source: Mark, at_target: Mark) -> None:
    move = at_source.move if at_source.moved else os.urandom(8).hex()
    filled, closed = Mark(FROM, _place(source), move), Mark(TO, _place(target), move)
    if at_target.move != move:
        _mark(target, filled, at_target)
    if _ENTRY not in target.database.tables():  # its entries are older than ours, which were moved from there
        target.database.write([(statement, ()) for statement in (sql.OPEN, *sql.CLEAR)], durable=True)
    try:
        if not at_source.moved:
            _mark(source, closed, at_source)
        _close(source)
        _require_no_contradiction(source, target)
    except Unanswered:
        raise
    except LedgerError:
        _undo(source, target, at_source, at_target, move)
        raise
    if 0 in target.database.write(_copies(source, filled), durable=True, whole=True):
        raise LedgerError(f"ledger: {target.where}: another task went on with this move. Run it again")


def _close(source: Ledger) -> None:
    """Wait for what is in flight, then let no session find the entries; raise LedgerError."""
    while _ENTRY in source.database.tables():
        found = [(Key(*row), revision) for *row, revision in source.database.execute(sql.IN_FLIGHT)]
        known = "".join(f",{revision}," for _key, revision in found)
        with ExitStack() as held:
            for key, _revision in sorted(found):
                held.callback(source.release, key)
                source.lock(key, wait=True)
            # One that began in the last moment is not among them: then nothing is done, and it is waited for as well.
            statements = [(sql.CLOSE, ()), (sql.ONLY_THESE_IN_FLIGHT, (known, known))]
            source.database.write(statements, durable=True, whole=True)


def _copies(source: Ledger, filled: Mark) -> Iterator[tuple[str, tuple]]:
    """Yield the statements that take the mark from the target and fill it."""
    yield sql.MARK, ("", "", filled.move, filled.moved, filled.move)
    for page in _pages(source):
        yield sql.COPY_ENTRIES.format(_values(page)), tuple(value for row in page for value in row)
    number = 0
    while page := source.database.execute(sql.HISTORY_AFTER, (number,)):
        number, rows = page[-1][0], [row[1:] for row in page]
        yield sql.COPY_HISTORY.format(_values(rows)), tuple(value for row in rows for value in row)


def _values(rows: list[tuple]) -> str:
    return ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))


def _pages(source: Ledger) -> Iterator[list[tuple]]:
    """Yield the rows of all entries, some at a time."""
    statement, after = sql.ENTRIES_AFTER.format(_name(source)), ("", "", "")
    while page := source.database.execute(statement, after):
        yield page
        after = page[-1][:3]


def _require_no_contradiction(source: Ledger, target: Ledger) -> None:
    """Raise LedgerError if both ledgers have an asset and do not say the same of it."""
    if _ENTRY not in target.database.tables() or target.database.execute(sql.COUNT.format("entry")) == [(0,)]:
        return
    contradicting = []
    for page in _pages(source):
        for group in sorted({row[:2] for row in page}):
            ours = {row[2]: source.entry_of(row[3:]) for row in page if row[:2] == group}
            theirs = target.get_many(*group, ours)
            contradicting += [name for name, entry in theirs.items() if entry[:3] != ours[name][:3]]
    if contradicting:
        raise LedgerError(
            f"ledger: {target.where} contradicts {source.where} about {listing(contradicting)}. Nothing was moved."
            " Settle or forget them in one of the two with ledger_entry, or give another place"
        )


def _undo(source: Ledger, target: Ledger, at_source: Mark, at_target: Mark, move: str) -> None:
    """Make the source what it was, and only then the target, so that at no moment both can be used."""
    now = source.mark()
    if now.moved == TO and now.move == move:
        opening = [] if _ENTRY in source.database.tables() else [(sql.OPEN, ())]
        back = (sql.MARK, ("", "", at_source.move, now.moved, now.move))
        source.database.write([*opening, back], durable=True, whole=True)
    _mark(target, Mark() if at_target.moved == FROM else at_target, Mark(FROM, "", move))


def _mark(ledger: Ledger, mark: Mark, before: Mark) -> None:
    """Replace the mark of a ledger; raise LedgerError if it is not as it was read."""
    if not all(ledger.database.write([(sql.MARK, (*mark, before.moved, before.move))], durable=True, whole=True)):
        raise LedgerError(
            f"ledger: {ledger.where}: another task moved it meanwhile, or both places are one. Run it again"
        )


def _name(source: Ledger) -> str:
    """Return the end of the name of its table of entries."""
    return "entry" if _ENTRY in source.database.tables() else _CLOSED


def _place(ledger: Ledger) -> str:
    """Return where a ledger is, without a password; several may be in one database."""
    return ledger.file or f"{ledger.where}, schema {ledger.database.execute('SELECT current_schema()')[0][0]}"
