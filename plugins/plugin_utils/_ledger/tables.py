# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of the ledger and the statements about them, the same on SQLite and on PostgreSQL."""

import re

# Characters that JSON or LIKE may escape.
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9]+")

_KEY = "base_url, resource, name"
SCHEMA_VERSION = 4  # of the tables; it stands in the last of them
# The states of a ledger.
IN_USE, MOVING, MOVED, FILLING = "in use", "moving", "moved", "filling"
ENTRY_TABLE = "infrastructure_services_entry"
HISTORY_TABLE = "infrastructure_services_history"
SCHEMA_TABLE = "infrastructure_services_schema"
# The entries of a ledger that was moved.
MOVED_TABLE = "infrastructure_services_moved"

# Of the rows of the history that say where the entries of a base_url are, which have no name and
# the state of a ledger: `moved`, with the new base_url as message, or `in use` again.
SERVICE = "base_url"
# `number` depends on the database. Run in one transaction, which has no effect if another
# process was first.
CREATE = (
    (
        f"CREATE TABLE IF NOT EXISTS {ENTRY_TABLE} (base_url TEXT NOT NULL,"
        " resource TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, sent TEXT NOT NULL,"
        " asset TEXT NOT NULL, began_at TEXT NOT NULL, changed_at TEXT NOT NULL,"
        ' "by" TEXT NOT NULL, run TEXT NOT NULL, trace_id TEXT NOT NULL, revision BIGINT NOT NULL,'
        f" PRIMARY KEY ({_KEY}))"
    ),
    (
        f"CREATE TABLE IF NOT EXISTS {HISTORY_TABLE} (number {{number}}, base_url TEXT NOT NULL,"
        " resource TEXT NOT NULL, name TEXT NOT NULL, from_state TEXT NOT NULL,"
        ' to_state TEXT NOT NULL, at TEXT NOT NULL, "by" TEXT NOT NULL, run TEXT NOT NULL,'
        " outcome TEXT NOT NULL, status INTEGER, message TEXT NOT NULL, seconds REAL,"
        " trace_id TEXT NOT NULL, revision BIGINT NOT NULL)"
    ),
    (f"CREATE INDEX IF NOT EXISTS infrastructure_services_history_of ON {HISTORY_TABLE} ({_KEY})"),
    (
        # One row: the state of the ledger with the move that it belongs to, and where the ledger
        # was last used.
        f"CREATE TABLE IF NOT EXISTS {SCHEMA_TABLE} (version INTEGER PRIMARY KEY,"
        " ledger_id TEXT NOT NULL, state TEXT NOT NULL, move TEXT NOT NULL, place TEXT NOT NULL,"
        " path TEXT NOT NULL, inode BIGINT NOT NULL, host TEXT NOT NULL)"
    ),
)
# Has no effect if there is a row already.
INSERT_MARK = f"INSERT INTO {SCHEMA_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
SET_USE = f"UPDATE {SCHEMA_TABLE} SET path = ?, inode = ?, host = ?"
TABLES_IN_SQLITE = (
    f"SELECT name FROM sqlite_master WHERE name IN ('{ENTRY_TABLE}', '{SCHEMA_TABLE}')"
)
# Not by to_regclass: it may have cached, before a lock was granted, that there are none.
TABLES_IN_POSTGRESQL = (
    "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)"
    f" AND relname IN ('{ENTRY_TABLE}', '{SCHEMA_TABLE}')"
)
# Other versions have other columns.
SCHEMA = f"SELECT * FROM {SCHEMA_TABLE} ORDER BY version DESC"

