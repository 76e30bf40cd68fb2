# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From an option to an open ledger: a path is SQLite, a URL is PostgreSQL."""

from __future__ import annotations

import os
import re
from contextlib import closing

from ...module_utils._errors import InvalidInput
from ...module_utils._secrets import printable
from .ledger_file import check_file
from .paths import real_path
from .postgresql import POSTGRESQL, PostgresDatabase, described, parsed_url
from .sqlite import SqliteDatabase
from .store import Ledger

_URL = re.compile(r"\s*(://|[A-Za-z][\w+.-]*:/)")
# Keywords of libpq.
_KEYWORDS = re.compile(r"(?:^|\s)(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=")


def resolved(
    location: str, playbook_dir: str, from_environment: bool, option: str = "ledger"
) -> str:
    """Return a URL as it is, a path as `absolute` does; raise InvalidInput for anything else."""
    if location.startswith(POSTGRESQL):
        return location
    if _URL.match(location) or _KEYWORDS.search(location):
        raise InvalidInput(option, "it must be a path or a postgresql:// URL")
    if not location.strip() or "\0" in location:
        raise InvalidInput(option, "it is not a path: it is empty or contains a NUL character")
    path = absolute(option, location, playbook_dir, from_environment)
    try:
        path.encode()
    except UnicodeEncodeError:  # no message and no result could contain it
        problem = f"the path {path!a} is not UTF-8. Rename the file or directory"
        raise InvalidInput(option, problem) from None
    return path


def absolute(option: str, path: str, playbook_dir: str, from_environment: bool = False) -> str:
    """Return the absolute path that an option names; raise InvalidInput for one in a collection.

    This is the rule for every path that the controller uses: below the directory of the playbook,
    or below the working directory if the path comes from the environment or the playbook belongs
    to a collection.
    """
    base = os.getcwd() if from_environment or _in_collection(playbook_dir) else playbook_dir
    found = os.path.abspath(os.path.join(base, os.path.expanduser(path)))
    try:
        is_inside = _in_collection(found) or _in_collection(os.path.realpath(found))
    except ValueError:
        raise InvalidInput(option, "must be without characters that no path can have") from None
    if is_inside:
        where = f"{printable(found)} is inside an installed collection and would be deleted with it"
        raise InvalidInput(option, f"{where}. Give an absolute path outside of it")
    return found


def _in_collection(path: str) -> bool:
    return "ansible_collections" in path.split(os.sep)


def shown_location(location: str) -> str:
    """Return a location without a password, as messages have it; raise as `open_ledger` does."""
    return described(parsed_url(location)) if location.startswith(POSTGRESQL) else location


def open_ledger(
    location: str, read_only: bool = False, required_by: str = "", moving: bool = False
) -> Ledger:
    """Open the ledger at a resolved location; for a reader, one that does not exist is empty.

    `required_by`: the option that requires the ledger to exist, '' if none does. `moving`: as in
    Ledger. Raises InvalidInput, LedgerError or MissingLibrary.
    """
    if required_by:
        _require_ledger(location, required_by, moving)
    if location.startswith(POSTGRESQL):
        return Ledger(PostgresDatabase(location), read_only, moving)
    try:
        file = real_path(location)
    except (OSError, ValueError) as error:
        raise InvalidInput("ledger", getattr(error, "strerror", None) or str(error)) from None
    check_file(file, location)
    return Ledger(SqliteDatabase(location, read_only), read_only, moving)


def _require_ledger(location: str, option: str, moving: bool) -> None:
    """Raise InvalidInput if there is no ledger, and leave nothing behind."""
    with closing(open_ledger(location, read_only=True, moving=moving)) as found:
        if found.is_new:
            raise InvalidInput(
                "ledger",
                f"there is none at {found.where}, and {option} is false. Check the location; if it"
                f" is to be a new one, set {option} to true",
            )


def no_ledger_yet(ledger: Ledger) -> str:
    """Return the line about a ledger that does not exist."""
    return f"no ledger at {ledger.where} yet"
