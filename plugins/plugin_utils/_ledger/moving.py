# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Creates a ledger; moves one in four steps, so that at most one of the two is in use whenever it is killed.

1. Reserve: the target gets its tables, filling, with the ledger_id of the source and the number of
   this reservation. So it is known to be writable.
2. Close: if no request is in flight, the source is marked as moved to this reservation. This is the
   commit: the source is never used again, only read.
3. Fill: the rows are copied in portions, each while the target is still filling.
4. Open: the source is marked as filled, then the target is put in use. A source that is filled only
   opens its target, and never fills it again, because the target may have moved on since.

Each step is safe to repeat, and running the move again completes it. Nothing is undone.
"""

from __future__ import annotations

import secrets
from itertools import chain

from ...module_utils._errors import NOT_SENT, InvalidInput, LedgerError, listing
from ...module_utils._result import Returned
from ...module_utils._secrets import printable
from . import sql
from .entries import Write
from .ledger import Database, Header, Ledger, create_ledger
from .seen import Seen
from .sql import Statement


def create(place: Database, base_url: str, replaces: str, seen: Seen, check_mode: bool) -> Returned:
    """Create an empty ledger and return the result of ledger_create; raise LedgerError.

    `base_url`: of its service, canonical; `replaces`: the ledger_id of a lost one, '' for none.
    """
    is_new = not place.has_tables()
    lost = seen.ledger_at(place.where)
    if is_new and lost and lost != replaces:
        raise LedgerError(
            f"this controller has used the ledger {lost} at {place.where}, which is gone. Restore"
            " it from a backup, or correct the location. If it is lost for good, give its id as"
            " replaces, then settle what the reports of its runs know"
        )
    if is_new and not check_mode:
        header = Header(secrets.token_hex(16), base_url, sql.IN_USE, replaces=replaces)
        create_ledger(place, header)
    ledger_id = ""
    if not (is_new and check_mode):
        found = Ledger(place, seen, base_url).header
        ledger_id = found.ledger_id
        if replaces not in ("", found.replaces):
            raise InvalidInput(
                "replaces",
                f"{place.where} is there already, and it does not replace {replaces}. Give a place"
                " where there is no ledger",
            )
    return dict(
        changed=is_new,
        outcome=NOT_SENT,
        ledger=place.where,
        ledger_id=ledger_id or None,
        base_url=base_url,
    )


def move_ledger(source: Ledger, place: Database, seen: Seen, check_mode: bool) -> Returned:
    """Move a ledger to a place and return the result of ledger_move; raise LedgerError.

    `source`: in any state; `seen`: the notes of this controller.
    """
    there = Ledger(place, seen, is_moving=True) if place.has_tables() else None
    is_complete = _is_complete(source, there, place.where)
    if not (is_complete or check_mode):
        if there is None:
            there = _reserve(source, place, seen)
        _close(source, there)
        _fill(source, there)
        _open(source, there)
    return _result(source, not is_complete, to=place.where)


def set_base_url(ledger: Ledger, url: str, check_mode: bool) -> Returned:
    """Give a ledger the new URL of its service and return the result; raise LedgerError."""
    ledger.require_usable()
    before = ledger.header.base_url
    _require_no_intent(ledger)
    is_new = url != before
    if is_new and not check_mode:
        (done,) = ledger.execute([(sql.SET_URL, (url, before))], Write.EDIT)
        if not done.changed:
            raise _changed_meanwhile(ledger)
    return _result(ledger, is_new, base_url=before, to_base_url=url)


def _result(ledger: Ledger, changed: bool, **more: str) -> Returned:
    return dict(
        changed=changed,
        outcome=NOT_SENT,
        ledger=ledger.where,
        ledger_id=ledger.header.ledger_id,
        **more,
    )


def _is_complete(source: Ledger, target: Ledger | None, place: str) -> bool:
    """Return whether the move is complete; raise LedgerError if it is not possible."""
    here = source.header
    is_moved = here.state in (sql.MOVED, sql.FILLED) and here.place == place
    if not is_moved:
        source.require_usable()
        _require_no_intent(source)
    is_gone = target is None or (
        target.header.state == sql.FILLING and target.header.reservation != here.reservation
    )
    if is_moved and here.state == sql.FILLED and is_gone:
        raise LedgerError(
            f"{source.where} was moved to {place} completely, and there is no ledger there any more."
            " Restore that one from its backup; the rows of this one are older"
        )
    if target is None:
        return False
    there = target.header
    is_same = there.ledger_id == here.ledger_id
    if is_same and there.state == sql.FILLING:
        return False
    target.require_usable()
    if is_same and is_moved:
        return True
    raise LedgerError(
        f"{place} is a ledger already, and ledgers are not merged. Give a place where there is no"
        " ledger"
    )


def _require_no_intent(ledger: Ledger) -> None:
    """Raise LedgerError if a request may be in flight."""
    names = [printable(key.name) for key, _entry in ledger.entries(sql.OPEN_INTENT, ())]
    if names:
        raise LedgerError(
            f"{ledger.where} has requests that may be in flight: {listing(names)}. Wait until they"
            " have ended, and settle those that are in doubt then"
        )


def _reserve(source: Ledger, place: Database, seen: Seen) -> Ledger:
    """Create the target, filling, and return it."""
    header = source.header
    # Another one than before: a mover that filled a target which is gone does not open this one.
    number = 1 + secrets.randbits(53)
    reserved = Header(header.ledger_id, "", sql.FILLING, source.where, number, header.replaces)
    create_ledger(place, reserved)
    return Ledger(place, seen, is_moving=True)


def _close(source: Ledger, target: Ledger) -> None:
    """Mark the source as moved to the target, once no request is in flight."""
    mark = (target.where, target.header.reservation)
    known = source.header.reservation
    source.execute([(sql.CLOSE, (*mark, known, target.where))], Write.EDIT)
    source.refresh()
    if (source.header.place, source.header.reservation) != mark:
        raise _changed_meanwhile(source)


def _changed_meanwhile(ledger: Ledger) -> LedgerError:
    return LedgerError(
        f"{ledger.where}: another task began a request or a move at the same time, so nothing was"
        " changed. Run this again"
    )


def _fill(source: Ledger, target: Ledger) -> None:
    """Copy everything, some rows at a time, while the target is still reserved for the source."""
    if source.header.state == sql.FILLED:
        return
    mark = (source.header.ledger_id, source.header.reservation)
    for table, columns in sql.COPIED.items():
        after: tuple[sql.Value, ...] = sql.FIRST[table]
        while rows := source.read(sql.SOME_ROWS[table], after):
            statements: list[Statement] = [(sql.STILL_FILLING, mark)]
            for start in range(0, len(rows), sql.COPIED_AT_ONCE):
                some = rows[start : start + sql.COPIED_AT_ONCE]
                marks = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
                copy = sql.COPY.format(table, columns, marks)
                statements.append((copy, tuple(chain.from_iterable(some))))
            if not target.execute(statements, Write.COPY)[0].changed:
                _require_opened(source, target)
                return
            after = rows[-1][: len(after)]
    for table in sql.COPIED:
        count = sql.COUNT.format(table)
        if source.read(count) != target.read(count) and target.header.state == sql.FILLING:
            raise LedgerError(
                f"{target.where} does not have as many rows as {source.where}. Run the move again"
            )


def _require_opened(source: Ledger, target: Ledger) -> None:
    """Raise LedgerError unless another mover has opened the target."""
    target.refresh()
    if target.header.state == sql.FILLING:
        raise _changed_meanwhile(source)


def _open(source: Ledger, target: Ledger) -> None:
    """Mark the source as filled, then put the target in use; this ends the move."""
    header = source.header
    source.execute([(sql.SET_FILLED, (header.place, header.reservation))], Write.EDIT)
    statements: list[Statement] = [
        (sql.OPEN, (header.base_url, header.ledger_id, header.reservation))
    ]
    if target.database.continue_numbers:
        statements.append((target.database.continue_numbers, ()))
    target.execute(statements, Write.EDIT)
    target.refresh()
    target.require_usable()  # another mover may have opened it
