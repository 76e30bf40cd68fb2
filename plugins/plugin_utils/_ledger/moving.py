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

from itertools import chain

from ...module_utils._errors import NOT_SENT, listing
from ...module_utils._result import Returned
from ...module_utils._secrets import printable
from . import sql
from .entries import INTENT, LedgerError, Write
from .ledger import Header, Ledger
from .sql import Statement


def move_ledger(source: Ledger, target: Ledger, check_mode: bool) -> Returned:
    """Move a ledger and return the result of ledger_move; raise LedgerError.

    `source`, `target`: in any state.
    """
    is_complete = _is_complete(source, target)
    if not (is_complete or check_mode):
        # Each step has no effect where it was taken before.
        target.create(Header(source.header.ledger_id, "", sql.FILLING, source.where))
        target.refresh()
        if not _is_complete(source, target):
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
    return dict(
        changed=changed,
        outcome=NOT_SENT,
        ledger=ledger.where,
        ledger_id=ledger.header.ledger_id,
        **more,
    )


def _is_complete(source: Ledger, target: Ledger) -> bool:
    """Return whether the move is complete; raise LedgerError if it is not possible."""
    source.refresh()  # another task may have completed the move since
    here, there = source.header, target.header
    is_closed = here.state == sql.MOVED and here.place == target.where
    if not is_closed:
        source.require_usable()
    is_same = here.ledger_id == there.ledger_id
    if there.state and not (is_same and there.state == sql.FILLING):
        target.require_usable()
        if is_same and is_closed:
            return True
        raise LedgerError(
            f"{target.where} is a ledger already, and ledgers are not merged. Give a place where"
            " there is no ledger"
        )
    if not is_closed:
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
