# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the option `ledger` to an open ledger: a path is SQLite, a postgresql:// URL is PostgreSQL."""

from __future__ import annotations

import os
import re

from .entries import LedgerError
from .postgresql import PostgresLedger
from .postgresql_library import POSTGRESQL
from .sqlite import SqliteLedger
from .store import Ledger

_URL = re.compile(r"\s*(://|[A-Za-z][\w+.-]*:/)")
_KEYWORDS = re.compile(r"(?:^|\s)(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=")  # of libpq


def located(location: str, playbook_dir: str, from_environment: bool) -> str:
    """Return the location with a path made absolute; raise LedgerError if it is neither path nor URL.

    A relative path is below the playbook's directory, or below the working directory if it comes from the environment
    or the playbook belongs to a collection: files in an installed collection are lost when it is installed again.
    """
    if location.startswith(POSTGRESQL):
        return location
    if _URL.match(location) or _KEYWORDS.search(location):
        raise LedgerError("ledger: it must be a path or a postgresql:// URL")
    if not location.strip() or "\0" in location:
        raise LedgerError("ledger: it is not a path: it is empty or contains a NUL character")
    path = absolute(location, playbook_dir, from_environment)
    try:
        path.encode()
    except UnicodeEncodeError:  # no message and no result could contain it
        raise LedgerError(f"ledger: the path {path!a} is not UTF-8. Rename the file or directory") from None
    if _in_collection(path) or _in_collection(os.path.realpath(path)):
        raise LedgerError(
            f"ledger: {path} is inside an installed collection and would be deleted with it. Give an absolute path"
        )
    return path


def absolute(path: str, playbook_dir: str, from_environment: bool = False) -> str:
    """Return the absolute path of an output file; relative paths are resolved as in `located`."""
    base = os.getcwd() if from_environment or _in_collection(playbook_dir) else playbook_dir
    return os.path.abspath(os.path.join(base, os.path.expanduser(path)))


def open_ledger(location: str, read_only: bool = False) -> Ledger:
    """Return the ledger at a location that `located` returned; raise LedgerError or MissingLibrary.

    To a reader, a ledger that does not exist yet is empty.
    """
    return (PostgresLedger if location.startswith(POSTGRESQL) else SqliteLedger)(location, read_only)


def _in_collection(path: str) -> bool:
    return "ansible_collections" in path.split(os.sep)
