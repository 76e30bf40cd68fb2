# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves the entries of a service to its new base_url, within the ledger and in one transaction.

The history goes along and has a row more for each entry. A row of the old base_url says where the
entries are: no task begins anything there, not even one that looked it up before the move.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

from ...module_utils._errors import NOT_SENT, InvalidInput, listing
from ...module_utils._http.urls import canonical_url, recorded_url
from ...module_utils._result import Returned
from ...module_utils._secrets import printable
from ...module_utils._task.options import service_url
from . import tables as sql
from .database import Statement
from .entries import INTENT, Key, Kind, LedgerError, author, current_time
from .location import no_ledger_yet
from .store import Ledger


class _Found(NamedTuple):
    """An entry, without what was sent and what came back."""

    resource: str
    name: str
    state: str
    revision: int


def move_entries(
    ledger: Ledger, base_url: str | None, to_base_url: str, check_mode: bool, run: str
) -> Returned:
    """Move the entries and return the result of ledger_move; raise InvalidInput or LedgerError.

    In check mode the ledger may be open for reading only.
    """
    old, new = _urls(base_url, to_base_url)
    if not ledger.version:
        raise LedgerError(f"{no_ledger_yet(ledger)}. Check the location")
    with ledger.noticing_move():
        return _move(ledger, old, new, check_mode, run)


def _move(ledger: Ledger, old: str, new: str, check_mode: bool, run: str) -> Returned:
    # Read first, so that a move made after this read is noticed.
    rows = ledger.database.execute(sql.SERVICE_NUMBER, (new,))
    number = int(rows[0][0]) if rows else 0
    is_complete = _is_complete(ledger, old, new)
    url = new if is_complete else old
    found = _entries_at(ledger, url)
    ((history,),) = ledger.database.execute(sql.COUNT_HISTORY_AT, (url,))
    if not is_complete:
        _require_possible(ledger, old, new, found)
        with ExitStack() as locks:
            _lock_those_in_doubt(ledger, old, found, locks)
            if not check_mode:
                _write(ledger, old, new, found, number, run)
    return dict(
        changed=not is_complete,
        outcome=NOT_SENT,
        counts={"entries": len(found), "history": history},
        ledger=ledger.where,
        ledger_id=ledger.ledger_id,
        base_url=old,
        to_base_url=new,
        diff=_diff_of_move(old, new, [] if is_complete else found),
    )


def _urls(base_url: str | None, to_base_url: str) -> tuple[str, str]:
    """Return both as the ledger has them; `http://` is allowed, since nothing is sent."""
    if base_url is None:
        raise InvalidInput("base_url", "is needed with to_base_url: the one that is recorded")
    old = recorded_url("base_url", base_url)
    new = canonical_url(service_url("to_base_url", to_base_url, allow_http=True))
    if old == new:
        raise InvalidInput("to_base_url", f"is {old}, as base_url is")
    return old, new


def _is_complete(ledger: Ledger, old: str, new: str) -> bool:
    """Return whether this move was made before; raise LedgerError if another one was."""
    gone = ledger.new_url(old)
    onwards = ledger.new_url(new)
    if gone and gone.base_url == new:
        return True
    if gone:
        raise LedgerError(
            f"base_url: its entries were moved to {gone.base_url} ({gone.by}, {gone.at})."
            f" Give base_url: {gone.base_url}"
        )
    if onwards and onwards.base_url != old:
        raise LedgerError(
            f"to_base_url: its entries were moved to {onwards.base_url} ({onwards.by},"
            f" {onwards.at}). Give to_base_url: {onwards.base_url}"
        )
    return False


def _entries_at(ledger: Ledger, url: str) -> list[_Found]:
    return [_Found(*row) for row in ledger.database.execute(sql.KEYS_AT, (url,))]


def _require_possible(ledger: Ledger, old: str, new: str, found: list[_Found]) -> None:
    """Raise LedgerError unless there are entries, none of which is recorded at the new base_url."""
    if not found:
        urls = [f"{url} ({count:,})" for url, count in ledger.database.execute(sql.COUNT_URLS)]
        there = f"The ledger has entries of {listing(urls)}" if urls else "The ledger is empty"
        raise LedgerError(f"base_url: {ledger.where} has no entry of {old}. {there}")
    taken = {(entry.resource, entry.name) for entry in _entries_at(ledger, new)}
    both = [entry.name for entry in found if (entry.resource, entry.name) in taken]
    if both:
        raise LedgerError(
            f"to_base_url: {printable(listing(both))}: recorded at {old} and at {new}. Look on"
            " the service which of both exists, and forget the other entry with"
            " infrastructure.services.ledger_entry (state: absent)"
        )


def _lock_those_in_doubt(ledger: Ledger, old: str, found: list[_Found], locks: ExitStack) -> None:
    """Lock the entries whose task was cut off; raise LedgerError if a task is still running."""
    running = []
    for entry in found:
        if entry.state != INTENT:
            continue
        key = Key(old, entry.resource, entry.name)
        if ledger.lock(key, wait=False):
            locks.callback(ledger.release, key)
        else:
            running.append(entry.name)
    if running:
        raise LedgerError(
            f"base_url: {printable(listing(running))}: a task is waiting for the answer of the"
            " service. Run it again when that run has ended"
        )


def _write(ledger: Ledger, old: str, new: str, found: list[_Found], number: int, run: str) -> None:
    """Move entries and history; raise LedgerError, with no effect, if something has changed.

    `number`: of the last row of the history that says where the entries of the new base_url are.
    """
    known = "".join(f",{entry.revision}," for entry in found if entry.state == INTENT)
    by = author()
    at = current_time()
    told = f"by ledger_move: base_url {old} -> {new}"
    moved = (old, sql.IN_USE, sql.MOVED, at, by, run, new)
    statements: list[Statement] = [
        (sql.ONLY_IF_MOVABLE, (old, known, known, old, new, new, number)),
        (sql.RECORD_MOVED, (at, by, run, told, old)),
        (sql.MOVE_ENTRIES, (new, old)),
        (sql.MOVE_HISTORY, (new, old)),
        (sql.RECORD_SERVICE, moved),
        (sql.RECORD_SERVICE, (new, sql.IN_USE, sql.IN_USE, at, by, run, "")),
    ]
    if ledger.database.lock_entries:
        statements.insert(0, (ledger.database.lock_entries, ()))
    if 0 in ledger.database.write(statements, Kind.EDIT):
        ledger.require_in_use()
        raise LedgerError(
            f"base_url: another task changed the entries of {old} at the same time. Run it again"
        )


def _diff_of_move(old: str, new: str, moved: list[_Found]) -> Returned:
    """Return how many entries of each resource are moved."""
    counts: dict[str, int] = {}
    for entry in moved:
        counts[entry.resource] = counts.get(entry.resource, 0) + 1
    if not counts:
        return {"before": {}, "after": {}}
    return {"before": {old: counts}, "after": {new: counts}}
