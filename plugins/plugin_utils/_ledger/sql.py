# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of the ledger and the statements about them, the same on SQLite and on PostgreSQL.

`:now` stands for the clock of the database in seconds since 1970, `:number` for the type of a column
that numbers rows; each database replaces them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Sequence, Tuple, Union

from ...module_utils._resources.resources import ONLY_UPDATED
from .entries import STATES_IN_DOUBT, Change, HistoryRow, Write, id_of

Value = Union[str, int, float, None]
# SQL, and the values in place of its `?`.
Statement = Tuple[str, Sequence[Value]]
Row = Tuple[Any, ...]  # one value for each column of the statement


class Done(NamedTuple):
    """The effect of a statement: how many rows it has changed, or those that it has read."""

    changed: int  # -1: it reads
    rows: list[Row]


SCHEMA = 6
# The states of a ledger; a source is filled once its target has everything.
IN_USE, MOVED, FILLING, FILLED = "in use", "moved", "filling", "filled"
LEDGER = "infrastructure_services_ledger"
ENTRY = "infrastructure_services_entry"
HISTORY = "infrastructure_services_history"
TABLES = (LEDGER, ENTRY, HISTORY)

_KEY = "resource, name"
CREATE = (
    (
        f"CREATE TABLE {ENTRY} (resource TEXT NOT NULL, name TEXT NOT NULL,"
        " state TEXT NOT NULL, sent TEXT NOT NULL, asset TEXT NOT NULL, id TEXT NOT NULL,"
        ' began_at TEXT NOT NULL, changed_at TEXT NOT NULL, "by" TEXT NOT NULL, run TEXT NOT NULL,'
        " revision BIGINT NOT NULL, began BIGINT NOT NULL, lease_from BIGINT NOT NULL,"
        f" lease_seconds BIGINT NOT NULL, PRIMARY KEY ({_KEY}))"
    ),
    f"CREATE INDEX {ENTRY}_ids ON {ENTRY} (id)",
    (
        f"CREATE TABLE {HISTORY} (number :number, resource TEXT NOT NULL,"
        " name TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, at TEXT NOT NULL,"
        ' "by" TEXT NOT NULL, run TEXT NOT NULL, outcome TEXT NOT NULL, status BIGINT,'
        " message TEXT NOT NULL, seconds DOUBLE PRECISION, revision BIGINT NOT NULL,"
        " began BIGINT NOT NULL)"
    ),
    f"CREATE INDEX {HISTORY}_of ON {HISTORY} ({_KEY})",
    (
        # One row; `place` is the other end of a move, `reservation` numbers it.
        f"CREATE TABLE {LEDGER} (one BIGINT PRIMARY KEY, schema_number BIGINT NOT NULL,"
        " ledger_id TEXT NOT NULL, base_url TEXT NOT NULL, state TEXT NOT NULL,"
        " place TEXT NOT NULL, reservation BIGINT NOT NULL, replaces TEXT NOT NULL)"
    ),
)
INSERT_LEDGER = f"INSERT INTO {LEDGER} VALUES (1, {SCHEMA}, ?, ?, ?, ?, ?, ?)"
# Other schemas have other columns.
READ_LEDGER = f"SELECT * FROM {LEDGER}"