IS_KEY = "base_url = ? AND resource = ? AND name = ?"
_AMONG = "WHERE base_url = ? AND resource = ? AND name IN ({})"
COLUMNS = 'state, sent, asset, began_at, changed_at, "by", run, trace_id, revision'
_ENTRY = f"{_KEY}, {COLUMNS}"
GET = f"SELECT name, {COLUMNS} FROM {ENTRY_TABLE} {_AMONG}"
ENTRIES = f"SELECT {_ENTRY} FROM {ENTRY_TABLE} WHERE {{}}"
_WHILE_IN_USE = f"EXISTS (SELECT 1 FROM {SCHEMA_TABLE} WHERE state = '{IN_USE}')"
_SERVICE_ROW = (
    f"FROM {HISTORY_TABLE} WHERE base_url = ? AND resource = '{SERVICE}' AND name = ''"
    " ORDER BY number DESC LIMIT 1"
)
INSERT = (
    f"INSERT INTO {ENTRY_TABLE} ({_ENTRY}) SELECT {', '.join('?' * 12)}"
    f" WHERE {_WHILE_IN_USE} AND coalesce((SELECT to_state {_SERVICE_ROW}), '') <> '{MOVED}'"
    f" ON CONFLICT ({_KEY}) DO NOTHING"
)
UPDATE = (
    f"UPDATE {ENTRY_TABLE} SET state = ?, sent = ?, asset = ?, began_at = ?, changed_at = ?,"
    f' "by" = ?, run = ?, trace_id = ?, revision = ? WHERE {IS_KEY} AND revision = ?'
)
BEGIN = f"{UPDATE} AND {_WHILE_IN_USE}"
DELETE = f"DELETE FROM {ENTRY_TABLE} WHERE {IS_KEY} AND revision = ?"
ENDED = 'from_state, to_state, at, "by", run, outcome, status, message, seconds, trace_id'
_HISTORY_ROW = f"{_KEY}, {ENDED}, revision"
COPY_HISTORY = f"INSERT INTO {HISTORY_TABLE} ({_HISTORY_ROW}) VALUES {{}}"
RECORD = COPY_HISTORY.format(f"({', '.join('?' * 14)})")
# Clocks of controllers differ, and a second has many rows: only the number gives the order.
HISTORY = f"SELECT name, {ENDED} FROM {HISTORY_TABLE} {_AMONG} ORDER BY number"
NUMBER_OF_ROW = f"SELECT number FROM {HISTORY_TABLE} ORDER BY number LIMIT 1 OFFSET ?"
# What identifies a row; rows of a move to another base_url have the revision 0.
_ROW = "revision || ' ' || at"
HISTORY_END = (
    f"SELECT (SELECT count(*) FROM {HISTORY_TABLE}), {_ROW} FROM {HISTORY_TABLE}"
    " ORDER BY number DESC LIMIT 1"
)
# Not the row at a position: in PostgreSQL, a row with a lower number may become visible later.
ROWS_UP_TO = (
    f"SELECT count(*) FROM {HISTORY_TABLE}"
    f" WHERE number <= (SELECT max(number) FROM {HISTORY_TABLE} WHERE {_ROW} = ?)"
)
CREATED_SINCE = (
    f"SELECT DISTINCT name FROM {HISTORY_TABLE} {_AMONG}"
    " AND to_state IN ('done', 'accepted') AND number > ?"
)
COUNT_STATES = f"SELECT state, count(*) FROM {ENTRY_TABLE} GROUP BY state"
IS_RECORDED = f"SELECT 1 FROM {HISTORY_TABLE} WHERE {IS_KEY} AND revision = ?"
SEEN = f"SELECT 1 FROM {ENTRY_TABLE} WHERE base_url = ? LIMIT 1"
ELSEWHERE = (
    f"SELECT name, base_url FROM {ENTRY_TABLE}"
    " WHERE base_url <> ? AND resource = ? AND name IN ({}) ORDER BY base_url"
)

