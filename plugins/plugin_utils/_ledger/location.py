# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the option `ledger` to an open ledger: a path is SQLite, a postgresql:// URL is PostgreSQL."""

from __future__ import annotations

import os

from .postgresql import PostgresLedger
from .sqlite import SqliteLedger
from .store import Ledger, LedgerError


def located(location: str, directory: str) -> str:
    """Return the location with a path made absolute; a relative one is below the directory."""
    return location if "://" in location else os.path.abspath(os.path.join(directory, os.path.expanduser(location)))


def open_ledger(location: str, read_only: bool = False) -> Ledger:
    """Return the ledger at an absolute path or postgresql:// URL; raise LedgerError or MissingLibrary.

    Reading one that does not exist yet is reading an empty one.
    """
    if location.startswith(("postgresql://", "postgres://")):
        return PostgresLedger(location, read_only)
    if "://" in location:
        raise LedgerError("ledger: it must be a path or a postgresql:// URL")
    return SqliteLedger(location, read_only)
