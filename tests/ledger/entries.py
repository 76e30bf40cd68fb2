# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ledger entries as the tests prepare and compare them."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Change, Entry, Key
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger


def put(ledger: Ledger, key: Key, entry: Entry | None) -> None:
    """Make this the ledger's entry for the key, whatever was there before."""
    before = ledger.get(key)
    if before or entry:
        assert ledger.edit(Change(key, before, entry))


def bare(entry: Entry | None) -> Entry | None:
    """Return the entry without its revision, which changes with every write."""
    return entry and entry._replace(revision=0)
