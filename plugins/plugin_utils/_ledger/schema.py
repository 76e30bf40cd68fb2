# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of the ledger, with the number of their schema in them."""

from __future__ import annotations

from .entries import LedgerError
from .store import Ledger

SCHEMA_VERSION = 2
_TABLES = (
    (
        "CREATE TABLE infrastructure_services_entry (base_url TEXT NOT NULL, resource TEXT NOT NULL,"
        " name TEXT NOT NULL, state TEXT NOT NULL, sent TEXT NOT NULL, asset TEXT NOT NULL, began_at TEXT NOT NULL,"
        ' changed_at TEXT NOT NULL, "by" TEXT NOT NULL, run TEXT NOT NULL, trace_id TEXT NOT NULL,'
        " revision BIGINT NOT NULL, PRIMARY KEY (base_url, resource, name))"
    ),
    (
        "CREATE TABLE infrastructure_services_history (base_url TEXT NOT NULL, resource TEXT NOT NULL,"
        ' name TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, at TEXT NOT NULL, "by" TEXT NOT NULL,'
        " run TEXT NOT NULL, outcome TEXT NOT NULL, status INTEGER, message TEXT NOT NULL, seconds REAL,"
        " trace_id TEXT NOT NULL, revision BIGINT NOT NULL)"
    ),
    "CREATE INDEX infrastructure_services_history_of ON infrastructure_services_history (base_url, resource, name)",
    "CREATE TABLE infrastructure_services_schema (version INTEGER PRIMARY KEY)",
    "INSERT INTO infrastructure_services_schema VALUES (2)",
)
_VERSION = "SELECT max(version) FROM infrastructure_services_schema"


def prepare(ledger: Ledger, read_only: bool) -> None:
    """Set `ledger.version` and, unless `read_only`, create the tables if there are none.

    Raises LedgerError for tables with another number.
    """
    ledger.version = _version(ledger)
    if ledger.version or read_only:
        return
    try:
        with ledger.transaction():
            for statement in () if _version(ledger) else _TABLES:  # another process may have been first
                ledger.execute(statement)
    except ledger.error as error:
        raise ledger.failure(error) from None
    ledger.version = SCHEMA_VERSION


def _version(ledger: Ledger) -> int:
    """Return the number of the schema, 0 when there are no tables; raise LedgerError for another one than ours."""
    tables = {name for (name,) in ledger.execute(ledger.tables)}
    if not tables:
        return 0
    found = ledger.execute(_VERSION)[0][0] if "infrastructure_services_schema" in tables else None
    if found != SCHEMA_VERSION:
        raise LedgerError(
            f"ledger: {ledger.where} was written by another version of this collection, or by something else"
            f" (schema {found}, not {SCHEMA_VERSION}). Use the version that wrote it, or another ledger"
        )
    return found
