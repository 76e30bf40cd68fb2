# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of the ledger, and the statements that read and write them: the same on SQLite and on
PostgreSQL.
"""

import re

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9]+")  # what JSON or LIKE may write in another way

SCHEMA_VERSION = 4  # of the tables; it stands in the last of them
IN_USE, MOVING, MOVED, FILLING = "in use", "moving", "moved", "filling"  # the states of a ledger

# `number` depends on the database. Run in one transaction; has no effect if another process was
# first.
CREATE = (
    (
        "CREATE TABLE IF NOT EXISTS infrastructure_services_entry (base_url TEXT NOT NULL, resource TEXT NOT NULL,"
        " name TEXT NOT NULL, state TEXT NOT NULL, sent TEXT NOT NULL, asset TEXT NOT NULL, began_at TEXT NOT NULL,"
        ' changed_at TEXT NOT NULL, "by" TEXT NOT NULL, run TEXT NOT NULL, trace_id TEXT NOT NULL,'
        " revision BIGINT NOT NULL, PRIMARY KEY (base_url, resource, name))"
    ),
    (
        "CREATE TABLE IF NOT EXISTS infrastructure_services_history (number {number}, base_url TEXT NOT NULL,"
        " resource TEXT NOT NULL, name TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL,"
        ' at TEXT NOT NULL, "by" TEXT NOT NULL, run TEXT NOT NULL, outcome TEXT NOT NULL,'
        " status INTEGER, message TEXT NOT NULL, seconds REAL, trace_id TEXT NOT NULL, revision BIGINT NOT NULL)"
    ),
    (
        "CREATE INDEX IF NOT EXISTS infrastructure_services_history_of"
        " ON infrastructure_services_history (base_url, resource, name)"
    ),
    (
        # One row: the state of the ledger with the move that it belongs to, and where the ledger
        # was last used.
        "CREATE TABLE IF NOT EXISTS infrastructure_services_schema (version INTEGER PRIMARY KEY,"
        " ledger_id TEXT NOT NULL, state TEXT NOT NULL, move TEXT NOT NULL, place TEXT NOT NULL,"
        " path TEXT NOT NULL, inode BIGINT NOT NULL, host TEXT NOT NULL)"
    ),
)
# Fails if there is a row already, unless it is to have no effect then.
INSERT_MARK = "INSERT INTO infrastructure_services_schema VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_FIRST_MARK = f"{INSERT_MARK} ON CONFLICT DO NOTHING"
SET_USE = "UPDATE infrastructure_services_schema SET path = ?, inode = ?, host = ?"
TABLES_IN_SQLITE = (
    "SELECT name FROM sqlite_master"
    " WHERE name IN ('infrastructure_services_entry', 'infrastructure_services_schema')"
)
TABLES_IN_POSTGRESQL = (  # from pg_class: to_regclass may have cached, before a lock was granted, that there are none
    "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)"
    " AND relname IN ('infrastructure_services_entry', 'infrastructure_services_schema')"
)
SCHEMA = "SELECT * FROM infrastructure_services_schema ORDER BY version DESC"  # other versions have other columns

IS_KEY = "base_url = ? AND resource = ? AND name = ?"
COLUMNS = 'state, sent, asset, began_at, changed_at, "by", run, trace_id, revision'
GET = (
    f"SELECT name, {COLUMNS} FROM infrastructure_services_entry"
    " WHERE base_url = ? AND resource = ? AND name IN ({})"
)
ENTRIES = (
    f"SELECT base_url, resource, name, {COLUMNS} FROM infrastructure_services_entry WHERE {{}}"
)
_WHILE_IN_USE = f"EXISTS (SELECT 1 FROM infrastructure_services_schema WHERE state = '{IN_USE}')"
INSERT = (
    f"INSERT INTO infrastructure_services_entry (base_url, resource, name, {COLUMNS}) SELECT {', '.join('?' * 12)}"
    f" WHERE {_WHILE_IN_USE} ON CONFLICT (base_url, resource, name) DO NOTHING"
)
UPDATE = (
    "UPDATE infrastructure_services_entry SET state = ?, sent = ?, asset = ?, began_at = ?, changed_at = ?,"
    f' "by" = ?, run = ?, trace_id = ?, revision = ? WHERE {IS_KEY} AND revision = ?'
)
BEGIN = f"{UPDATE} AND {_WHILE_IN_USE}"
DELETE = f"DELETE FROM infrastructure_services_entry WHERE {IS_KEY} AND revision = ?"
ENDED = 'from_state, to_state, at, "by", run, outcome, status, message, seconds, trace_id'
RECORD = (
    f"INSERT INTO infrastructure_services_history (base_url, resource, name, {ENDED}, revision)"
    f" VALUES ({', '.join('?' * 14)})"
)
HISTORY = (  # clocks of controllers differ, and a second has many rows: the number alone gives the order
    f"SELECT name, {ENDED} FROM infrastructure_services_history"
    " WHERE base_url = ? AND resource = ? AND name IN ({}) ORDER BY number"
)
NUMBER_OF_ROW = (
    "SELECT number FROM infrastructure_services_history ORDER BY number LIMIT 1 OFFSET ?"
)
CREATED_SINCE = (
    "SELECT DISTINCT name FROM infrastructure_services_history"
    " WHERE base_url = ? AND resource = ? AND name IN ({}) AND to_state IN ('done', 'accepted') AND number > ?"
)
COUNT_STATES = "SELECT state, count(*) FROM infrastructure_services_entry GROUP BY state"
COUNT_IN_DOUBT = "SELECT count(*) FROM infrastructure_services_entry WHERE state <> 'done'"
IS_RECORDED = f"SELECT 1 FROM infrastructure_services_history WHERE {IS_KEY} AND revision = ?"
SEEN = "SELECT 1 FROM infrastructure_services_entry WHERE base_url = ? LIMIT 1"
ELSEWHERE = (
    "SELECT name, base_url FROM infrastructure_services_entry"
    " WHERE base_url <> ? AND resource = ? AND name IN ({}) ORDER BY base_url"
)

# To move a ledger. Each change of a mark names the state and the move that it follows.
SET_MARK = (
    "UPDATE infrastructure_services_schema SET state = ?, move = ?, place = ?"
    " WHERE ledger_id = ? AND state = ? AND move = ?"
)
CLOSE = "ALTER TABLE infrastructure_services_entry RENAME TO infrastructure_services_moved"  # no session finds it
OPEN = "ALTER TABLE infrastructure_services_moved RENAME TO infrastructure_services_entry"
IN_FLIGHT = "SELECT base_url, resource, name, revision FROM infrastructure_services_entry WHERE state = 'intent'"
ONLY_THESE_IN_FLIGHT = (  # `,1,2,`: the revisions, twice
    "UPDATE infrastructure_services_schema SET state = state WHERE NOT EXISTS (SELECT 1 FROM"
    " infrastructure_services_moved WHERE state = 'intent' AND replace(?, ',' || revision || ',', '') = ?)"
)
DROP = tuple(
    f"DROP TABLE infrastructure_services_{table}" for table in ("entry", "history", "schema")
)
COUNT = "SELECT count(*) FROM infrastructure_services_{}"
PAGE = 60  # rows of one statement; SQLite took 999 values at most before 3.32
ENTRIES_AFTER = (
    f"SELECT base_url, resource, name, {COLUMNS} FROM infrastructure_services_moved"
    f" WHERE (base_url, resource, name) > (?, ?, ?) ORDER BY base_url, resource, name LIMIT {PAGE}"
)
HISTORY_AFTER = (
    f"SELECT number, base_url, resource, name, {ENDED}, revision FROM infrastructure_services_history"
    f" WHERE number > ? ORDER BY number LIMIT {PAGE}"
)
COPY_ENTRIES = (
    f"INSERT INTO infrastructure_services_entry (base_url, resource, name, {COLUMNS}) VALUES {{}}"
)
COPY_HISTORY = f"INSERT INTO infrastructure_services_history (base_url, resource, name, {ENDED}, revision) VALUES {{}}"


def like(text: str) -> str:
    """Return a pattern of LIKE for all that may contain a text, be it as JSON: by its letters and
    digits alone.
    """
    return _NOT_PLAIN.sub("%", f"%{text}%")
