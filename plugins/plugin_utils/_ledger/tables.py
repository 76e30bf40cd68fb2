# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of the ledger, and the statements that read and write them: the same on SQLite and on PostgreSQL."""

import re

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9]+")  # what JSON or LIKE may write in another way

SCHEMA_VERSION = 3  # of the tables; it stands in the last of them
CREATE = (  # in one transaction, and without effect when another process was first; `number` is of the database
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
        "CREATE TABLE IF NOT EXISTS infrastructure_services_schema (version INTEGER PRIMARY KEY,"
        " moved TEXT NOT NULL, place TEXT NOT NULL, move TEXT NOT NULL)"
    ),
    f"INSERT INTO infrastructure_services_schema VALUES ({SCHEMA_VERSION}, '', '', '') ON CONFLICT DO NOTHING",
)
TABLES_IN_SQLITE = (
    "SELECT name FROM sqlite_master WHERE name IN ('infrastructure_services_entry', 'infrastructure_services_schema')"
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
ENTRIES = f"SELECT base_url, resource, name, {COLUMNS} FROM infrastructure_services_entry WHERE {{}}"
IN_USE = "EXISTS (SELECT 1 FROM infrastructure_services_schema WHERE moved = '')"  # nothing is begun while it is moved
INSERT = (
    f"INSERT INTO infrastructure_services_entry (base_url, resource, name, {COLUMNS}) SELECT {', '.join('?' * 12)}"
    f" WHERE {IN_USE} ON CONFLICT (base_url, resource, name) DO NOTHING"
)
UPDATE = (
    "UPDATE infrastructure_services_entry SET state = ?, sent = ?, asset = ?, began_at = ?, changed_at = ?,"
    f' "by" = ?, run = ?, trace_id = ?, revision = ? WHERE {IS_KEY} AND revision = ?'
)
BEGIN = f"{UPDATE} AND {IN_USE}"
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
IS_RECORDED = f"SELECT 1 FROM infrastructure_services_history WHERE {IS_KEY} AND revision = ?"
SEEN = "SELECT 1 FROM infrastructure_services_entry WHERE base_url = ? LIMIT 1"
ELSEWHERE = (
    "SELECT name, base_url FROM infrastructure_services_entry"
    " WHERE base_url <> ? AND resource = ? AND name IN ({}) ORDER BY base_url"
)

# To move a ledger. Each change of its mark names the one before it.
MARK = "UPDATE infrastructure_services_schema SET moved = ?, place = ?, move = ? WHERE moved = ? AND move = ?"
CLOSE = "ALTER TABLE infrastructure_services_entry RENAME TO infrastructure_services_moved"  # no session finds it
OPEN = "ALTER TABLE infrastructure_services_moved RENAME TO infrastructure_services_entry"
IN_FLIGHT = "SELECT base_url, resource, name, revision FROM infrastructure_services_entry WHERE state = 'intent'"
ONLY_THESE_IN_FLIGHT = (  # `,1,2,`: the revisions, twice
    "UPDATE infrastructure_services_schema SET moved = moved WHERE NOT EXISTS (SELECT 1 FROM"
    " infrastructure_services_moved WHERE state = 'intent' AND replace(?, ',' || revision || ',', '') = ?)"
)
CLEAR = ("DELETE FROM infrastructure_services_entry", "DELETE FROM infrastructure_services_history")
COUNT = "SELECT count(*) FROM infrastructure_services_{}"
PAGE = 60  # rows of one statement; SQLite took 999 values at most before 3.32
ENTRIES_AFTER = (
    f"SELECT base_url, resource, name, {COLUMNS} FROM infrastructure_services_{{}}"
    f" WHERE (base_url, resource, name) > (?, ?, ?) ORDER BY base_url, resource, name LIMIT {PAGE}"
)
HISTORY_AFTER = (
    f"SELECT number, base_url, resource, name, {ENDED}, revision FROM infrastructure_services_history"
    f" WHERE number > ? ORDER BY number LIMIT {PAGE}"
)
COPY_ENTRIES = (  # of one that is there and says the same, each row counts as written
    f"INSERT INTO infrastructure_services_entry (base_url, resource, name, {COLUMNS}) VALUES {{}}"
    " ON CONFLICT (base_url, resource, name) DO UPDATE SET name = excluded.name"
)
COPY_HISTORY = (
    f"INSERT INTO infrastructure_services_history (base_url, resource, name, {ENDED}, revision) VALUES {{}}"
)


def like(text: str) -> str:
    """Return a pattern of LIKE for all that may contain a text, be it as JSON: by its letters and digits alone."""
    return _NOT_PLAIN.sub("%", f"%{text}%")
