# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From an option to an open ledger: a path is SQLite, a URL is PostgreSQL.

A text means the same ledger everywhere: nothing of the environment takes part.
"""

from __future__ import annotations

import os

from ...module_utils._errors import InvalidInput, LedgerError
from ...module_utils._task.options import NO_LEDGER
from .ledger import Database, Ledger
from .postgresql import POSTGRESQL, PostgresDatabase
from .seen import Seen
from .sqlite import SqliteDatabase

# By process, location and service: opening one for each item of a loop would take longer
# than its requests. A ledger that was inherited through fork() belongs to the parent.
_ledgers: dict[tuple[int, str, str, bool], Ledger] = {}


def open_ledger(given: str, seen: Seen, base_url: str = "", writes: bool = False) -> Ledger:
    """Open the ledger of an option, or reuse it; raise ServicesError.

    `seen`, `base_url`: as in Ledger; `writes`: whether outcomes will be recorded.
    """
    key = (os.getpid(), given, base_url, writes)
    if key not in _ledgers:
        ledger = Ledger(open_database(given), seen, base_url)
        if writes:
            ledger.tried(ledger.database.require_writable)
        _ledgers[key] = ledger
    return _ledgers[key]


def open_database(given: str, option: str = "ledger") -> Database:
    """Open the database of an option, which it does not create; raise ServicesError."""
    try:
        if given.startswith(POSTGRESQL):
            return PostgresDatabase(given)
        return SqliteDatabase(os.path.realpath(_checked_path(given)))
    except LedgerError as error:
        raise InvalidInput(option, error.problem) from None


def _checked_path(given: str) -> str:
    """Return an absolute path; raise LedgerError, which does not quote what may have a password."""
    if given == NO_LEDGER:
        raise LedgerError(
            "none is no ledger, and this needs one: give an absolute path or a postgresql:// URL"
        )
    if not os.path.isabs(given) or "\0" in given:
        raise LedgerError(
            "it is neither an absolute path, nor a URL that begins with postgresql://, nor the word"
            " none. Each"
            " directory and user would read a relative path, or ~, in another way: write"
            " $PWD/fleet.db in a variable of the environment, {{ playbook_dir }}/fleet.db in a"
            " playbook"
        )
    return given
