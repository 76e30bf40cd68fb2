"""Ledger entries as the tests prepare, read and compare them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRY,
    LEDGER_INFO,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.editing import (
    edits_of,
    write_edits,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    Change,
    Entry,
    HistoryRow,
    Key,
    Write,
    stamped,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.listing import (
    list_entries,
)
from support.databases import schema_of
from support.ledgers import entry_of

_DELETE = "DELETE FROM infrastructure_services_entry WHERE resource = ? AND name = ?"


def put(ledger: Ledger, key: Key, entry: Entry | None, lease_seconds: int = 0) -> Entry | None:
    """Make this the ledger's entry for the key, whatever was there before, and return it.

    `lease_seconds`: of an intent; one without a lease is in doubt.
    """
    put_all(ledger, {key: entry}, lease_seconds)
    return entry_of(ledger, key)


def put_all(ledger: Ledger, entries: dict[Key, Entry | None], lease_seconds: int = 0) -> None:
    """Make these the ledger's entries for their keys."""
    ledger.database.execute([(_DELETE, key) for key in entries], Write.OUTCOME)
    changes = [
        stamped(Change(Write.BEGIN, key, None, entry, lease_seconds=lease_seconds))
        for key, entry in entries.items()
        if entry
    ]
    if changes:
        assert all(ledger.write(changes))


def end_leases(location: str) -> None:
    """Let all leases have ended, as after the longest time of a request."""
    execute(location, "UPDATE infrastructure_services_entry SET lease_seconds = 0")


def execute(location: str, statement: str) -> list[tuple]:
    """Execute a statement as another program does, and return its rows."""
    if location.startswith("postgresql:"):
        url, schema = schema_of(location)
        with psycopg.connect(url, options=f"-csearch_path={schema}", autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []
    with closing(sqlite3.connect(location, isolation_level=None, timeout=60)) as connection:
        return connection.execute(statement).fetchall()


def bare(entry: Entry | None) -> Entry | None:
    """Return the entry without what each write changes."""
    return entry and entry._replace(revision=0, began_at="", changed_at="", by="", lease_until=0)


def history(ledger: Ledger, key: Key) -> list[HistoryRow]:
    """Return the history of a key, oldest first."""
    return ledger.history([key])[key]


def states(ledger: Ledger) -> dict[str, str]:
    """Return the state of each entry by name."""
    return {key.name: entry.state for key, entry in ledger.entries("", ())}


def edited(ledger: Ledger, check_mode: bool = False, secret: str = "", **options) -> dict:
    """Return the result of ledger_entry; raise ServicesError."""
    secrets = Secrets()
    if secret:
        secrets.mask(secret)
    params = validate(LEDGER_ENTRY, {"ledger": "/x", **options}).valid()
    edits, result = edits_of(ledger, params, secrets)
    if edits and not check_mode:
        write_edits(ledger, edits, "this run")
    return result


def listed(ledger: Ledger, **options) -> dict:
    """Return the result of ledger_info."""
    return list_entries(ledger, validate(LEDGER_INFO, {"ledger": "/x", **options}).valid())
