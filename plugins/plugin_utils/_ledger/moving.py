# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves a ledger in three steps, so that at most one of the two is in use whenever it is killed.

1. Reserve: the target gets its tables, filling, with the ledger_id of the source. So it is known to
   be writable.
2. Close: if no entry is an intent, the source is marked as moved. This is the commit: it is never
   used again, only read.
3. Fill: one transaction copies everything and marks the target as in use, if it is still reserved
   for this ledger.

Each step is safe to repeat, and running the move again completes it. Nothing is undone.
"""

from __future__ import annotations

from contextlib import closing
from itertools import chain
from typing import Callable

from ...module_utils._errors import NOT_SENT, listing
from ...module_utils._result import Returned
from ...module_utils._secrets import printable
from . import sql
from .entries import INTENT, LedgerError, Write
from .ledger import Header, Ledger
from .sql import Statement


def move_ledger(
    source: Ledger,
    open_target: Callable[[], Ledger],
    check_mode: bool,
    is_older: bool = False,
) -> Returned:
    """Move a ledger and return the result of ledger_move; raise LedgerError.

    `source`, `open_target`: in any state; `is_older`: whether the source lacks rows that were seen
    since.
    """
    with closing(open_target()) as target:
        is_complete = _require_possible(source, target)
        if is_older and source.header.state == sql.MOVED and not is_complete:
            raise LedgerError(
                f"{source.where} lacks rows that this controller has seen since, so the move was"
                " not completed from it"
            )
        if not (is_complete or check_mode):
            # Each step has no effect where it was taken before.
            target.create(Header(source.header.ledger_id, "", sql.FILLING, source.where))
            target.refresh()
            if not _require_possible(source, target):
                _close(source, target.where)
                _fill(source, target)
    return _result(source, not is_complete, to=target.where)


def set_base_url(ledger: Ledger, url: str, check_mode: bool) -> Returned:
    """Give a ledger the new URL of its service and return the result; raise LedgerError."""
    ledger.require_usable()
    before = ledger.header.base_url
    _require_no_intent(ledger)
    if url != before and not check_mode:
        (count,) = ledger.database.write([(sql.SET_URL, (url, before))], Write.EDIT)
        if not count:
            raise _changed_meanwhile(ledger)
    return _result(ledger, url != before, base_url=before, to_base_url=url)


def _result(ledger: Ledger, changed: bool, **more: str) -> Returned:
    counts = [(sql.COUNT.format(table), ()) for table in (sql.ENTRY, sql.HISTORY)]
    ((entries,),), ((history,),) = ledger.database.read(counts)
    return dict(
        changed=changed,
        outcome=NOT_SENT,
        counts={"entries": entries, "history": history},
        ledger=ledger.where,
        ledger_id=ledger.header.ledger_id,
        **more,
    )


def _require_possible(source: Ledger, target: Ledger) -> bool:
    """Return whether the move is complete; raise LedgerError if it is not possible."""
    source.refresh()  # another task may have completed the move since
    here, there = source.header, target.header
    is_same = here.ledger_id == there.ledger_id
    if here.state == sql.FILLING or (here.state == sql.MOVED and here.place != target.where):
        source.require_usable()
    if there.state and not (is_same and there.state == sql.FILLING):
        if is_same and here.state == sql.MOVED:
            target.require_usable()
            return True
        problem = "is a ledger already, and ledgers are not merged"
        if there.state == sql.FILLING:
            problem = f"is reserved for the ledger {there.place}"
        raise LedgerError(f"{target.where} {problem}. Give a place where there is no ledger")
    if here.state == sql.IN_USE:
        _require_no_intent(source)
    return False


def _require_no_intent(ledger: Ledger) -> None:
    names = [printable(key.name) for key, _entry in ledger.entries("state = ?", (INTENT,))]
    if names:
        raise LedgerError(
            f"{ledger.where} has requests that may be in flight: {listing(names)}. Wait until they"
            " have ended, and settle those that are in doubt then"
        )


def _close(source: Ledger, place: str) -> None:
    """Mark the source as moved to a place, once no request is in flight."""
    (count,) = source.database.write([(sql.CLOSE, (place,))], Write.EDIT)
    source.refresh()
    if not count and source.header.place != place:
        raise _changed_meanwhile(source)


def _changed_meanwhile(ledger: Ledger) -> LedgerError:
    return LedgerError(
        f"{ledger.where}: another task began a request or a move at the same time, so nothing was"
        " changed. Run this again"
    )


def _fill(source: Ledger, target: Ledger) -> None:
    """Copy everything and put the target in use, if it is still reserved for this ledger."""
    statements: list[Statement] = [(sql.OPEN, (source.header.base_url, source.header.ledger_id))]
    for table, columns in sql.COPIED.items():
        (rows,) = source.database.read([(sql.ROWS.format(columns, table), ())])
        for start in range(0, len(rows), sql.COPIED_AT_ONCE):
            some = rows[start : start + sql.COPIED_AT_ONCE]
            marks = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
            copy = sql.COPY.format(table, columns, marks)
            statements.append((copy, tuple(chain.from_iterable(some))))
    if target.database.continue_numbers:
        statements.append((target.database.continue_numbers, ()))
    if 0 in target.database.write(statements, Write.EDIT):
        target.refresh()
        target.require_usable()  # another task has filled it, or has not