_COLUMNS = 'state, sent, asset, id, began_at, changed_at, "by", run, revision, began'
# Also a lease that begins in the future, because a clock was set back.
_RUNNING = "state = 'intent' AND :now - lease_from < lease_seconds"
_UNTIL = "CASE WHEN lease_from > :now THEN :now ELSE lease_from END + lease_seconds"
_READ = (
    f'{_KEY}, state, sent, asset, began_at, changed_at, "by", run, revision, began,'
    f" CASE WHEN {_RUNNING} THEN {_UNTIL} ELSE 0 END, lease_seconds"
)
ENTRIES = f"SELECT {_READ} FROM {ENTRY} WHERE {{}} ORDER BY {_KEY}"
# The next ones after a key.
SOME_ENTRIES = ENTRIES.format(f"{{}} AND ({_KEY}) > (?, ?)") + " LIMIT 1000"
# A lease that begins in the future begins when a task that sends or edits first sees it.
START_LEASES = f"UPDATE {ENTRY} SET lease_from = :now WHERE state = 'intent' AND lease_from > :now"
_HISTORY = 'from_state, to_state, at, "by", run, outcome, status, message, seconds, revision, began'
HISTORY_ROWS = f"SELECT {_KEY}, {_HISTORY} FROM {HISTORY} WHERE {{}} ORDER BY number"
LAST_ROWS = f"SELECT {_KEY}, max(number) FROM {HISTORY} WHERE {{}} GROUP BY {_KEY}"
LAST_ROW = f"SELECT number, revision FROM {HISTORY} ORDER BY number DESC LIMIT 1"
# The last beginning or edit: an outcome may be lost and written again.
LAST_BEGUN = (
    f"SELECT number, revision FROM {HISTORY} WHERE outcome = '' ORDER BY number DESC LIMIT 1"
)
HAS_ROW = f"SELECT 1 FROM {HISTORY} WHERE number = ? AND revision = ?"
# A row that a report has given back has another number.
HAS_REVISION = f"SELECT 1 FROM {HISTORY} WHERE revision = ? LIMIT 1"
COUNTS = (
    f"SELECT resource, state, count(*), min(began_at) FROM {ENTRY} WHERE {{}}"
    f" AND NOT ({_RUNNING}) GROUP BY resource, state"
)


class Guard(NamedTuple):
    """The condition of a beginning or an edit; the defaults demand nothing beyond the ledger."""

    ledger_id: str
    base_url: str
    # No later row of this asset was accepted, or an edit to present.
    approved_row: int
    # No other asset has this id.
    id: str = ""


def is_void(kind: Write, done: list[Done]) -> bool:
    """Return whether a transaction is to have no effect, because a part that it needs has none."""
    needed = {Write.EDIT: done, Write.COPY: done[:1]}.get(kind, [])
    return any(each.changed == 0 for each in needed)


_IN_USE = f"EXISTS (SELECT 1 FROM {LEDGER} WHERE state = '{IN_USE}' AND ledger_id = ?{{}})"
_OF_LEDGER = _IN_USE.format("")
_GUARD = (
    f"{_IN_USE.format(' AND base_url = ?')}"
    f" AND NOT EXISTS (SELECT 1 FROM {HISTORY} WHERE resource = ? AND name = ? AND number > ?"
    " AND (outcome = 'accepted' OR (outcome = '' AND to_state = 'done')))"
    f" AND (CAST(? AS TEXT) = '' OR NOT EXISTS (SELECT 1 FROM {ENTRY} AS other"
    " WHERE other.id = ? AND other.resource = ? AND other.name <> ?))"
)
_IS_READ = "resource = ? AND name = ? AND revision = ?"
INSERT = (
    f"INSERT INTO {ENTRY} ({_KEY}, {_COLUMNS}, lease_from, lease_seconds)"
    " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS BIGINT), CAST(? AS BIGINT), :now,"
    f" CAST(? AS BIGINT) WHERE {_GUARD} ON CONFLICT ({_KEY}) DO NOTHING"
)
UPDATE = (
    f"UPDATE {ENTRY} SET state = ?, sent = ?, asset = ?, id = ?, began_at = ?, changed_at = ?,"
    ' "by" = ?, run = ?, revision = ?, began = ?, lease_from = :now, lease_seconds = ?'
)
DELETE = f"DELETE FROM {ENTRY}"
_IS_FREE = f"{_IS_READ} AND NOT ({_RUNNING}) AND {_GUARD}"
# The owner of a lease, which may have ended, names the revision only.
_IS_OWN = f"{_IS_READ} AND {_OF_LEDGER}"
# Once: a commit whose answer was lost is repeated.
RECORD = (
    f"INSERT INTO {HISTORY} ({_KEY}, {_HISTORY})"
    " SELECT ?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS BIGINT), ?, CAST(? AS DOUBLE PRECISION),"
    f" CAST(? AS BIGINT), CAST(? AS BIGINT) WHERE {_OF_LEDGER}"
    f" AND NOT EXISTS (SELECT 1 FROM {HISTORY} WHERE {_IS_READ})"
)
IS_WRITTEN = f"SELECT 1 FROM {ENTRY} WHERE {_IS_READ}"


