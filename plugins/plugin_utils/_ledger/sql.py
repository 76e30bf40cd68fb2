# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of the ledger and the statements about them, the same on SQLite and on PostgreSQL.

`:now` stands for the clock of the database in seconds since 1970, `:number` for the type of a column
that numbers rows; each database replaces them.
"""

from __future__ import annotations

import json
from typing import Any, Sequence, Tuple, Union

from .entries import Change, HistoryRow, Write

Value = Union[str, int, float, None]
# SQL, and the values in place of its `?`.
Statement = Tuple[str, Sequence[Value]]
Row = Tuple[Any, ...]  # one value for each column of the statement

SCHEMA = 5
# The states of a ledger.
IN_USE, MOVED, FILLING = "in use", "moved", "filling"
LEDGER = "infrastructure_services_ledger"
ENTRY = "infrastructure_services_entry"
HISTORY = "infrastructure_services_history"
TABLES = (LEDGER, ENTRY, HISTORY)

_KEY = "resource, name"
CREATE = (
    (
        f"CREATE TABLE IF NOT EXISTS {ENTRY} (resource TEXT NOT NULL, name TEXT NOT NULL,"
        " state TEXT NOT NULL, sent TEXT NOT NULL, asset TEXT NOT NULL, began_at TEXT NOT NULL,"
        ' changed_at TEXT NOT NULL, "by" TEXT NOT NULL, run TEXT NOT NULL,'
        " revision BIGINT NOT NULL, lease_from BIGINT NOT NULL, lease_seconds BIGINT NOT NULL,"
        f" PRIMARY KEY ({_KEY}))"
    ),
    (
        f"CREATE TABLE IF NOT EXISTS {HISTORY} (number :number, resource TEXT NOT NULL,"
        " name TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, at TEXT NOT NULL,"
        ' "by" TEXT NOT NULL, run TEXT NOT NULL, outcome TEXT NOT NULL, status BIGINT,'
        " message TEXT NOT NULL, seconds DOUBLE PRECISION, revision BIGINT NOT NULL)"
    ),
    f"CREATE INDEX IF NOT EXISTS {HISTORY}_of ON {HISTORY} ({_KEY})",
    (
        # One row; `place` is the other end of a move.
        f"CREATE TABLE IF NOT EXISTS {LEDGER} (one BIGINT PRIMARY KEY,"
        " schema_number BIGINT NOT NULL, ledger_id TEXT NOT NULL, base_url TEXT NOT NULL,"
        " state TEXT NOT NULL, place TEXT NOT NULL)"
    ),
)
# Has no effect if there is a row already.
INSERT_LEDGER = f"INSERT INTO {LEDGER} VALUES (1, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
# Other schemas have other columns.
READ_LEDGER = f"SELECT * FROM {LEDGER}"

_COLUMNS = 'state, sent, asset, began_at, changed_at, "by", run, revision'
# Also a lease that begins in the future, as after a small step of the clock back.
_RUNNING = (
    "state = 'intent' AND :now - lease_from < lease_seconds AND lease_from - :now < lease_seconds"
)
_READ = f"{_KEY}, {_COLUMNS}, CASE WHEN {_RUNNING} THEN lease_from + lease_seconds ELSE 0 END"
ENTRIES = f"SELECT {_READ} FROM {ENTRY} WHERE {{}} ORDER BY {_KEY}"
# The next ones after a key.
SOME_ENTRIES = ENTRIES.format(f"{{}} AND ({_KEY}) > (?, ?)") + " LIMIT 1000"
_HISTORY = 'from_state, to_state, at, "by", run, outcome, status, message, seconds'
HISTORY_ROWS = f"SELECT {_KEY}, {_HISTORY} FROM {HISTORY} WHERE {{}} ORDER BY number"
LAST_ROWS = f"SELECT {_KEY}, max(number) FROM {HISTORY} WHERE {{}} GROUP BY {_KEY}"
HAS_ROW = f"SELECT 1 FROM {HISTORY} WHERE number = ? AND revision = ?"
# The last row, and whether an earlier last row is still there.
SERIAL = f"SELECT number, revision, EXISTS ({HAS_ROW}) FROM {HISTORY} ORDER BY number DESC LIMIT 1"
COUNTS = (
    f"SELECT state, count(*), min(began_at) FROM {ENTRY} WHERE {{}} AND NOT ({_RUNNING})"
    " GROUP BY state"
)

# A beginning or an edit names what its task has read: the ledger in use for its service, and the
# revision of the entry. The owner of a lease, which may have ended, names the revision only.
_OF_SERVICE = f"EXISTS (SELECT 1 FROM {LEDGER} WHERE state = '{IN_USE}' AND base_url = ?)"
# After an approved plan: no later row of this asset that was accepted, or an edit to present.
_AS_APPROVED = (
    f"NOT EXISTS (SELECT 1 FROM {HISTORY} WHERE resource = ? AND name = ? AND number > ?"
    " AND (outcome = 'accepted' OR (outcome = '' AND to_state = 'done')))"
)
_IS_READ = "resource = ? AND name = ? AND revision = ?"
INSERT = (
    f"INSERT INTO {ENTRY} ({_KEY}, {_COLUMNS}, lease_from, lease_seconds)"
    f" SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS BIGINT), :now, CAST(? AS BIGINT)"
    f" WHERE {_OF_SERVICE} AND {_AS_APPROVED} ON CONFLICT ({_KEY}) DO NOTHING"
)
UPDATE = (
    f"UPDATE {ENTRY} SET state = ?, sent = ?, asset = ?, began_at = ?, changed_at = ?,"
    ' "by" = ?, run = ?, revision = ?, lease_from = :now, lease_seconds = ?'
)
DELETE = f"DELETE FROM {ENTRY}"
_IS_FREE = f"{_IS_READ} AND NOT ({_RUNNING}) AND {_OF_SERVICE} AND {_AS_APPROVED}"
_BY_OWNER = {Write.OUTCOME: _IS_READ, Write.RENEWAL: f"{_IS_READ} AND {_RUNNING}"}
# Once: a commit whose answer was lost is repeated.
RECORD = (
    f"INSERT INTO {HISTORY} ({_KEY}, {_HISTORY}, revision)"
    " SELECT ?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS BIGINT), ?, CAST(? AS DOUBLE PRECISION),"
    f" CAST(? AS BIGINT) WHERE NOT EXISTS (SELECT 1 FROM {HISTORY} WHERE {_IS_READ})"
)
IS_WRITTEN = f"SELECT 1 FROM {ENTRY} WHERE {_IS_READ}"


def written(change: Change, base_url: str) -> Statement:
    """Return the statement that writes an entry if it is still as it was read.

    `base_url`: of the service to which the ledger has to belong.
    """
    entry = change.after
    values: tuple[Value, ...] = ()
    if entry:
        values = (
            entry.state,
            json.dumps(entry.sent),
            json.dumps(entry.asset),
            entry.began_at,
            entry.changed_at,
            entry.by,
            entry.run,
            change.revision,
            change.lease_seconds,
        )
    guard = (base_url, *change.key, change.approved_row)
    if change.before is None:
        return INSERT, (*change.key, *values, *guard)
    values += (*change.key, change.before.revision)
    condition = _BY_OWNER.get(change.kind, _IS_FREE)
    if condition is _IS_FREE:
        values += guard
    return f"{UPDATE if entry else DELETE} WHERE {condition}", values


def recorded(change: Change, row: HistoryRow) -> Statement:
    """Return the statement that adds the row of a change; an adoption adds it with its entry only."""
    message = row.message.replace("\0", " ")  # which PostgreSQL cannot store
    revision = (*change.key, change.revision)
    values = (*change.key, *row._replace(message=message), change.revision, *revision)
    if change.kind is not Write.BEGIN:
        return RECORD, values
    return f"{RECORD} AND EXISTS ({IS_WRITTEN})", (*values, *revision)


# To move a ledger, or to give it the new URL of its service.
_NO_INTENT = f"NOT EXISTS (SELECT 1 FROM {ENTRY} WHERE state = 'intent')"
CLOSE = (
    f"UPDATE {LEDGER} SET state = '{MOVED}', place = ? WHERE state = '{IN_USE}' AND {_NO_INTENT}"
)
SET_URL = (
    f"UPDATE {LEDGER} SET base_url = ? WHERE state = '{IN_USE}' AND base_url = ? AND {_NO_INTENT}"
)
OPEN = (
    f"UPDATE {LEDGER} SET state = '{IN_USE}', base_url = ?, place = ''"
    f" WHERE state = '{FILLING}' AND ledger_id = ?"
)
COPIED = {
    ENTRY: f"{_KEY}, {_COLUMNS}, lease_from, lease_seconds",
    HISTORY: f"number, {_KEY}, {_HISTORY}, revision",
}
ROWS = "SELECT {} FROM {}"
COPIED_AT_ONCE = 50  # rows of at most 13 values; SQLite took 999 before 3.32
# Nothing where another mover has filled the target.
COPY = "INSERT INTO {} ({}) VALUES {} ON CONFLICT DO NOTHING"
