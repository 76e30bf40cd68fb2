# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of the ledger, and the steps from each schema to the next, all in one transaction."""

from __future__ import annotations

from ...module_utils._errors import ACCEPTED, NOT_SENT, UNKNOWN
from ...module_utils._http.urls import canonical_url
from .entries import ABSENT, DONE, INTENT, Ended, Entry, Key, LedgerError
from .store import Ledger

SCHEMA_VERSION = 2  # 1: written by 1.0.0
ENTRIES = (
    "CREATE TABLE infrastructure_services_entry (base_url TEXT NOT NULL, resource TEXT NOT NULL, name TEXT NOT NULL,"
    " state TEXT NOT NULL, sent TEXT NOT NULL, asset TEXT NOT NULL, began_at TEXT NOT NULL, changed_at TEXT NOT NULL,"
    ' "by" TEXT NOT NULL, run TEXT NOT NULL, trace_id TEXT NOT NULL, revision BIGINT NOT NULL,'
    " PRIMARY KEY (base_url, resource, name))"
)
_HISTORY = (
    (
        "CREATE TABLE infrastructure_services_history (base_url TEXT NOT NULL, resource TEXT NOT NULL,"
        ' name TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, at TEXT NOT NULL, "by" TEXT NOT NULL,'
        " run TEXT NOT NULL, outcome TEXT NOT NULL, status INTEGER, message TEXT NOT NULL, seconds REAL,"
        " trace_id TEXT NOT NULL, revision BIGINT NOT NULL)"
    ),
    "CREATE INDEX infrastructure_services_history_of ON infrastructure_services_history (base_url, resource, name)",
)
_VERSIONS = "CREATE TABLE infrastructure_services_schema (version INTEGER PRIMARY KEY)"
_STAMP = "INSERT INTO infrastructure_services_schema VALUES (?) ON CONFLICT DO NOTHING"
_VERSION = "SELECT max(version) FROM infrastructure_services_schema"
_OLD = "SELECT base_url, resource, name, state, sent, asset, changed_at FROM infrastructure_services_entry"

_NOT_MIGRATED = (
    "An older version of this collection wrote it, and its tables have to be migrated. First run any task that creates"
    " something as the database role that owns the tables; then all roles that have access now can use it again"
)

# Two entries may turn out to be for one asset: the one whose state comes first in this list is kept.
_MOST_KNOWN = (DONE, ACCEPTED, UNKNOWN, INTENT)


def prepare(ledger: Ledger, read_only: bool) -> None:
    """Read the version of the tables and, unless `read_only`, create them or migrate them to SCHEMA_VERSION.

    Raises LedgerError for tables of a newer version of the collection, or of something else.
    """
    ledger.version = _version(ledger)
    if ledger.version == SCHEMA_VERSION or read_only:
        return
    try:
        with ledger.transaction():
            version = _version(ledger)  # another process may have been first
            if version < SCHEMA_VERSION:
                _second_schema(ledger) if version else _create(ledger)
                ledger.execute(_STAMP, [SCHEMA_VERSION])
    except ledger.error as error:
        raise ledger.failure(error) from None
    except LedgerError as error:
        if ledger.version:
            raise LedgerError(f"{error.msg}. {_NOT_MIGRATED}") from None
        raise
    ledger.version = SCHEMA_VERSION


def copy(old: Ledger, new: Ledger) -> Ledger:
    """Fill an empty ledger with the migrated entries of an older one, which stays unchanged; return the new one.

    Its `version` is that of the older one, whose later entries it does not have.
    """
    _create(new)
    for statement, values in _upgraded(old, new):
        new.execute(statement, values)
    new.version = old.version
    return new


def _version(ledger: Ledger) -> int:
    tables = {name for (name,) in ledger.execute(ledger.tables)}
    if not tables:
        return 0
    found = ledger.execute(_VERSION)[0][0] if "infrastructure_services_schema" in tables else None
    if found is None or not 1 <= found <= SCHEMA_VERSION:
        what = "a newer version of this collection" if (found or 0) > SCHEMA_VERSION else "something else"
        raise LedgerError(f"ledger: {ledger.where} was written by {what} (schema {found}, not {SCHEMA_VERSION})")
    return found


def _create(ledger: Ledger) -> None:
    for statement in (ENTRIES, *_HISTORY, _VERSIONS):
        ledger.execute(statement)


def _second_schema(ledger: Ledger) -> None:
    """Migrate from 1 to 2: add who, when, run, trace, revision and history; allow any state; rewrite base_urls."""
    statements = _upgraded(ledger, ledger)
    for statement in (*_HISTORY, *ledger.second_schema):
        ledger.execute(statement)
    for statement, values in statements:
        ledger.execute(statement, values)


def _upgraded(old: Ledger, new: Ledger) -> list[tuple[str, tuple]]:
    """Return the statements that write the entries of schema 1 into one of schema 2.

    Of two entries whose base_urls have the same canonical form, one is kept; the other goes to the history.
    """
    kept: dict[Key, tuple[str, Entry]] = {}
    statements = []
    rows = [(row[3], row[6], *row) for row in old.execute(_OLD)]
    rows.sort(key=lambda row: row[1], reverse=True)  # the newest first
    for state, changed_at, base_url, resource, name, _state, sent, asset, _at in sorted(rows, key=_rank):
        key = Key(canonical_url(base_url), resource, name)
        if key not in kept:
            kept[key] = base_url, Entry(state, old.read(sent), old.read(asset), changed_at, changed_at, revision=1)
            continue
        message = f"{base_url} is {key.base_url}, for which {kept[key][0]} had an entry too. The asset was {asset}"
        statements.append(new.recording(key, Ended(state, ABSENT, changed_at, outcome=NOT_SENT, message=message), 0))
    return statements + [new.insertion(key, entry) for key, (_url, entry) in kept.items()]


def _rank(row: tuple) -> int:
    return _MOST_KNOWN.index(row[0])