def written(change: Change, guard: Guard) -> Statement:
    """Return the statement that writes an entry if it is still as it was read."""
    entry = change.after
    values: tuple[Value, ...] = ()
    if entry:
        values = (
            entry.state,
            json.dumps(entry.sent),
            json.dumps(entry.asset),
            id_of(entry),
            entry.began_at,
            entry.changed_at,
            entry.by,
            entry.run,
            change.revision,
            entry.began,
            change.lease_seconds,
        )
    resource, name = change.key
    of_guard = (
        *(guard.ledger_id, guard.base_url),
        *(resource, name, guard.approved_row),
        *(guard.id, guard.id, resource, name),
    )
    if change.before is None:
        return INSERT, (resource, name, *values, *of_guard)
    is_owner = change.kind is Write.OUTCOME
    condition = _IS_OWN if is_owner else _IS_FREE
    values += (resource, name, change.before.revision)
    values += (guard.ledger_id,) if is_owner else of_guard
    return f"{UPDATE if entry else DELETE} WHERE {condition}", values


def recorded(change: Change, row: HistoryRow, ledger_id: str) -> Statement:
    """Return the statement that adds the row of a change.

    A beginning and an adoption add it with their entry only.
    """
    message = row.message.replace("\0", " ")  # which PostgreSQL cannot store
    revision = (*change.key, change.revision)
    values = (*change.key, *row._replace(message=message), ledger_id, *revision)
    if change.kind not in (Write.BEGIN, Write.ADOPT):
        return RECORD, values
    return f"{RECORD} AND EXISTS ({IS_WRITTEN})", (*values, *revision)


_CREATED = f"resource NOT IN ({', '.join(map(repr, ONLY_UPDATED))})"
# Also those whose lease runs.
IN_DOUBT = f"({_CREATED} AND state IN ({', '.join(map(repr, STATES_IN_DOUBT))}))"
# To move a ledger, or to give it the new URL of its service: no request may be in flight that creates
# something, or that updates it while its lease runs.
OPEN_INTENT = f"state = 'intent' AND ({_CREATED} OR {_RUNNING})"
_NO_INTENT = f"NOT EXISTS (SELECT 1 FROM {ENTRY} WHERE {OPEN_INTENT})"
CLOSE = (
    f"UPDATE {LEDGER} SET state = '{MOVED}', place = ?, reservation = ?"
    # A source that is closed already takes over a reservation that was made anew.
    f" WHERE reservation = ? AND ((state = '{IN_USE}' AND {_NO_INTENT})"
    f" OR (state = '{MOVED}' AND place = ?))"
)
SET_URL = (
    f"UPDATE {LEDGER} SET base_url = ? WHERE state = '{IN_USE}' AND base_url = ? AND {_NO_INTENT}"
)
_RESERVED = f"state = '{FILLING}' AND ledger_id = ? AND reservation = ?"
# Locks the row of a target that is still to be filled.
STILL_FILLING = f"UPDATE {LEDGER} SET place = place WHERE {_RESERVED}"
SET_FILLED = (
    f"UPDATE {LEDGER} SET state = '{FILLED}'"
    f" WHERE state = '{MOVED}' AND place = ? AND reservation = ?"
)
OPEN = f"UPDATE {LEDGER} SET state = '{IN_USE}', base_url = ?, place = '' WHERE {_RESERVED}"
COPIED = {
    ENTRY: f"{_KEY}, {_COLUMNS}, lease_from, lease_seconds",
    HISTORY: f"number, {_KEY}, {_HISTORY}",
}
# The next rows after a key, which the first columns are.
SOME_ROWS = {
    ENTRY: f"SELECT {COPIED[ENTRY]} FROM {ENTRY} WHERE ({_KEY}) > (?, ?) ORDER BY {_KEY} LIMIT 1000",
    HISTORY: f"SELECT {COPIED[HISTORY]} FROM {HISTORY} WHERE number > ? ORDER BY number LIMIT 1000",
}
FIRST: dict[str, tuple[Value, ...]] = {ENTRY: ("", ""), HISTORY: (0,)}
COUNT = "SELECT count(*) FROM {}"
COPIED_AT_ONCE = 50  # rows of at most 15 values; SQLite took 999 before 3.32
# Nothing where another mover has copied the row.
COPY = "INSERT INTO {} ({}) VALUES {} ON CONFLICT DO NOTHING"