# To move the entries of a base_url. The guard of INSERT sees the last row of the service.
SERVICE_MOVED = f'SELECT to_state, message, at, "by" {_SERVICE_ROW}'
SERVICE_NUMBER = f"SELECT number {_SERVICE_ROW}"
KEYS_AT = (
    f"SELECT resource, name, state, revision FROM {ENTRY_TABLE} WHERE base_url = ?"
    " ORDER BY resource, name"
)
COUNT_URLS = f"SELECT base_url, count(*) FROM {ENTRY_TABLE} GROUP BY base_url ORDER BY base_url"
COUNT_HISTORY_AT = (
    f"SELECT count(*) FROM {HISTORY_TABLE} WHERE base_url = ? AND resource <> '{SERVICE}'"
)
# `,1,2,`: the revisions of the intents whose task has ended, twice. Last: the row of the new URL.
ONLY_IF_MOVABLE = (
    f"UPDATE {SCHEMA_TABLE} SET state = state WHERE state = '{IN_USE}'"
    f" AND NOT EXISTS (SELECT 1 FROM {ENTRY_TABLE} WHERE base_url = ? AND state = 'intent'"
    " AND replace(?, ',' || revision || ',', '') = ?)"
    f" AND NOT EXISTS (SELECT 1 FROM {ENTRY_TABLE} AS old JOIN {ENTRY_TABLE} AS new"
    " ON old.resource = new.resource AND old.name = new.name"
    " WHERE old.base_url = ? AND new.base_url = ?)"
    f" AND coalesce((SELECT number {_SERVICE_ROW}), 0) = ?"
)
RECORD_MOVED = (
    f"INSERT INTO {HISTORY_TABLE} ({_HISTORY_ROW})"
    f" SELECT {_KEY}, state, state, ?, ?, ?, 'not_sent', NULL, ?, NULL, '', 0"
    f" FROM {ENTRY_TABLE} WHERE base_url = ? ORDER BY resource, name"
)
MOVE_ENTRIES = f"UPDATE {ENTRY_TABLE} SET base_url = ? WHERE base_url = ?"
MOVE_HISTORY = (
    f"UPDATE {HISTORY_TABLE} SET base_url = ? WHERE base_url = ? AND resource <> '{SERVICE}'"
)
RECORD_SERVICE = (
    f"INSERT INTO {HISTORY_TABLE} ({_HISTORY_ROW})"
    f" VALUES (?, '{SERVICE}', '', ?, ?, ?, ?, ?, 'not_sent', NULL, ?, NULL, '', 0)"
)

# To move a ledger. Each change of a mark names the state and the move that it follows.
SET_MARK = (
    f"UPDATE {SCHEMA_TABLE} SET state = ?, move = ?, place = ?"
    " WHERE ledger_id = ? AND state = ? AND move = ?"
)
# No session finds it.
CLOSE = f"ALTER TABLE {ENTRY_TABLE} RENAME TO {MOVED_TABLE}"
OPEN = f"ALTER TABLE {MOVED_TABLE} RENAME TO {ENTRY_TABLE}"
IN_FLIGHT = f"SELECT {_KEY}, revision FROM {ENTRY_TABLE} WHERE state = 'intent'"
ONLY_THESE_IN_FLIGHT = (  # `,1,2,`: the revisions, twice
    f"UPDATE {SCHEMA_TABLE} SET state = state WHERE NOT EXISTS (SELECT 1 FROM"
    f" {MOVED_TABLE} WHERE state = 'intent' AND replace(?, ',' || revision || ',', '') = ?)"
)
DROP = (
    f"DROP TABLE {ENTRY_TABLE}",
    f"DROP TABLE {HISTORY_TABLE}",
    f"DROP TABLE {SCHEMA_TABLE}",
)
COUNT = "SELECT count(*) FROM infrastructure_services_{}"
PAGE = 60  # rows of one statement; SQLite took 999 values at most before 3.32
ENTRIES_AFTER = (
    f"SELECT {_ENTRY} FROM {MOVED_TABLE} WHERE ({_KEY}) > (?, ?, ?) ORDER BY {_KEY} LIMIT {PAGE}"
)
HISTORY_AFTER = (
    f"SELECT number, {_HISTORY_ROW} FROM {HISTORY_TABLE}"
    f" WHERE number > ? ORDER BY number LIMIT {PAGE}"
)
COPY_ENTRIES = f"INSERT INTO {ENTRY_TABLE} ({_ENTRY}) VALUES {{}}"


def like(text: str) -> str:
    """Return a pattern of LIKE for all that may contain the letters and digits of a text."""
    return _NOT_PLAIN.sub("%", f"%{text}%")
