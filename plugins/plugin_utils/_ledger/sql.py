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

from .entries import Change, HistoryRow, Key

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
NO_LIMIT = 2**63 - 1  # of row numbers

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
IS_READ = "resource = ? AND name = ? AND revision = ?"
_SET = (
    "SET state = ?, sent = ?, asset = ?, began_at = ?, changed_at = ?,"
    ' "by" = ?, run = ?, revision = ?, lease_from = :now, lease_seconds = ?'
)
INSERT = (
    f"INSERT INTO {ENTRY} ({_KEY}, {_COLUMNS}, lease_from, lease_seconds)"
    f" SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS BIGINT), :now, CAST(? AS BIGINT)"
    f" WHERE {_OF_SERVICE} AND {_AS_APPROVED} ON CONFLICT ({_KEY}) DO NOTHING"
)
IS_FREE = f"{IS_READ} AND NOT ({_RUNNING}) AND {_OF_SERVICE} AND {_AS_APPROVED}"
UPDATE = f"UPDATE {ENTRY} {_SET} WHERE"
DELETE = f"DELETE FROM {ENTRY} WHERE"
RENEW = (
    f"UPDATE {ENTRY} SET revision = ?, lease_from = :now, lease_seconds = ?"
    f" WHERE {IS_READ} AND {_RUNNING}"
)
# Once: a commit whose answer was lost is repeated.
RECORD = (
    f"INSERT INTO {HISTORY} ({_KEY}, {_HISTORY}, revision)"
    " SELECT ?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS BIGINT), ?, CAST(? AS DOUBLE PRECISION),"
    f" CAST(? AS BIGINT) WHERE NOT EXISTS (SELECT 1 FROM {HISTORY} WHERE {IS_READ})"
)
IS_WRITTEN = f"SELECT 1 FROM {ENTRY} WHERE {IS_READ}"


def entry_values(change: Change) -> tuple[Value, ...]:
    """Return the values of an entry in UPDATE, and after its key in INSERT."""
    entry = change.after
    if entry is None:
        raise ValueError("a deletion has no values")
    return (
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


def record_values(key: Key, row: HistoryRow, revision: int) -> tuple[Value, ...]:
    """Return the values of RECORD."""
    message = row.message.replace("\0", " ")  # which PostgreSQL cannot store
    return (*key, *row._replace(message=message), revision, *key, revision)


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
