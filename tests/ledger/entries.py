# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ledger entries as the tests prepare and compare them."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import tables
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    Change,
    Ended,
    Entry,
    Key,
    Kind,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger


def put(ledger: Ledger, key: Key, entry: Entry | None) -> None:
    """Make this the ledger's entry for the key, whatever was there before."""
    before = ledger.get(key)
    if before or entry:
        assert write(ledger, Change(key, before, entry))


def write(ledger: Ledger, change: Change) -> bool:
    """Make one change; return whether the entry was still as `change.before` says."""
    return ledger.write([change], Kind.BEGIN) != [None]


def begin(ledger: Ledger, key: Key, intent: Entry, before: Entry | None) -> Entry | None:
    """Write an intent; return it as it was written, None if the entry is no longer `before`."""
    (written,) = ledger.write([Change(key, before, intent)], Kind.BEGIN)
    return written and written.after


def finish(ledger: Ledger, key: Key, begun: Entry, after: Entry | None, ended: Ended) -> bool:
    """Write how an attempt ended; return whether the entry was still `begun`."""
    return ledger.finish(Change(key, begun, after, ended))


def bare(entry: Entry | None) -> Entry | None:
    """Return the entry without its revision, which changes with every write."""
    return entry and entry._replace(revision=0)


def history(ledger: Ledger) -> list[tuple[Key, Ended]]:
    """Return the whole history, oldest first."""
    columns = f"base_url, resource, name, {tables.ENDED}"
    rows = ledger.database.execute(
        f"SELECT {columns} FROM infrastructure_services_history ORDER BY number"
    )
    return [(Key(*row[:3]), Ended(*row[3:])) for row in rows]
